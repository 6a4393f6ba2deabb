"""Tabulation: what the overview lists, in words and marks, ready for its templates."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rprime.core.catalog import find
from rprime.core.index import Index
from rprime.dashboard.listings import HEADLINES, ListingRow
from rprime.history.series import Point
from rprime.report.decimals import decimal, span
from rprime.report.marks import Axis, Mark, axis_of, mark_of
from rprime.report.measures import Measure
from rprime.report.names import shown
from rprime.report.reasons import explained
from rprime.report.remarks import Remark
from rprime.report.verdicts import HEADLINES as VERDICTS
from rprime.report.verdicts import Headline
from rprime.report.view import Term
from rprime.store import Alias, EvaluationSummary, Project, Store


@dataclass(frozen=True, slots=True)
class Moment:
    """A time: for machines, and for people, who know that it is UTC."""

    iso: str
    day: str
    clock: str

    @classmethod
    def of(cls, moment: datetime) -> "Moment":
        """Write a time."""
        return cls(moment.isoformat(timespec="seconds"), f"{moment:%Y-%m-%d}", f"{moment:%H:%M}")

    @property
    def words(self) -> str:
        """The whole of it."""
        return f"{self.day} {self.clock}"


@dataclass(frozen=True, slots=True)
class EvaluationEntry:
    """An evaluation in a list; names are those that were given, or empty."""

    id: str
    moment: Moment
    model: str
    version: str
    branch: str
    commit: str
    tags: tuple[str, ...]
    test_set: str
    verdict: Headline
    waived: bool

    @classmethod
    def of(cls, summary: EvaluationSummary) -> "EvaluationEntry":
        """Read a summary."""
        return cls(
            id=summary.id,
            moment=Moment.of(summary.created_at),
            model=_name(summary.model),
            version=_name(summary.version),
            branch=_name(summary.branch),
            commit=_name(summary.commit),
            tags=tuple(map(shown, summary.tags)),
            test_set=_name(summary.test_set),
            verdict=verdict_of(summary.verdict),
            waived=summary.waived,
        )


@dataclass(frozen=True, slots=True)
class TableCell:
    """A value in words, with its mark."""

    value: str
    interval: str
    why: str
    mark: Mark | None


@dataclass(frozen=True, slots=True)
class TableColumn:
    """An index over a list, and the ends of the axis that all its marks have."""

    key: str
    term: Term
    ends: tuple[str, str]


@dataclass(frozen=True, slots=True)
class EvaluationTable:
    """A list of evaluations with their headline indices, and what its marks mean."""

    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[EvaluationEntry, tuple[TableCell, ...]], ...]
    legend: str


@dataclass(frozen=True, slots=True)
class ProjectEntry:
    """A project in the list of all; without an evaluation only its name is known."""

    name: str
    evaluations: int
    newest: EvaluationEntry | None


def project_entries(store: Store, projects: Iterable[Project]) -> list[ProjectEntry]:
    """Put projects with their newest evaluations into words. It reads."""
    return [
        ProjectEntry(
            one.name,
            one.evaluations,
            next(map(EvaluationEntry.of, store.page(one.name, limit=1).items), None),
        )
        for one in projects
    ]


def table_of(rows: Sequence[ListingRow]) -> EvaluationTable:
    """Put evaluations into words and marks."""
    indices = [index for key in HEADLINES if (index := find("overall", key))]
    measured = [
        [measure_of(index, point) for index, point in zip(indices, row.points, strict=True)]
        for row in rows
    ]
    axes = [axis_of(column) for column in zip(*measured, strict=True)] or [Axis(0, 1)] * 3
    return EvaluationTable(
        tuple(
            TableColumn(index.key, Term.of(index), axis.ends)
            for index, axis in zip(indices, axes, strict=True)
        ),
        tuple(
            (EvaluationEntry.of(row.summary), tuple(map(cell_of, of_row, axes)))
            for row, of_row in zip(rows, measured, strict=True)
        ),
        legend_of(measure for of_row in measured for measure in of_row),
    )


def legend_of(measures: Iterable[Measure]) -> str:
    """Explain the mark of values on the classified items alone; empty where none has it."""
    marked = any(measure.marks for measure in measures)
    return f"{CLASSIFIED_ONLY.mark} {CLASSIFIED_ONLY.before}" if marked else ""


def cell_of(measure: Measure, axis: Axis) -> TableCell:
    """Put a value into words, and place it on an axis."""
    return TableCell(
        f"{decimal(measure.value)}{measure.marks}",
        "" if measure.low is None else span(measure.low, measure.high),
        explained(measure.reason) if measure.value is None and measure.reason else "",
        mark_of(measure, axis),
    )


def pointing(aliases: Sequence[Alias]) -> dict[str, list[str]]:
    """Return the names of the aliases that point at each evaluation."""
    found: dict[str, list[str]] = {}
    for alias in aliases:
        found.setdefault(alias.evaluation, []).append(shown(alias.name))
    return found


def verdict_of(word: str | None) -> Headline:
    """Return the words for a stored verdict."""
    known = {None if key is None else str(key): found for key, found in VERDICTS.items()}
    return known.get(word, VERDICTS[None])


def measure_of(index: Index, point: Point) -> Measure:
    """Return the value of a stored evaluation as a rendering shows it."""
    low, high = point.interval or (None, None)
    remarks = (CLASSIFIED_ONLY,) if point.classified_only else ()
    return Measure(index, point.value, low, high, point.reason, remarks=remarks)


CLASSIFIED_ONLY = Remark("classified", "on the classified items alone")


def _name(name: str | None) -> str:
    return shown(name or "")
