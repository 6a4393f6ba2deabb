"""The idempotency keys that are held in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class KeyRunningError(Exception):
    """A request with this idempotency key is still running."""


class RunningKeys:
    """The keys of the requests that are being answered."""

    def __init__(self) -> None:
        self._held: set[bytes] = set()
        self._lock = Lock()

    @contextmanager
    def hold(self, key: bytes) -> Iterator[None]:
        """Hold a key exclusively.

        Raises
        ------
        KeyRunningError
            If it is held.
        """
        with self._lock:
            if key in self._held:
                raise KeyRunningError
            self._held.add(key)
        try:
            yield
        finally:
            with self._lock:
                self._held.discard(key)
