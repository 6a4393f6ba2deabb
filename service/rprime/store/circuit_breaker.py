"""Circuit breaker: while the server is silent, calls fail at once, not after their timeout."""

from threading import Lock
from time import monotonic

from rprime.store.errors import StoreTimeoutError

_RETRY_SECONDS = 1.0


class CircuitBreaker:
    """Remembers that the server did not answer in time.

    While it is open, calls are refused; after a second one call may try again, and the others
    are refused until that one has its answer or has timed out.

    Parameters
    ----------
    trial_seconds
        How long the call that tries again may take.
    """

    def __init__(self, trial_seconds: float) -> None:
        self._trial_seconds = trial_seconds
        self._retry_at = 0.0
        self._lock = Lock()

    def check(self) -> None:
        """Let a call pass.

        Raises
        ------
        StoreTimeoutError
            If the server does not answer and this call is not the one that tries again.
        """
        if not self._retry_at:
            return
        with self._lock:
            now = monotonic()
            if now < self._retry_at:
                raise StoreTimeoutError("The database does not answer.")
            self._retry_at = now + self._trial_seconds

    def trip(self) -> None:
        """Note that the server did not answer in time."""
        with self._lock:
            self._retry_at = monotonic() + _RETRY_SECONDS

    def reset(self) -> None:
        """Note that the server answers."""
        self._retry_at = 0.0
