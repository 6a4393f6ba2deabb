"""A stored evaluation as it was, computed again from its table."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import orjson

from rprime import __version__
from rprime.application.population import refuse_evidence, stands_for_population
from rprime.application.stored_sides import (
    asks_every_result,
    extras_of,
    kept_scores_of,
    read_options,
    table_of_stored,
    with_options,
)
from rprime.core.catalog import CLASS_INDICES, OVERALL_INDICES
from rprime.core.comparison.alignment import Side
from rprime.core.evaluate import Evaluation, evaluate
from rprime.core.index import Families
from rprime.core.index_names import nearest_slices
from rprime.core.items import Items
from rprime.core.options import Options
from rprime.core.population import Population
from rprime.core.scores.curves import ScoreSummary
from rprime.core.slices.evaluation import evaluate_slices
from rprime.core.slices.slices import Slice, SliceName, Slices
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.history.pending_evaluation import metadata_members, store_warnings
from rprime.problems.problem import Problem, refuse
from rprime.report.comparison import without_cells
from rprime.report.document import render
from rprime.report.scores import stored_curves
from rprime.report.slices import shown_slice
from rprime.report.subject import (
    ReportSubject,
    baseline_name,
    evaluation_name,
    read_comparison,
    read_gate,
)
from rprime.schemas.document import from_json
from rprime.schemas.provenance import origin_of
from rprime.store import Filters, Store, StoredEvaluation

NOTHING = b"null"
_UNJUDGED: dict[str, Any] = {"comparison": None, "gate": None, "verdict": None, "waived": False}
_OF_ALL_ITEMS: dict[str, Any] = _UNJUDGED | {"score_values": None}
"""What is not about a slice, or another population."""
_SHOWN = ("id", "created_at", "input_digest")
_UNEQUAL = ("grouped", "items")
"""What is stored beside items that have groups or weights."""
ITEMS_GONE = Warning(
    "items_not_kept",
    "",
    "The items came in groups, or with weights, but were not kept, so that intervals cannot be "
    "computed again.",
    "docs/statistics.md#groups",
)


@dataclass(frozen=True, eq=False)
class StoredReport:
    """A stored evaluation, with items only where these have groups or weights, for its intervals.

    Indices and families are what is computed, None: what it was asked for. With a slice it is all
    about that slice, without comparison and verdict. `already` says that it answers a request which
    stored nothing new, and `listed` are the members that this request asks for and no store keeps.
    `baseline` names the baseline; None: as its request did.
    """

    stored: StoredEvaluation
    items: Items | None
    top_confusions: int
    indices: tuple[str, ...] | None = None
    families: tuple[Families, ...] = ()
    scores: ScoreSummary | None = None
    slices: Slices | None = None
    slice: SliceName = field(default_factory=dict)
    already: Warning | None = None
    listed: Mapping[str, bytes] = field(default_factory=dict)
    baseline: str | None = None

    @cached_property
    def evaluation(self) -> Evaluation:
        """Its values, with what is known of its comparison and its gate."""
        stored = self.stored
        kept = kept_scores_of(stored)
        table = table_of_stored(stored)
        evaluation = evaluate(table, stored.labels, self.options, self.items, kept_scores=kept)
        if self.slices is not None:
            evaluation = replace(
                evaluation, slices=evaluate_slices(self.slices, stored.table, self.options)
            )
        scored = "scored" in self._extras
        sliced = "sliced" in self._extras and self.slices is None
        first = "first" in self._extras and self.already is None
        beside = store_warnings(stored.project, scored=scored, sliced=sliced, first=first)
        return replace(evaluation, warnings=evaluation.warnings + beside + self.warnings)

    @property
    def options(self) -> Options:
        """How it was asked for."""
        options = read_options(self.stored.options, self.top_confusions)
        if self.indices is not None:
            options = replace(options, indices=self.indices, families=self.families)
        return replace(options, intervals=False) if self._lacks_items else options

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """What weakened its comparison or its verdict."""
        warnings = tuple(map(_read_warning, self._extras.get("warnings", ())))
        gone = (ITEMS_GONE,) if self._lacks_items else ()
        return (*warnings, *gone, *(() if self.already is None else (self.already,)))

    def of_indices(self, keys: tuple[str, ...], families: tuple[Families, ...]) -> "StoredReport":
        """Return it with these alone, if there are any; problem 422 for what it cannot have."""
        if not keys and not families:
            return self
        options = read_options(self.stored.options, 0)
        for place, key in enumerate(keys):
            entry = OVERALL_INDICES.get(key) or CLASS_INDICES[key]
            needs = entry.needs
            if entry.scored and entry.scope == "class":
                detail = "The index reads scores, which are not stored, and only overall ones are."
                raise refuse(f"/query/index/{place}", "unknown_index", detail)
            if needs is not None and getattr(options, needs) is None:
                detail = f"The index needs the option `{needs}`, and the evaluation had none."
                raise refuse(f"/query/index/{place}", "option_missing", detail)
        return replace(self, indices=keys, families=families)

    def at(self, population: Population | None) -> "StoredReport":
        """Return it at another population, without what is about the one it was stored with."""
        options = replace(read_options(self.stored.options, 0), population=population)
        content = with_options(self.stored.options, options)
        left = {k: v for k, v in self._extras.items() if k not in {"sliced", "warnings"}}
        stored = replace(self.stored, options=content, extras=orjson.dumps(left), **_OF_ALL_ITEMS)
        return replace(self, stored=stored, scores=None, slices=None)

    def at_equal_shares(self) -> "StoredReport":
        """Return it at equal shares of its classes; problem 422 if its items stand for none."""
        refuse_evidence(self._side, weighed=self.options.cell_weights is not None)
        return self.at(Population.uniform(self.stored.table))

    @property
    def has_equal_shares(self) -> bool:
        """Whether it can be at equal shares of its classes."""
        return stands_for_population(self._side, weighed=self.options.cell_weights is not None)

    @property
    def _side(self) -> Side:
        return Side(labels=self.stored.labels, table=self.stored.table, items=self.items)

    def report(self, *, include: Collection[str] = ()) -> bytes:
        """Render it as the JSON document of the contract."""
        stored = self.stored
        judged = {} if stored.gate is None else {"gate": stored.gate}
        comparison = None if stored.comparison is None else from_json(stored.comparison)
        if stored.comparison is not None and comparison is None:
            judged["comparison"] = stored.comparison
        if comparison is not None and "cells" not in include:
            comparison = without_cells(comparison)
        if "curves" in include and self.scores is not None:
            judged["curves"] = stored_curves(self.scores, stored.labels)
        if self.slice:
            judged["slice"] = orjson.dumps(self.slice)
        return render(
            self.evaluation,
            engine_version=__version__,
            input_digest=stored.input_digest,
            members=metadata_members(stored) | judged | dict(self.listed),
            comparison=comparison,
            include=include,
            every_result=asks_every_result(stored.options),
        )

    @property
    def subject(self) -> ReportSubject:
        """What a rendering shows of it."""
        stored = self.stored
        comparison = read_comparison(stored.comparison)
        return ReportSubject(
            evaluation=self.evaluation,
            engine_version=__version__,
            comparison=comparison,
            gate=read_gate(stored.gate),
            baseline=self.baseline or baseline_name(comparison),
            source=None if stored.source is None else orjson.loads(stored.source),
            kept_scores=self.scores,
            slice=shown_slice(self.slice),
            origin=origin_of(stored),
            **{name: getattr(stored, name) for name in _SHOWN},
        )

    def with_baseline_name(self, store: Store) -> "StoredReport":
        """Name the baseline as the store knows it, if it is in the project of the evaluation.

        What a worker renders takes no store with it. Blocks.
        """
        comparison, project = read_comparison(self.stored.comparison), self.stored.project
        resolved = None if comparison is None else comparison.baseline.resolved
        if resolved is None:
            return self
        page = store.page(project, Filters(ids=(resolved,)), limit=1)
        name = None
        for summary in page.items:
            name = evaluation_name(summary.model, summary.version, summary.created_at)
        aliases = [a.name for a in store.aliases(project) if a.evaluation == resolved]
        return replace(self, baseline=baseline_name(comparison, name, aliases))

    @property
    def _lacks_items(self) -> bool:
        return self.items is None and not self._extras.keys().isdisjoint(_UNEQUAL)

    @cached_property
    def _extras(self) -> dict[str, Any]:
        return extras_of(self.stored)


def _read_warning(document: dict[str, Any]) -> Warning:
    """Read a stored warning; before version 3 its `docs` were its `source`."""
    members = {"docs" if name == "source" else name: value for name, value in document.items()}
    if "classes" in members:
        members["classes"] = tuple(members["classes"])
    return Warning(**members)


def stored_report(
    stored: StoredEvaluation, store: Store, top_confusions: int, slice_: Slice = ()
) -> StoredReport:
    """Gather what it takes to compute a stored evaluation, or one slice of it, again. Blocks."""
    extras = extras_of(stored)
    unequal = stored.table.weighted or "grouped" in extras
    if slice_:
        part = store.slices(stored, slice_)
        if part is None:
            slices = store.slices(stored)
            near = "" if slices is None else nearest_slices(dict(slice_), slices.names)
            raise Problem("not_found", f"The evaluation has no such slice.{near}")
        alone = replace(stored, table=part.tables[0], extras=None, **_OF_ALL_ITEMS)
        return StoredReport(alone, None, top_confusions, slice=part.names[0])
    return StoredReport(
        stored,
        store.items(stored.id) if unequal and stored.keeps_items else None,
        top_confusions,
        scores=store.scores(stored.id) if "curves" in extras else None,
        slices=store.slices(stored) if extras.get("sliced") else None,
    )
