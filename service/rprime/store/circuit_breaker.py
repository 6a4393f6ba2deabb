"""Circuit breaker: while the server is silent, calls fail at once instead of after a timeout."""

from threading import Lock
from time import monotonic

from rprime.store.errors import StoreTimeoutError

_RETRY_SECONDS = 1.0


class CircuitBreaker:
    """Remembers that the server did not answer in time.

    While the breaker is open, it refuses calls; after a second one call may try again, and the
    others are refused until that call is answered or times out.

    Parameters
    ----------
    trial_seconds
        How long the trial call may take.
    """

    def __init__(self, trial_seconds: float) -> None:
        self._trial_seconds = trial_seconds
        self._retry_at = 0.0
        self._lock = Lock()

    def check(self) -> None:
        """Let a call pass, or refuse it.

        Raises
        ------
        StoreTimeoutError
            If the server does not answer and this is not the trial call.
        """
        if not self._retry_at:
            return
        with self._lock:
            now = monotonic()
            if now < self._retry_at:
                raise StoreTimeoutError("The database does not answer.")
            self._retry_at = now + self._trial_seconds

    def trip(self) -> None:
        """Record that the server did not answer in time."""
        with self._lock:
            self._retry_at = monotonic() + _RETRY_SECONDS

    def reset(self) -> None:
        """Record that the server answers."""
        self._retry_at = 0.0
