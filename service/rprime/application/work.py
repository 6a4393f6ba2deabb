"""Work that a worker does for the service, and the store that it reads through the service."""

import copyreg
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from rprime.core.catalog import find
from rprime.core.index import Index, IndexScope
from rprime.problems.problem import Problem
from rprime.server.worker_channel import Channel
from rprime.server.worker_limits import WorkerLimits
from rprime.settings import Limits

if TYPE_CHECKING:
    # Most work needs no database, which takes a worker 23 MiB.
    from rprime.application.stored_sides import VisibleHistory
    from rprime.store import Idempotency, NewEvaluation, Outcome, Packed, Store

SLACK = 64 << 20
"""Bytes of memory that do not depend on the size of the body."""
TIMES_JSON = 24
"""Memory of parsed JSON per byte of text: a short string takes 60 bytes in Python."""
COMPUTED = 384 << 20
"""Bytes of memory for what is computed and rendered from a body."""
_NO_MEMORY = (
    "The request takes more memory than one request may have. Ask for fewer classes, `indices`, "
    "rules or replicates, or send less at a time."
)


def _index(scope: IndexScope, key: str) -> Index:
    index = find(scope, key)
    assert index is not None  # noqa: S101 (both processes have the same catalog)
    return index


def _by_key(index: Index) -> tuple[Callable[..., Index], tuple[IndexScope, str]]:
    return _index, (index.scope, index.key)


# The formulas of indices are functions that cannot be pickled.
copyreg.pickle(Index, _by_key)


@dataclass(frozen=True)
class Raised:
    """What the store raised; None from a worker that lets it pass, which the service knows."""

    error: Exception | None = None


class StoreRaisedError(Exception):
    """The cause of what the store raised in the service, and of what cannot be sent from there."""


def is_of_store(error: Exception) -> bool:
    """Whether the store raised an exception, and not the worker itself."""
    return isinstance(error.__cause__, StoreRaisedError)


@dataclass(frozen=True, eq=False)
class Work:
    """Work on a JSON body, or on none, within limits of memory.

    Parameters
    ----------
    work
        A function of a module, or a `partial` of one, so that it can be pickled. It gets the body
        and returns the answer.
    stored
        Whether it gets the store, too.
    imports
        Modules that it needs, imported before memory is limited; any may be missing.
    """

    work: Callable[..., object]
    limits: Limits
    stored: bool = False
    imports: tuple[str, ...] = ()

    def __call__(self, channel: Channel) -> object:
        """Read the body, and work."""
        for module in self.imports:
            with suppress(ImportError):
                import_module(module)
        body = channel.read()
        memory = SLACK + COMPUTED + TIMES_JSON * len(body)
        WorkerLimits(memory, most=self.limits.worker_bytes)
        try:
            return self.work(body, RemoteStore(channel)) if self.stored else self.work(body)
        except MemoryError:
            pass
        # Only here the memory has been freed, so that an answer fits.
        raise Problem("body_too_large", _NO_MEMORY)


class RemoteStore:
    """The store of the service for a worker: each call goes through the channel.

    What a method of the `Store` returns or raises comes back pickled. The service knows which
    methods a worker may call, and for whom.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 (of any method)
            return self._call(name, args, kwargs)

        return call

    def pack(self, new: "NewEvaluation", *, idempotency: "Idempotency | None" = None) -> "Packed":
        """Pack an evaluation here, which takes processor time and no store."""
        from rprime.store.insertion import pack  # noqa: PLC0415 (see above)
        from rprime.store.store import milliseconds  # noqa: PLC0415 (see above)

        return pack(new, idempotency, milliseconds())

    def put_many(self, batch: "Sequence[Packed]") -> "Future[list[Outcome]]":
        """Store evaluations; the future is done."""
        # A table that was pickled is another one, so the rows are sent by its name.
        kept = [{table.name: rows for table, rows in packed.kept.items()} for packed in batch]
        bare = [replace(packed, kept={}) for packed in batch]
        outcomes: list[Outcome] = self._call("put_many", (bare, kept), {})
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                outcome.__cause__ = StoreRaisedError()
        stored: Future[list[Outcome]] = Future()
        stored.set_result(outcomes)
        return stored

    def visible(self, may_use: Callable[[str], bool]) -> "VisibleHistory":
        """Return what the caller may see; to open it raises a problem without a store."""
        from rprime.application.stored_sides import VisibleHistory  # noqa: PLC0415 (see above)

        def opened() -> "Store":
            self._call("open", (), {})
            return self.as_store

        return VisibleHistory(opened, may_use)

    @property
    def as_store(self) -> "Store":
        """The same as a store, of which it has what a worker needs."""
        return cast("Store", self)

    def _call(self, name: str, args: Sequence[object], kwargs: dict[str, object]) -> Any:  # noqa: ANN401 (of any method)
        call = pickle.dumps((name, args, kwargs), protocol=5)
        answer = pickle.loads(self._channel.call(call))  # noqa: S301 (from the service itself)
        if isinstance(answer, Raised):
            raise answer.error or StoreRaisedError() from StoreRaisedError()
        return answer
