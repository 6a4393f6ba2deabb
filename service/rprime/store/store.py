"""The store of evaluations, over SQLite or PostgreSQL."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future  # noqa: TC003 - FastAPI reads annotations
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, delete, func, make_url, select
from sqlalchemy.exc import ArgumentError

from rprime.core.items import Items
from rprime.schemas.history import ImportReport, PurgeReport
from rprime.store import aliases as alias_queries
from rprime.store import baselines, evaluations, insertion, revoked_sessions, transfer
from rprime.store import projects as project_queries
from rprime.store.compression import digest_bytes
from rprime.store.database import OK, Database, DatabaseOptions, trial
from rprime.store.errors import StoreDamagedError, StoreError, StoreFullError, StoreUrlError
from rprime.store.evaluations import EvaluationMissingError, stacks
from rprime.store.insertion import Idempotency, Outcome, Packed, Replay
from rprime.store.postgresql import open_postgresql
from rprime.store.projects import ProjectMissingError, Retention
from rprime.store.records import ALL, Filters, NewEvaluation, Stack, StoredEvaluation
from rprime.store.schema import aliases, looks, replays
from rprime.store.schema import evaluations as rows
from rprime.store.sqlite import open_sqlite
from rprime.store.transfer import steps
from rprime.store.use import changed, waiting
from rprime.store.writer import Writer

P = ParamSpec("P")
T = TypeVar("T")

DEFAULTS = DatabaseOptions()
_DRIVERS = {"sqlite", "sqlite+pysqlite", "postgresql", "postgresql+psycopg"}
_FORMS = "It may be sqlite:///rprime.db, postgresql://USER:PASSWORD@HOST/DATABASE, or none."
_MOST_BEGUN = 10_000
"""Most projects that are remembered to have evaluations."""
_TRIAL_SECONDS = 1.0
_SWEEP_MILLISECONDS = 10 * 60 * 1000


class KeyRunningError(Exception):
    """A request with this idempotency key is still running."""


def _reads(work: Callable[Concatenate[Connection, P], T]) -> Callable[Concatenate["Store", P], T]:
    """Return a method that runs a function of a connection in a reading transaction."""

    @wraps(work)
    def method(store: "Store", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return store.database.read(lambda connection: work(connection, *args, **kwargs))

    return method


def _writes(work: Callable[Concatenate[Connection, P], T]) -> Callable[Concatenate["Store", P], T]:
    """Return a method that runs a function of a connection in a transaction of the writer."""

    @wraps(work)
    def method(store: "Store", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return store.write(lambda connection: work(connection, *args, **kwargs))

    return method


class Store:
    """A history of evaluations.

    All methods block, so an event loop runs them in a thread; only `put_many` returns a future.
    A read-only store has no writer; the clock returns the milliseconds since 1970.
    """

    def __init__(self, database: Database, writer: Writer | None, clock: Callable[[], int]) -> None:
        self.database = database
        self._clock = clock
        self._writer = writer
        self._begun: set[str] = set()
        self._running: set[bytes] = set()
        self._holding = Lock()
        self._sweeping = Lock()
        self._swept = 0

    def pack(self, new: NewEvaluation, *, idempotency: Idempotency | None = None) -> Packed:
        """Turn an evaluation into rows for `put_many`, without the database.

        Packing many items takes milliseconds. A name may raise `InvalidRecordError`.
        """
        return insertion.pack(new, idempotency, self._clock())

    def put_many(self, batch: Sequence[Packed]) -> "Future[list[Outcome]]":
        """Store at least one evaluation, each with its items, look and answer, or none of it.

        The future resolves when all of it is on the disk. It has the outcome of each in order, or
        the `KeyReusedError`, `LookMovedError`, `EvaluationExistsError` or `StoreError` of it.
        """
        if any(packed.replay is not None for packed in batch):
            self._sweep(self._clock())
        return self._writing().put(batch)

    @property
    def waiting(self) -> int:
        """How many changes wait to be written; a batch counts once."""
        return 0 if self._writer is None else self._writer.waiting

    def replay(self, owner: str, key: str, payload: bytes) -> Replay | None:
        """Return the answer to the first request with an idempotency key, for 24 hours.

        `KeyReusedError` if it had another payload, `EvaluationDeletedError` if its evaluation is
        gone.
        """
        name, now = insertion.replay_key(owner, key), self._clock()
        return self.database.read(lambda c: insertion.find_replay(c, name, payload, now))

    @contextmanager
    def running(self, owner: str, key: str) -> Iterator[None]:
        """Hold an idempotency key while its request is answered.

        Look for a `replay` while holding the key; before, the first request could end in between.
        Other processes are not held up: of two with one key the first to commit stores its answer,
        and the other returns that.
        """
        held = insertion.replay_key(owner, key)
        with self._holding:
            if held in self._running:
                raise KeyRunningError
            self._running.add(held)
        try:
            yield
        finally:
            with self._holding:
                self._running.discard(held)

    def looks(self, project: str, fingerprint: str) -> int:
        """Count the evaluations that were stored on a test set, deleted ones included.

        The same predictions count once, as long as one of their evaluations is stored.
        """
        key = digest_bytes(fingerprint)
        query = select(looks.c.looks).where(looks.c.project == project, looks.c.fingerprint == key)
        return self.database.read(lambda c: c.scalar(query)) or 0

    def next_look(self, project: str, fingerprint: str, input_digest: str) -> int:
        """Return the number of the look that storing this evidence would be.

        It is `looks + 1`, and `looks` if the same evidence is stored. Judge the gate by it and set
        `NewEvaluation.look`: if another evaluation is first, storing it fails with `LookMovedError`
        and the right number, so that no two candidates have the same look.
        """
        key = (project, digest_bytes(fingerprint), digest_bytes(input_digest))
        return self.database.read(lambda c: insertion.next_look(c, key))

    def get(self, identifier: str) -> StoredEvaluation:
        """Read an evaluation, without its items; `EvaluationMissingError` if none has this id."""
        try:
            return self.database.read(lambda c: evaluations.get(c, identifier))
        except EvaluationMissingError:
            if self.database.health.state == StoreDamagedError.cause:
                # It may have been lost.
                raise StoreDamagedError from None
            raise

    def items(self, identifier: str) -> Items | None:
        """Read the items of an evaluation; None if none were stored."""
        sliced_items = self.sliced_items(identifier)
        return None if sliced_items is None else sliced_items[0]

    sliced_items = _reads(evaluations.sliced_items)
    scores = _reads(evaluations.kept_scores)
    slices = _reads(evaluations.kept_slices)
    slice_names = _reads(evaluations.slice_names)
    page = _reads(evaluations.page)
    count = _reads(evaluations.count_evaluations)
    delete = _writes(evaluations.delete)

    def tables(
        self,
        project: str,
        filters: Filters = ALL,
        *,
        newest: int | None = None,
        scored: bool = False,
    ) -> Iterator[Stack]:
        """Read tables as stacks, one for all evaluations over the same classes.

        A history of more than 64 MiB of counts needs several stacks. Exhaust or close the iterator:
        it holds a connection. At most so many of the newest evaluations are read;
        their `score_values` only if scored,
        and none of a slice.
        """
        return stacks(self.database, project, filters, newest=newest, scored=scored)

    projects = _reads(project_queries.read_all)
    models = _reads(project_queries.models)
    branches = _reads(project_queries.branches)
    setting = _reads(project_queries.setting)
    put_settings = _writes(project_queries.put_settings)

    def has_begun(self, project: str) -> bool:
        """Whether this store has seen an evaluation of a project; does not block."""
        return project in self._begun

    def is_empty(self, project: str) -> bool:
        """Whether a project has no evaluation."""
        if self.has_begun(project) or self._has_evaluation(project):
            if len(self._begun) >= _MOST_BEGUN:
                self._begun.clear()
            self._begun.add(project)
            return False
        return True

    _has_evaluation = _reads(project_queries.has_evaluation)

    def delete_project(self, name: str) -> int:
        """Delete a project with its look counts; return how many evaluations it had."""
        self._begun.discard(name)
        try:
            return self.write(lambda c: project_queries.delete(c, name))
        except StoreFullError:
            self.write(lambda c: c.execute(aliases.delete().where(aliases.c.project == name)))
            purged = self.purge(name, Retention())
            return purged.deleted + self.write(lambda c: project_queries.clear(c, name))

    def revoke_session(self, session: str, expires: int) -> None:
        """Record that the session of a browser has ended."""
        now = self._clock() / 1000
        self.write(lambda c: revoked_sessions.revoke(c, session, expires, now))

    is_session_revoked = _reads(revoked_sessions.is_revoked)

    def purge(self, project: str, keep: Retention, *, dry_run: bool = False) -> PurgeReport:
        """Delete the evaluations of a project that no criterion keeps, in steps.

        A dry run only counts.
        """
        self._begun.discard(project)
        doomed, counts = self.database.read(
            lambda c: project_queries.unwanted(c, project, keep, dry_run=dry_run)
        )
        if dry_run or not doomed:
            return counts
        size = project_queries.MOST_IN_A_STEP
        steps = (doomed[start : start + size] for start in range(0, len(doomed), size))
        deleted = sum(map(self._delete_unaliased, steps))
        # On a full disk they may stay until the next purge.
        with suppress(StoreFullError):
            self.write(project_queries.drop_unused)
        kept = counts.kept + counts.deleted - deleted
        return counts.model_copy(update={"deleted": deleted, "kept": kept})

    def _delete_unaliased(self, step: Sequence[str]) -> int:
        """Delete in one transaction, or in two halves if a full disk has no room for one."""
        try:
            return self.write(lambda c: project_queries.delete_unaliased(c, step))
        except StoreFullError:
            middle = len(step) // 2
            if not middle:
                raise
            return sum(map(self._delete_unaliased, (step[:middle], step[middle:])))

    aliases = _reads(alias_queries.read_all)
    alias = _reads(alias_queries.get)
    alias_changes = _reads(alias_queries.changes)
    put_alias = _writes(alias_queries.put)
    delete_alias = _writes(alias_queries.delete)

    baseline = _reads(baselines.resolve)

    def export(self, project: str | None = None) -> Iterator[bytes]:
        """Write the store, or one project, as lines of JSON; no connection is held between them.

        `ProjectMissingError` if there is no such project.
        """
        if project is not None and all(other.name != project for other in self.projects()):
            raise ProjectMissingError
        return transfer.export(self.database, project)

    def import_lines(self, lines: Iterable[bytes]) -> ImportReport:
        """Add the records of an export that this store lacks; repeating it changes nothing.

        `InvalidExportError` at an invalid line; the lines before it may have been added.
        """
        counts = Counter(dict.fromkeys(ImportReport.model_fields, 0))
        for step in steps(lines):
            counts.update(self.write(lambda c: transfer.write(c, step)))  # noqa: B023 - called at once
        return ImportReport(**counts)

    def newest(self) -> str | None:
        """Return the newest evaluation of all projects, by its id; None if there is none."""
        identifier: str | None = self.database.read(lambda c: c.scalar(select(func.max(rows.c.id))))
        return identifier

    def check(self) -> str:
        """Return the state of the store, one of `STATES`; try to write if it was not "ok".

        A store that cannot be read, or is damaged, raises its `StoreError`.
        """
        self.database.read(lambda c: c.scalar(select(rows.c.id).limit(1)))
        health = self.database.health
        if health.state == StoreDamagedError.cause:
            raise StoreDamagedError
        if health.state != OK:
            with suppress(StoreError, TimeoutError):
                for work in trial():
                    self._writing().do(work, waits=False).result(_TRIAL_SECONDS)
        return health.state

    def backup(self, path: Path) -> None:
        """Write a copy of a SQLite store to a new file while it is in use."""
        self.database.backup(path)

    def close(self) -> None:
        """Write the waiting changes, then release the database."""
        if self._writer is not None:
            self._writer.close()
        self.database.close()

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run a function in a transaction; return its result when it is on the disk."""
        with waiting():
            result = self._writing().do(work).result()
        changed()
        return result

    def _writing(self) -> Writer:
        if self._writer is None:
            raise StoreError("The store was opened for reading only.")
        if self.database.health.state == StoreDamagedError.cause:
            # What is acknowledged must be found again.
            raise StoreDamagedError
        return self._writer

    def _sweep(self, now: int) -> None:
        """Delete expired answers now and then."""
        with self._sweeping:
            due = now - self._swept >= _SWEEP_MILLISECONDS
            self._swept = now if due else self._swept
        if due:
            # Nothing waits for the deletion: expired answers are never returned.
            self._writing().do(lambda c: c.execute(delete(replays).where(replays.c.expires <= now)))


def milliseconds() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def open_store(
    url: str,
    *,
    read_only: bool = False,
    options: DatabaseOptions = DEFAULTS,
    clock: Callable[[], int] = milliseconds,
) -> Store:
    """Open a store; create or migrate its tables. A `StoreError` says how to fix what fails.

    Parameters
    ----------
    url
        `sqlite:///rprime.db`, `sqlite:////var/lib/rprime.db`, `postgresql://...`.
    read_only
        Open a SQLite file beside the serving process, for an export or a backup.
    clock
        The time in milliseconds, for the expiry of idempotency keys.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as exc:
        raise StoreUrlError(f"RPRIME_STORE is no SQLAlchemy URL. {_FORMS}") from exc
    if parsed.drivername not in _DRIVERS:
        raise StoreUrlError(f"A store cannot be {parsed.drivername}. {_FORMS}")
    database: Database
    if parsed.get_backend_name() == "sqlite":
        database = open_sqlite(parsed, read_only=read_only, lock_seconds=options.lock_seconds)
    else:
        database = open_postgresql(parsed, read_only=read_only, options=options)
    writer = None if read_only else Writer(database, clock, options.project_bytes)
    return Store(database, writer, clock)
