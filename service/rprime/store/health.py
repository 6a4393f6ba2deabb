"""What the calls to a database tell about it: its state, and its failures by cause."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from rprime.store.errors import StoreDamagedError, StoreError
from rprime.store.schema import replays

OK = "ok"
STATES = (OK, "full", "read_only", "locked", "unavailable", "damaged")
"""`full` to `unavailable`: stored evaluations are read, but none is stored."""


_TRIAL_BYTES = 64 * 1024


def trial() -> tuple[Callable[[Connection], object], ...]:
    """Return two transactions: one stores as much as an evaluation may need, one deletes it."""
    key = os.urandom(16)
    row = {"key": key, "payload": b"", "status": 0, "body": os.urandom(_TRIAL_BYTES)}
    row |= {"evaluation": "", "project": "", "expires": 0}
    return (
        lambda connection: connection.execute(replays.insert(), row),
        lambda connection: connection.execute(replays.delete().where(replays.c.key == key)),
    )


class StoreHealth:
    """The state of a database as its calls found it.

    Attributes
    ----------
    state
        Why the last write failed, or "ok". Damage stays until the store is opened again.
    failures
        How many calls failed, by cause.
    last_write
        Seconds since 1970 at the last commit; None before the first.
    observe_commit
        Takes the seconds of each commit.
    """

    observe_commit: Callable[[float], object] = staticmethod(lambda _: None)

    def __init__(self) -> None:
        self.state = OK
        self.failures: Counter[str] = Counter()
        self.last_write: float | None = None

    @contextmanager
    def observed(self) -> Iterator[None]:
        """Count a failure; damage that is read changes the state, too."""
        try:
            yield
        except StoreError as exc:
            self.failures[exc.cause] += 1
            if isinstance(exc, StoreDamagedError):
                self.state = exc.cause
            raise

    def wrote(self, seconds: float) -> None:
        """Record a commit, and how long it took."""
        self.observe_commit(seconds)
        self.last_write = time.time()
        if self.state != StoreDamagedError.cause:
            self.state = OK

    def failed_to_write(self, exc: StoreError) -> None:
        """Record why nothing could be written."""
        self.failures[exc.cause] += 1
        if self.state != StoreDamagedError.cause and exc.cause in STATES:
            self.state = exc.cause
