"""Assessment: a candidate held against a baseline and judged by a gate."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypedDict

import orjson

from rprime.application.changed_items import NOT_MATCHED, NOTHING, ChangedItemsPage
from rprime.application.population import check_baseline
from rprime.core.comparison.alignment import Side, constant_side, estimate_together
from rprime.core.comparison.compare import Comparison, compare
from rprime.core.comparison.constant import ConstantKind
from rprime.core.estimates import Estimates
from rprime.core.gates.candidate import MOST_JUDGED, rule_with_too_many_slices
from rprime.core.gates.gate import run_gate
from rprime.core.gates.results import GateResult
from rprime.core.gates.rules import Gate
from rprime.core.options import Options
from rprime.core.population import Population
from rprime.core.published import Json
from rprime.core.selection import requested_keys
from rprime.core.slices.comparison import slice_changes
from rprime.core.slices.evaluation import slice_indices
from rprime.core.slices.slices import Slice
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.evidence import Evidence
from rprime.problems.problem import refuse
from rprime.report.comparison import (
    CELLS,
    cells_document,
    comparison_document,
    render_gate,
    since_document,
)
from rprime.report.subject import constant_name, shares_text
from rprime.schemas.fields import DENSE_CLASSES
from rprime.schemas.provenance import ResolvedSide, TestSet

MOST_COMPARED = 10_000
"""Classes of either side of a comparison, which names the differences of all of them."""


class Accepted(TypedDict):
    """Which missing items count as accepted, as `compare` takes it."""

    accept_removed: bool
    accept_relabelled: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class BaselineSide:
    """The baseline of an assessment, and how it was found.

    Parameters
    ----------
    requested, resolved, why
        What was asked for; the id of a stored evaluation, None for evidence in the request; and
        why it is this one.
    evidence
        Of the request; None for a stored evaluation.
    has_population
        Whether a stored evaluation is about a prevalence.
    name
        What a stored evaluation or a constant classifier is called; None for evidence.
    """

    side: Side
    requested: dict[str, Any]
    resolved: str | None
    why: str
    evidence: Evidence | None = None
    has_population: bool = False
    name: str | None = None

    @property
    def identity(self) -> str | None:
        """The same for the same baseline: its id or kind, or the digest of its evidence."""
        if self.side.constant is not None:
            return f"constant={self.side.constant.kind}"
        return self.resolved if self.evidence is None else self.evidence.input_digest

    @property
    def source(self) -> dict[str, Any]:
        """What an answer says about it."""
        return {"requested": self.requested, "resolved": self.resolved, "why": self.why}


@dataclass(frozen=True, eq=False, kw_only=True)
class Assessment:
    """A candidate, what it is compared with, and what is demanded of it.

    Parameters
    ----------
    options
        Of the evaluation; the comparison has, besides, the indices of the gate.
    look
        How often this test set has been looked at, this time included; None: nobody counted.
    missing
        Why there is no baseline where one was asked for.
    anchor_side, missing_anchor
        The same for the anchor of the gate, its second baseline.
    notes
        How the evidence of both sides was read.
    every_result
        Whether the answer has all results of the gate, however many.
    begins
        Whose first evaluation the candidate is, where that is why there is no baseline.
    slice
        That all sides are; empty: all items.
    slice_indices
        Keys of the indices of slices; empty: those of the options.
    changed_items
        The page of changed items in the answer; None: not asked for.
    """

    candidate: Side
    baseline_side: BaselineSide | None
    options: Options
    gate: Gate | None
    look: int | None = None
    missing: str | None = None
    anchor_side: BaselineSide | None = None
    missing_anchor: str | None = None
    begins: str = ""
    notes: tuple[Warning, ...] = ()
    every_result: bool = False
    slice: Slice = ()
    slice_indices: tuple[str, ...] = ()
    named: ResolvedSide | None = None
    changed_items: ChangedItemsPage | None = None

    def __post_init__(self) -> None:
        constant = None if self.baseline_side is None else self.baseline_side.side.constant
        if constant is not None and constant.is_drawn and self.changed_items is not None:
            detail = (
                f"The predictions of the baseline `{constant.kind}` are expected, so that no item "
                "has one: leave `changed_items` out, or compare with `majority`."
            )
            raise refuse("/changed_items", "no_predictions", detail)
        baselines = [b.side for b in (self.baseline_side, self.anchor_side) if b is not None]
        many = (
            None
            if self.gate is None
            else rule_with_too_many_slices(self.gate.rules, self.candidate, *baselines)
        )
        if many is not None:
            detail = (
                f"All rules of a gate together judge at most {MOST_JUDGED} slices, each rule its "
                "own: name fewer columns, merge values, or leave crossings out."
            )
            raise refuse(f"/gates/rules/{many}/slices", "too_many_slices", detail)
        population = self.options.population
        if population is not None:
            for other in baselines:
                check_baseline(population, self.candidate.labels, other)
        size = max(len(side.labels) for side in (self.candidate, *baselines))
        if baselines and size > MOST_COMPARED:
            detail = (
                f"There are {size:,} classes; a comparison has at most {MOST_COMPARED:,}. "
                "Evaluate each side alone, or merge classes."
            )
            raise refuse("/baseline", "too_many_classes", detail)

    def about(self, population: Population | None) -> "Assessment":
        """Return the assessment at a population, which a constant baseline then is of, too."""
        options, other = replace(self.options, population=population), self.baseline_side
        if other is not None and other.side.constant is not None:
            kind = other.side.constant.kind
            other = constant_baseline(kind, self.candidate, population)
        return replace(self, options=options, baseline_side=other)

    @property
    def population_text(self) -> str | None:
        """What the differences are about, in words; None where it is the items themselves."""
        population = self.options.population
        return None if population is None else shares_text(population, self.candidate.labels)

    @property
    def counts_looks(self) -> bool:
        """Whether the gate has to know how often the test set was used."""
        return self.gate is not None and (self.gate.max_looks is not None or self.gate.spend)

    @cached_property
    def reported(self) -> frozenset[str]:
        """The keys of the indices of the report, which the comparison shows, too."""
        sides = [self.candidate]
        sides += [] if self.baseline_side is None else [self.baseline_side.side]
        return requested_keys(
            self.options,
            scored=any(s.scores is not None or s.kept_scores is not None for s in sides),
            omits=any(side.table.unclassified is not None for side in sides),
        )

    @cached_property
    def compared(self) -> Options:
        """The options, with the indices that the gate needs."""
        if self.gate is None or self.reported.issuperset(self.gate.indices):
            return self.options
        keys = sorted(self.reported.union(self.gate.indices))
        return replace(self.options, indices=tuple(keys), families=())

    @property
    def estimates(self) -> Estimates:
        """The candidate's values, which the report, the comparison and the gate share."""
        if self.baseline_side is not None and self.compared is self.options:
            estimate_together((self.candidate, self.baseline_side.side), self.options)
        return self.candidate.estimates(self.options)

    @property
    def accepted(self) -> Accepted:
        """Which missing items the gate accepts."""
        gate = self.gate
        removed = gate is not None and gate.accept_removed
        return Accepted(
            accept_removed=removed, accept_relabelled=gate is not None and gate.accept_relabelled
        )

    @cached_property
    def comparison(self) -> Comparison | None:
        """The comparison with the baseline, where there is one."""
        if self.baseline_side is None:
            return None
        return compare(self.candidate, self.baseline_side.side, self.compared, **self.accepted)

    @cached_property
    def anchor(self) -> Comparison | None:
        """The comparison with the anchor, where there is one, in the indices of the gate."""
        if self.gate is None or self.anchor_side is None:
            return None
        # Without a rule about an index, the difference is that of the accuracy.
        options = replace(self.options, indices=self.gate.indices or ("accuracy",))
        side = self.anchor_side.side
        return compare(self.candidate, side, options, attributed=(), **self.accepted)

    @cached_property
    def verdict(self) -> GateResult | None:
        """The verdict of the gate, where there is one."""
        if self.gate is None:
            return None
        today = datetime.now(UTC).date()
        return run_gate(
            self.gate,
            self.candidate,
            self.comparison,
            self.compared,
            today=today,
            look=self.look,
            anchor=self.anchor,
        )

    @property
    def is_comparable(self) -> bool:
        """Whether no comparison of the gate is of different test sets."""
        comparisons = (self.comparison, self.anchor)
        return all(c is None or c.comparability != "different" for c in comparisons)

    @cached_property
    def members(self) -> dict[str, bytes]:
        """What it adds to a report, whole, as JSON by name."""
        compared = self.compared_members(CELLS)
        return ({} if compared is None else {"comparison": orjson.dumps(compared)}) | self.judged

    def compared_members(self, include: Collection[str]) -> Json | None:
        """Return the object of the comparison, if any, with its cells where these are included."""
        if self._compared is not None and self.comparison is not None and "cells" in include:
            return self._compared | cells_document(self.comparison)
        return self._compared

    @cached_property
    def _compared(self) -> Json | None:
        if self.comparison is None or self.baseline_side is None:
            return None
        keys = self.slice_indices or slice_indices(self.options)
        source, changes = self.baseline_side.source, slice_changes(self.comparison, keys)
        return comparison_document(self.comparison, source, changes, reported=self.reported)

    @cached_property
    def judged(self) -> dict[str, bytes]:
        """What it adds to a report beside a comparison, as JSON by name."""
        members: dict[str, bytes] = {}
        if self.missing is not None:
            members["comparison"] = NOTHING
        if self.gate is not None and self.verdict is not None:
            since: dict[str, Any] = {"since_anchor": None} if self.gate.anchor_requested else {}
            if since and self.anchor is not None and self.anchor_side is not None:
                since["since_anchor"] = since_document(self.anchor, self.anchor_side.source)
            members["gate"] = render_gate(self.verdict, since)
        if self.changed_items is not None:
            members["changed_items"] = self.changed_items.member(self.comparison)
        return members

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """What the comparison and the verdict could not know, and what weakens them."""
        warnings = [*self.notes, *self._absences]
        slices, other = self.candidate.slices, self.baseline_side
        if slices is not None and other is not None and not other.side.counts_once:
            place = "/comparison/slices"
            warnings.append(Warning("slices_not_compared", place, _NOT_ONCE, "docs/slices.md"))
        if other is not None and other.has_population and self.options.population is None:
            more = "docs/populations.md"
            warnings.append(Warning("baseline_population", "/baseline", _OF_A_POPULATION, more))
        if self.counts_looks and self.look is None:
            more = "docs/gates.md#repeated-looks"
            warnings.append(Warning("looks_not_counted", "/gate/look", _NOT_COUNTED, more))
        if self.judged.get("changed_items") == NOTHING:
            warnings.append(NOT_MATCHED)
        if self.comparison is not None:
            warnings += self.comparison.warnings
        for warning in () if self.anchor is None else self.anchor.warnings:
            detail = f"Against the anchor: {warning.detail}"
            warnings.append(replace(warning, pointer="/gate/since_anchor", detail=detail))
        if self.verdict is not None:
            warnings += self.verdict.warnings
        return tuple(warnings)

    @property
    def _absences(self) -> Iterator[Warning]:
        """Say which baselines are missing, and why."""
        absent = {"/comparison": self.missing, "/gate/since_anchor": self.missing_anchor}
        for place, why in absent.items():
            if why is not None:
                yield Warning("no_baseline", place, why, "docs/gates.md#baselines")
        if self.begins:
            text = f"This is the first evaluation {self.begins}: there is nothing to compare with."
            yield Warning("first_of_model", "/model", text, "docs/gates.md#baselines")


