"""What the request of a context does with the store."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic


@dataclass(slots=True)
class StoreUse:
    """How many seconds a request waited for the store, and whether it changed anything there."""

    seconds: float = 0.0
    has_changed: bool = False


current_use: ContextVar[StoreUse | None] = ContextVar("store_use", default=None)
"""Of the request that is answered in this context, in its threads, too."""


_waits: set[object] = set()
"""One for each call of this process that waits for the store now."""


def is_waiting() -> bool:
    """Whether something in this process waits for the store, as for a disk that hangs."""
    return bool(_waits)


@contextmanager
def waiting() -> Iterator[None]:
    """Count the time within as waiting for the store."""
    use, since, call = current_use.get(), monotonic(), object()
    _waits.add(call)
    try:
        yield
    finally:
        _waits.remove(call)
        if use is not None:
            use.seconds += monotonic() - since


def changed() -> None:
    """Note that the request has changed what is stored."""
    if (use := current_use.get()) is not None:
        use.has_changed = True
