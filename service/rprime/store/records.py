"""The records that the store reads and writes, independent of the database."""

from dataclasses import dataclass, field, fields
from datetime import datetime

from rprime.core.items import Items
from rprime.core.scores.curves import ScoreSummary
from rprime.core.slices.slices import Slice, Slices
from rprime.core.table import ConfusionTable
from rprime.store import ids

LONGEST_NAME = 255


class InvalidRecordError(ValueError):
    """A name or tag that a store cannot hold."""


@dataclass(frozen=True, kw_only=True)
class Names:
    """The optional names of an evaluation: each a column that lists show and filters find."""

    model: str | None = None
    version: str | None = None
    branch: str | None = None
    commit: str | None = None
    test_set: str | None = None
    verdict: str | None = None


NAMES = tuple(field.name for field in fields(Names))


@dataclass(frozen=True, kw_only=True)
class EvaluationNames(Names):
    """What lists show.

    Names have up to 255 characters without control characters. With a fingerprint, the digest of
    the test set, storing counts as a look at that test set.
    """

    project: str
    tags: tuple[str, ...] = ()
    fingerprint: str | None = None
    waived: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluationContent:
    """What was evaluated, and how: a single table, and JSON that is stored unchanged."""

    labels: tuple[str, ...]
    table: ConfusionTable
    input_digest: str
    engine_version: str
    options: bytes = b'{"options":{}}'
    source: bytes | None = None
    gate: bytes | None = None
    comparison: bytes | None = None
    extras: bytes | None = None
    score_values: bytes | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class NewEvaluation(EvaluationNames, EvaluationContent):
    """An evaluation to be stored; its id is made before, so that the answer can be stored, too.

    Parameters
    ----------
    submission
        The digest that recognises a repetition: an evaluation with the same digest is not stored
        twice.
    look
        The number of the look that judged the gate; storing fails with `LookMovedError` if another
        evaluation was stored meanwhile. None if the gate did not use it.
    """

    items: Items | None = None
    scores: ScoreSummary | None = None
    slices: Slices | None = None
    submission: bytes | None = None
    look: int | None = None
    id: str = field(default_factory=ids.new_id)

    def check(self) -> None:
        """Refuse a malformed id and what `check_names` refuses."""
        if not ids.is_id(self.id):
            raise InvalidRecordError("The id is not one that a store makes.")
        names = (getattr(self, name) for name in NAMES)
        check_names(self.project, *self.tags, *(name for name in names if name is not None))


def check_names(*names: str) -> None:
    """Refuse empty and too long names, control characters and lone surrogates."""
    for name in names:
        plain = name.isprintable() or not any(
            character < " " or "\ud800" <= character <= "\udfff" for character in name
        )
        if not plain or not 0 < len(name) <= LONGEST_NAME:
            raise InvalidRecordError(
                f"A name has 1 to {LONGEST_NAME} characters, none of them a control character."
            )


@dataclass(frozen=True, kw_only=True)
class EvaluationSummary(EvaluationNames):
    """An evaluation in a list."""

    id: str
    keeps_items: bool

    @property
    def created_at(self) -> datetime:
        """The creation time, in UTC."""
        return ids.created_at(self.id)


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredEvaluation(EvaluationSummary, EvaluationContent):
    """A stored evaluation, without its items."""


@dataclass(frozen=True, kw_only=True)
class Filters(Names):
    """Filters of the evaluations of a project; all of them must match.

    A naive time is UTC. With a slice `Store.tables` reads its tables alone.
    """

    fingerprint: str | None = None
    since: datetime | None = None
    tag: str | None = None
    ids: tuple[str, ...] | None = None
    slice: Slice = ()


ALL = Filters()


@dataclass(frozen=True, kw_only=True)
class ModelSummary:
    """A model in the list of a project; the name is None for evaluations without one."""

    name: str | None
    evaluations: int
    newest: str


@dataclass(frozen=True, eq=False)
class Stack:
    """Evaluations over the same classes as one stack of tables, oldest first.

    The other fields are columns: one entry for each table. There are no `score_values` unless these
    were asked for.
    """

    labels: tuple[str, ...]
    table: ConfusionTable
    ids: tuple[str, ...]
    models: tuple[str | None, ...]
    versions: tuple[str | None, ...]
    test_sets: tuple[str | None, ...]
    verdicts: tuple[str | None, ...]
    extras: tuple[bytes | None, ...]
    options: tuple[bytes, ...]
    score_values: tuple[bytes | None, ...] = ()
