"""The store of evaluations, over SQLite or PostgreSQL."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future  # noqa: TC003 - FastAPI reads annotations
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TypeVar

from sqlalchemy import Connection, delete, select

from rprime.core.gates.sliced import Slice
from rprime.core.items import Items
from rprime.core.scores.summary import ScoreSummary
from rprime.core.slices.slices import SliceName, Slices
from rprime.store import aliases, baselines, evaluations, projects, revoked_sessions, transfer
from rprime.store import insertion as submission
from rprime.store.aliases import Alias, AliasChange, AliasPut, Expected
from rprime.store.baselines import Baseline, BaselineQuery
from rprime.store.compression import digest_bytes
from rprime.store.database import Database
from rprime.store.errors import StoreDamagedError, StoreError, StoreFullError
from rprime.store.evaluations import EvaluationMissingError
from rprime.store.health import OK, trial
from rprime.store.insertion import Idempotency, Outcome, Packed, Replay
from rprime.store.packed_items import Columns
from rprime.store.projects import Purged, Retention
from rprime.store.records import (
    ALL,
    EvaluationPage,
    Filters,
    ModelSummary,
    NewEvaluation,
    Project,
    Stack,
    StoredEvaluation,
)
from rprime.store.running_keys import RunningKeys
from rprime.store.schema import looks, replays
from rprime.store.stacks import stacks
from rprime.store.transfer import Imported
from rprime.store.use import changed, waiting
from rprime.store.writer import Writer

T = TypeVar("T")

LARGEST_PAGE_VALUES = 200
_MOST_BEGUN = 10_000
"""Most projects that are remembered to have evaluations."""
_TRIAL_SECONDS = 1.0
_SWEEP_MILLISECONDS = 10 * 60 * 1000


class Store:
    """A history of evaluations.

    All methods block, so an event loop runs them in a thread; only `put_many` returns a future.

    Parameters
    ----------
    database
        The database of the store.
    writer
        The thread that writes to it; None for a read-only store.
    clock
        Returns the milliseconds since 1970.
    """

    def __init__(self, database: Database, writer: Writer | None, clock: Callable[[], int]) -> None:
        self.database = database
        self._read = database.read
        self._clock = clock
        self._writer = writer
        self._begun: set[str] = set()
        self._running = RunningKeys()
        self._sweeping = Lock()
        self._swept = 0

    def pack(self, new: NewEvaluation, *, idempotency: Idempotency | None = None) -> Packed:
        """Turn an evaluation into rows for `put_many`, without the database.

        Packing many items takes milliseconds.

        Raises
        ------
        InvalidRecordError
            If the store cannot hold a name.
        """
        return submission.pack(new, idempotency, self._clock())

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

        Raises
        ------
        KeyReusedError
            If that request had another payload.
        EvaluationDeletedError
            If its evaluation was deleted.
        """
        name, now = submission.replay_key(owner, key), self._clock()
        return self._read(lambda c: submission.find_replay(c, name, payload, now))

    def running(self, owner: str, key: str) -> AbstractContextManager[None]:
        """Hold an idempotency key while its request is answered.

        Look for a `replay` while holding the key; before, the first request could end in between.
        Other processes are not held up: of two with one key the first to commit stores its answer,
        and the other returns that.

        Raises
        ------
        KeyRunningError
            If another request of this process holds it.
        """
        return self._running.hold(submission.replay_key(owner, key))

    def looks(self, project: str, fingerprint: str) -> int:
        """Count the evaluations that were stored on a test set, deleted ones included.

        The next one is look `looks + 1`. Judge the gate by that number and set
        `NewEvaluation.look`: if another evaluation is first, storing it fails with `LookMovedError`
        and the right number, so that no two gates have the same look.
        """
        key = digest_bytes(fingerprint)
        query = select(looks.c.looks).where(looks.c.project == project, looks.c.fingerprint == key)
        return self._read(lambda c: c.scalar(query)) or 0

    def get(self, identifier: str) -> StoredEvaluation:
        """Read an evaluation, without its items.

        Raises
        ------
        EvaluationMissingError
            If no evaluation has this id.
        """
        try:
            return self._read(lambda c: evaluations.get(c, identifier))
        except EvaluationMissingError:
            if self.database.health.state == StoreDamagedError.cause:
                # It may have been lost.
                raise StoreDamagedError from None
            raise

    def items(self, identifier: str) -> Items | None:
        """Read the items of an evaluation; None if none were stored."""
        found = self.sliced_items(identifier)
        return None if found is None else found[0]

    def sliced_items(self, identifier: str) -> tuple[Items, Columns] | None:
        """Read the items of an evaluation with the columns that slices are of, if any were sent."""
        return self._read(lambda c: evaluations.kept_items(c, identifier))

    def scores(self, identifier: str) -> ScoreSummary | None:
        """Read what is drawn of the scores of an evaluation; None if nothing was stored."""
        return self._read(lambda c: evaluations.kept_scores(c, identifier))

    def slices(self, stored: StoredEvaluation, one: Slice = ()) -> Slices | None:
        """Read the slices of an evaluation, or one of them; None if it has none."""
        k = len(stored.labels)
        return self._read(lambda c: evaluations.kept_slices(c, stored.id, k, one))

    def slice_names(self, project: str, filters: Filters = ALL) -> tuple[SliceName, ...]:
        """Read the names of the slices of the newest matching evaluation that has some.

        Only the newest 1000 evaluations are searched, whatever slice the filters name.
        """
        return self._read(lambda c: evaluations.slice_names(c, project, filters))

    def delete(self, identifier: str) -> None:
        """Delete an evaluation; the looks at its test set stay counted.

        Raises
        ------
        EvaluationMissingError
            If no evaluation has this id.
        EvaluationAliasedError
            If an alias points at it.
        """
        self._write(lambda c: evaluations.delete(c, identifier))

    def page(
        self, project: str, filters: Filters = ALL, *, limit: int = 50, cursor: str | None = None
    ) -> EvaluationPage:
        """List evaluations, newest first.

        Parameters
        ----------
        project, filters
            The matching evaluations.
        limit
            Most evaluations of the page, up to 200.
        cursor
            `next_cursor` of the previous page.

        Raises
        ------
        InvalidCursorError
            If the cursor is not from a page.
        """
        size = max(1, min(limit, LARGEST_PAGE_VALUES))
        return self._read(
            lambda c: evaluations.page(c, project, filters, limit=size, cursor=cursor)
        )

    def count(self, project: str, filters: Filters = ALL) -> int:
        """Count evaluations."""
        return self._read(lambda c: evaluations.count(c, project, filters))

    def tables(
        self, project: str, filters: Filters = ALL, *, newest: int | None = None
    ) -> Iterator[Stack]:
        """Read tables as stacks, one for all evaluations over the same classes.

        A history of more than 64 MiB of counts needs several stacks. Exhaust or close the iterator:
        it holds a connection.

        Parameters
        ----------
        project, filters
            The matching evaluations.
        newest
            Most evaluations, from the newest.
        """
        return stacks(self.database, project, filters, newest=newest)

    def projects(self) -> tuple[Project, ...]:
        """List the projects by name, with their counts."""
        return self._read(projects.read_all)

    def has_begun(self, project: str) -> bool:
        """Whether this store has seen an evaluation of a project; does not block."""
        return project in self._begun

    def is_empty(self, project: str) -> bool:
        """Whether a project has no evaluation."""
        if self.has_begun(project) or self._read(lambda c: projects.has_evaluation(c, project)):
            if len(self._begun) >= _MOST_BEGUN:
                self._begun.clear()
            self._begun.add(project)
            return False
        return True

    def models(self, project: str) -> tuple[ModelSummary, ...]:
        """List the models of a project with their counts, the most recently evaluated first."""
        return self._read(lambda c: projects.models(c, project))

    def branches(self, project: str) -> tuple[str, ...]:
        """List the branches of a project, sorted by name."""
        return self._read(lambda c: projects.branches(c, project))

    def delete_project(self, name: str) -> int:
        """Delete a project with its look counts; return how many evaluations it had.

        Raises
        ------
        ProjectMissingError
            If there is no such project.
        """
        self._begun.discard(name)
        try:
            return self._write(lambda c: projects.delete(c, name))
        except StoreFullError:
            self._write(lambda c: projects.delete_aliases(c, name))
            purged = self.purge(name, Retention())
            return purged.deleted + self._write(lambda c: projects.clear(c, name))

    def revoke_session(self, session: str, expires: int) -> None:
        """Record that the session of a browser has ended."""
        now = self._clock() / 1000
        self._write(lambda c: revoked_sessions.revoke(c, session, expires, now))

    def is_session_revoked(self, session: str, expires: int) -> bool:
        """Whether the session of a browser has ended."""
        return self._read(lambda c: revoked_sessions.is_revoked(c, session, expires))

    def setting(self, project: str, name: str) -> bool:
        """Return a setting of a project, one of `projects.SETTINGS`."""
        return self._read(lambda c: projects.setting(c, project, name))

    def put_settings(self, project: str, **given: bool) -> None:
        """Change settings of a project; those that are not given stay as they are."""
        self._write(lambda c: projects.put_settings(c, project, given))

    def purge(self, project: str, keep: Retention, *, dry_run: bool = False) -> Purged:
        """Delete the evaluations of a project that no criterion keeps, in steps.

        Parameters
        ----------
        project
            Which one.
        keep
            The criteria to keep evaluations, besides aliases.
        dry_run
            Whether only to count.
        """
        self._begun.discard(project)
        doomed, counts = self._read(lambda c: projects.unwanted(c, project, keep))
        if dry_run or not doomed:
            return counts
        size = projects.MOST_IN_A_STEP
        steps = (doomed[start : start + size] for start in range(0, len(doomed), size))
        deleted = sum(map(self._delete_unaliased, steps))
        # On a full disk they may stay until the next purge.
        with suppress(StoreFullError):
            self._write(projects.drop_unused)
        return replace(counts, deleted=deleted, kept=counts.kept + counts.deleted - deleted)

    def _delete_unaliased(self, step: Sequence[str]) -> int:
        """Delete in one transaction, or in two halves if a full disk has no room for one."""
        try:
            return self._write(lambda c: projects.delete_unaliased(c, step))
        except StoreFullError:
            middle = len(step) // 2
            if not middle:
                raise
            return sum(map(self._delete_unaliased, (step[:middle], step[middle:])))

    def aliases(self, project: str) -> tuple[Alias, ...]:
        """List the aliases of a project by name."""
        return self._read(lambda c: aliases.read_all(c, project))

    def alias(self, project: str, name: str) -> Alias:
        """Read an alias.

        Raises
        ------
        AliasMissingError
            If there is no such alias.
        """
        return self._read(lambda c: aliases.get(c, project, name))

    def alias_changes(
        self, project: str, name: str, *, limit: int | None = None
    ) -> tuple[AliasChange, ...]:
        """List what an alias pointed at, newest first; empty if there never was such an alias.

        The newest 1,000 changes are kept, without those to evaluations that were deleted.
        """
        return self._read(lambda c: aliases.changes(c, project, name, limit))

    def put_alias(
        self, project: str, name: str, *, evaluation: str, expected: Expected, by: str | None = None
    ) -> AliasPut:
        """Point an alias at an evaluation, if it is as expected; `by` is who does so.

        Raises
        ------
        AliasChangedError
            If it is not as expected.
        EvaluationMissingError
            If the project has no such evaluation.
        """
        place = (project, name)
        return self._write(
            lambda c: aliases.put(c, place, evaluation=evaluation, expected=expected, by=by)
        )

    def delete_alias(
        self, project: str, name: str, *, expected: Expected, by: str | None = None
    ) -> None:
        """Delete an alias, if it is as expected; its changes stay known.

        Raises
        ------
        AliasMissingError
            If there is no such alias.
        AliasChangedError
            If it is not as expected.
        """
        place = (project, name)
        self._write(lambda c: aliases.delete(c, place, expected=expected, by=by))

    def baseline(self, project: str, query: BaselineQuery, *, model: str | None) -> Baseline:
        """Find the evaluation that a candidate of a model has as its baseline, with the reason.

        Raises
        ------
        BaselineNotFoundError
            If the query names what does not exist.
        """
        return self._read(lambda c: baselines.resolve(c, project, query, model=model))

    def export(self, project: str | None = None) -> Iterator[bytes]:
        """Write the store, or one project, as lines of JSON; no connection is held between them."""
        return transfer.export(self.database, project)

    def import_lines(self, lines: Iterable[bytes]) -> Imported:
        """Add the records of an export that this store lacks; repeating it changes nothing.

        Raises
        ------
        InvalidExportError
            At an invalid line; the lines before it may have been added.
        """
        total = Imported()
        for step in transfer.steps(lines):
            total += self._write(lambda c: transfer.write(c, step))  # noqa: B023 - called at once
        return total

    def check(self) -> str:
        """Return the state of the store, one of `health.STATES`; try to write if it was not "ok".

        Raises
        ------
        StoreError
            If it cannot be read, or is damaged.
        """
        self._read(lambda c: c.scalar(select(replays.c.key).limit(1)))
        health = self.database.health
        if health.state == StoreDamagedError.cause:
            raise StoreDamagedError
        if health.state != OK:
            with suppress(StoreError, TimeoutError):
                for work in trial():
                    self._writing().do(work, waits=False).result(_TRIAL_SECONDS)
        return health.state

    def backup(self, path: Path) -> None:
        """Write a copy of a SQLite store while it is in use.

        Raises
        ------
        StoreError
            If the file exists, or the store is a PostgreSQL one.
        """
        self.database.backup(path)

    def close(self) -> None:
        """Write the waiting changes, then release the database."""
        if self._writer is not None:
            self._writer.close()
        self.database.close()

    def _write(self, work: Callable[[Connection], T]) -> T:
        with waiting():
            result = self._writing().do(work).result()
        changed()
        return result

    def _writing(self) -> Writer:
        if self._writer is None:
            raise StoreError("The store was opened for reading only.")
        return self._writer

    def _sweep(self, now: int) -> None:
        """Delete expired answers now and then."""
        with self._sweeping:
            due = now - self._swept >= _SWEEP_MILLISECONDS
            self._swept = now if due else self._swept
        if due:
            # Nothing waits for the deletion: expired answers are never returned.
            self._writing().do(lambda c: c.execute(delete(replays).where(replays.c.expires <= now)))
