"""How far long work is, for a terminal."""

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")

Watch = Callable[[str, float, float | None], None]
"""Takes what is done, how much of it, and of how much; None: unknown."""

WATCH: ContextVar[Watch | None] = ContextVar("WATCH", default=None)
"""Who watches; None: nobody."""


def report(what: str, done: float, total: float | None = None) -> None:
    """Report which share of some work is done."""
    watch = WATCH.get()
    if watch is not None:
        watch(what, done, total)


def watched(what: str, items: Sequence[Item]) -> Iterator[Item]:
    """Yield items, and report how many of them are done."""
    for done, item in enumerate(items):
        report(what, done, len(items))
        yield item
    report(what, len(items), len(items))
