"""What a store takes and gives: plain values, without a trace of the database."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from rprime.core.table import ConfusionTable
from rprime.store import ids
from rprime.store.compression import content_key
from rprime.store.packed_items import KeptItems

LONGEST_NAME = 255


class InvalidRecordError(ValueError):
    """A name or tag that a store cannot hold."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NewEvaluation:
    """An evaluation to be stored.

    Parameters
    ----------
    project, model, version, branch, commit, test_set
        Names of up to 255 characters without control characters.
    labels
        Names of the k classes.
    table
        A single table.
    input_digest
        Of the evidence.
    engine_version
        What computed the report.
    tags
        Names, each to filter by.
    fingerprint
        Of the test set. With one, storing the evaluation counts as a look at that test set.
    options, source, gate, comparison, extras
        JSON, kept as given: how it was evaluated, where it comes from, what was answered, and
        whatever else the report needs.
    verdict, waived
        Of the gate: its verdict, and whether some failure of it was waived.
    items
        Per-item codes to keep.
    submission
        Digest of everything that makes a submission the same as an earlier one; without an
        idempotency key an evaluation with the same digest is not stored twice.
    look
        The number of the look by which the gate was judged; storing fails with `LookMovedError`
        where another evaluation was stored meanwhile. None: it was not used.
    id
        Known before it is stored, so that the answer can be stored with it.
    """

    project: str
    labels: tuple[str, ...]
    table: ConfusionTable
    input_digest: str
    engine_version: str
    model: str | None = None
    version: str | None = None
    branch: str | None = None
    commit: str | None = None
    tags: tuple[str, ...] = ()
    test_set: str | None = None
    fingerprint: str | None = None
    options: bytes = b"{}"
    source: bytes | None = None
    gate: bytes | None = None
    comparison: bytes | None = None
    extras: bytes | None = None
    verdict: str | None = None
    waived: bool = False
    items: KeptItems | None = None
    submission: bytes | None = None
    look: int | None = None
    id: str = field(default_factory=ids.new_id)

    def check(self) -> None:
        """Refuse what a database could not hold or not filter by.

        Raises
        ------
        InvalidRecordError
            If a name is empty, too long or has control characters, or the id is none.
        """
        if not ids.is_id(self.id):
            raise InvalidRecordError("The id is none that a store makes.")
        names = (self.model, self.version, self.branch, self.commit, self.test_set, self.verdict)
        check_names(self.project, *self.tags, *(name for name in names if name is not None))


def check_names(*names: str) -> None:
    """Refuse names that a database could not hold or not filter by.

    Raises
    ------
    InvalidRecordError
        If a name is empty, too long or has control characters or lone surrogates.
    """
    for name in names:
        if not 0 < len(name) <= LONGEST_NAME or not _plain(name):
            raise InvalidRecordError(
                f"A name has 1 to {LONGEST_NAME} characters, none of them a control character."
            )


def _plain(name: str) -> bool:
    return name.isprintable() or not any(
        character < " " or "\ud800" <= character <= "\udfff" for character in name
    )


@dataclass(frozen=True, kw_only=True)
class EvaluationSummary:
    """What a list says about an evaluation."""

    id: str
    project: str
    model: str | None
    version: str | None
    branch: str | None
    commit: str | None
    tags: tuple[str, ...]
    test_set: str | None
    fingerprint: str | None
    verdict: str | None
    waived: bool
    keeps_items: bool

    @property
    def created_at(self) -> datetime:
        """When it was made, in UTC."""
        return ids.created_at(self.id)


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredEvaluation(EvaluationSummary):
    """A stored evaluation, without its items."""

    labels: tuple[str, ...]
    table: ConfusionTable
    input_digest: str
    engine_version: str
    options: bytes
    source: bytes | None
    gate: bytes | None
    comparison: bytes | None
    extras: bytes | None

    @cached_property
    def options_digest(self) -> str:
        """The options: the same for the same bytes."""
        return content_key(self.options).hex()


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which evaluations of a project; every filter that is given has to fit.

    Parameters
    ----------
    since
        Made at this time or later; a naive time is UTC.
    tag
        Has it among its tags.
    ids
        Is one of these.
    """

    model: str | None = None
    version: str | None = None
    branch: str | None = None
    test_set: str | None = None
    fingerprint: str | None = None
    verdict: str | None = None
    since: datetime | None = None
    tag: str | None = None
    ids: tuple[str, ...] | None = None


ALL = Filters()


@dataclass(frozen=True)
class EvaluationPage:
    """Summaries, newest first, and where the next page starts; None on the last one."""

    items: tuple[EvaluationSummary, ...]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Project:
    """A project in the list of all."""

    name: str
    evaluations: int
    newest: str | None
    badge_public: bool


@dataclass(frozen=True, kw_only=True)
class ModelSummary:
    """A model in the list of those of a project; the name is None where none was given."""

    name: str | None
    evaluations: int
    newest: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Stack:
    """Evaluations over the same classes as one stack of tables, oldest first.

    The other fields are columns: one entry for each table.
    """

    labels: tuple[str, ...]
    table: ConfusionTable
    ids: tuple[str, ...]
    models: tuple[str | None, ...]
    versions: tuple[str | None, ...]
    branches: tuple[str | None, ...]
    test_sets: tuple[str | None, ...]
    verdicts: tuple[str | None, ...]
    extras: tuple[bytes | None, ...]

    @cached_property
    def created_at(self) -> tuple[datetime, ...]:
        """When each was made, in UTC."""
        return tuple(map(ids.created_at, self.ids))


def tags_text(tags: Iterable[str]) -> str:
    r"""Join tags so that `\ntag\n` is found exactly where that tag is one of them."""
    joined = "\n".join(tags)
    return f"\n{joined}\n" if joined else ""


def tags_of(text: str) -> tuple[str, ...]:
    """Give back what `tags_text` was given."""
    return tuple(text[1:-1].split("\n")) if text else ()