_NOT_ONCE = (
    "The slices are not compared: the items of the baseline are weighted or in groups, and slices "
    "are of independent items that count once. Send the baseline without weights and `groups`."
)
_OF_A_POPULATION = (
    "The baseline was stored with a `population`, and the candidate has none: both sides are "
    "compared on the items as they are. Send the `population`, or that of the baseline as "
    '`{"prevalence": {"evaluation": "<id>"}}`.'
)
_NOT_COUNTED = (
    "The gate divides alpha over the looks at one test set, but nobody counts them: that takes a "
    "`project` and a fingerprint of the test set."
)


def constant_baseline(
    kind: ConstantKind, candidate: Side, population: Population | None
) -> BaselineSide:
    """Return a constant classifier of the candidate's items as its baseline; 422 if it has none."""
    place = "/baseline/constant"
    if candidate.table.spurious is not None:
        detail = (
            "A constant classifier predicts items, and `spurious` counts predictions of none: "
            "leave `spurious` out, or compare with predictions."
        )
        raise refuse(place, "not_with_spurious", detail)
    if kind != "majority" and len(candidate.labels) > DENSE_CLASSES:
        detail = (
            f"There are {len(candidate.labels):,} classes; `{kind}` predicts at most "
            f"{DENSE_CLASSES:,}. Compare with `majority`, or merge classes."
        )
        raise refuse(place, "too_many_classes", detail)
    side = constant_side(kind, candidate, population)
    assert side.constant is not None  # noqa: S101 (it was made so)
    whole = "items" if population is None else "population"
    why = {
        "majority": f"It always predicts `{side.labels[side.constant.likeliest]}`, the commonest "
        f"class of the {whole}.",
        "uniform": f"It predicts each of the {len(side.labels)} classes with equal probability.",
        "prior": f"It predicts each class with its share of the {whole}.",
    }
    return BaselineSide(
        side=side,
        requested={"constant": kind},
        resolved=None,
        why=why[kind],
        name=constant_name(kind),
    )


def side_of(evidence: Evidence, test_set: TestSet | None) -> Side:
    """Return evidence as a side of a comparison.

    The fingerprint of items identifies the test set before what the request declares about it.
    """
    declared = test_set or TestSet()
    return Side(
        labels=evidence.labels,
        table=evidence.table,
        items=evidence.items,
        fingerprint=evidence.fingerprint or declared.fingerprint,
        test_set=declared.id,
        scores=evidence.ranked,
        slices=evidence.slices,
    )
