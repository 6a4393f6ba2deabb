"""Request limits: how often a key may be used."""

from time import monotonic

_MINUTE = 60.0


class RequestLimits:
    """Counts the requests of each key in this process, as a bucket that refills evenly (GCRA).

    Those of a minute may come all at once; None: as many as come.
    """

    def __init__(self, per_minute: int | None) -> None:
        self._interval = 0.0 if per_minute is None else _MINUTE / per_minute
        self._full_at: dict[str, float] = {}

    def take(self, key: str) -> float:
        """Count a request; return how many seconds too early it comes, 0 if it may pass."""
        if not self._interval:
            return 0.0
        now = monotonic()
        full_at = max(self._full_at.get(key, now), now) + self._interval
        early = full_at - now - _MINUTE
        if early > 0:
            return early
        self._full_at[key] = full_at
        return 0.0
