"""Deadlines: what a client has sent, and how long it may keep its connection waiting."""

from typing import Literal

from rprime.settings import Limits

INTERVAL = 0.5
"""Seconds between two checks of a connection. One timer per connection costs less than one per
request."""
_LINGER_SECONDS = 2.0
"""How long bytes that follow a rejected request are read and dropped."""

Phase = Literal["idle", "head", "body", "rejected"]
"""What the server reads next. After a rejection it reads no more requests."""


class Deadlines:
    """Measure what the client of one connection sends, and how long it has sent or read nothing.

    Attributes
    ----------
    received
        Bytes of the body of the current request.
    head
        Bytes of its head that the parser has reported.
    unreported
        Bytes that were read in this phase, of which the parser has reported nothing so far.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._unsent = 0
        self._stalled = 0.0
        self.enter("idle")

    def enter(self, phase: Phase) -> None:
        """Begin a phase, with all of its time left."""
        self.phase: Phase = phase
        self._waited = 0.0
        self.received = 0
        self.head = 0
        self.unreported = 0

    def is_read_overdue(self) -> bool:
        """Count one interval of waiting for the client; return whether that is too long."""
        self._waited += INTERVAL
        allowed = self._limits.head_seconds
        if self.phase == "rejected":
            allowed = _LINGER_SECONDS
        elif self.phase == "body":
            allowed = self._limits.body_seconds
            allowed += self.received / self._limits.body_bytes_per_second
        return self._waited >= allowed

    def is_write_overdue(self, unsent: int) -> bool:
        """Count one interval, after which so many bytes are in the write buffer.

        Return whether the client has read nothing of a response for too long.
        """
        is_unchanged = unsent == self._unsent and unsent > 0
        self._unsent = unsent
        self._stalled = self._stalled + INTERVAL if is_unchanged else 0.0
        return self._stalled >= self._limits.answer_seconds

    def record_write(self) -> None:
        """Note that the client has read something, even if the next response fills the buffer."""
        self._unsent = 0
