"""What the request of a context does with the store."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from time import monotonic


@dataclass(slots=True)
class StoreUse:
    """How many seconds a request waited for the store, and whether it changed anything there."""

    seconds: float = 0.0
    has_changed: bool = False


current_use: ContextVar[StoreUse | None] = ContextVar("store_use", default=None)
"""Of the request that is answered in this context, in its threads, too."""


class _Waits:
    """How many calls of this process wait for the store now."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = Lock()

    def change(self, by: int) -> None:
        with self._lock:
            self.count += by


_waits = _Waits()


def is_waiting() -> bool:
    """Whether something in this process waits for the store, as for a disk that hangs."""
    return _waits.count > 0


@contextmanager
def waiting() -> Iterator[None]:
    """Count the time within as waiting for the store."""
    use, since = current_use.get(), monotonic()
    _waits.change(1)
    try:
        yield
    finally:
        _waits.change(-1)
        if use is not None:
            use.seconds += monotonic() - since


def changed() -> None:
    """Note that the request has changed what is stored."""
    if (use := current_use.get()) is not None:
        use.has_changed = True
