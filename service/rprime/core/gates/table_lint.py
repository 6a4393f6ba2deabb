"""Simulate a gate on a table: an unchanged model predicts its items twice."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import isqrt
from operator import add

import numpy as np
from scipy import special

from rprime.core.arrays import FloatArray
from rprime.core.cells import DenseCells
from rprime.core.comparison.aligned_values import AlignedValues
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Pairing
from rprime.core.comparison.guard import smoothed_by_rows
from rprime.core.gates.draft import Draft, Rows, draft_of
from rprime.core.gates.estimate import Estimate
from rprime.core.gates.evidence import (
    gap_rows,
    nearest_column,
    not_in_all,
    small_classes,
    without_vague,
)
from rprime.core.gates.gap import GapLimits
from rprime.core.gates.gate import joint_laws
from rprime.core.gates.multiplicity import Block
from rprime.core.gates.resampling import SimulatedPredictions, UnchangedModel
from rprime.core.gates.rule_tests import RuleTests, plan_of
from rprime.core.gates.rules import Gate, Rule
from rprime.core.gates.simulated_gate import LintError, OtherSets, VerdictCounts, check_independent
from rprime.core.gates.sliced import (
    MOST_JUDGED,
    Slice,
    chosen,
    missing_columns,
    slices_of,
    too_many,
)
from rprime.core.gates.targets import CELL_CLASSES, differences
from rprime.core.gates.verdict import Plan, decide
from rprime.core.options import Options
from rprime.core.populations.population import Population
from rprime.core.table import ConfusionTable

CHUNK = 1 << 19
"""Cells simulated at once: 4 MiB for each array."""
LARGEST = 1 << 27
"""Most cells to simulate: 250 classes in 2000 replicates."""
MOST_SLICED = 20_000
"""Most slices to simulate, replicates counted, but at least `FEWEST` replicates."""
FEWEST = 100
MOST_JOINT = 100
"""Most classes for max-T of paired items, which counts true class, old and new prediction."""
TABLES = 200
"""Tables of other test sets, drawn to say how much the answers rest on this one."""


@dataclass(frozen=True, eq=False)
class LintRun:
    """A gate and the table that it is simulated on, or a stack of tables for `tests` alone.

    `sliced` has the counts of the s slices that rules are about, shape (..., s, k, k).
    """

    gate: Gate
    labels: tuple[str, ...]
    counts: FloatArray
    pairing: Pairing
    discordance: float
    slices: tuple[Slice, ...]
    sliced: FloatArray
    population: Population | None = None

    @classmethod
    def of(
        cls,
        gate: Gate,
        side: Side,
        replicates: int,
        *,
        pairing: Pairing,
        discordance: float,
        population: Population | None,
    ) -> "LintRun":
        """Take the table of a side, to be simulated in so many replicates.

        A `LintError` if the table cannot be drawn from, or if a rule is about slices that the side
        has not, or about too many.
        """
        counts = _checked_counts(side, replicates)
        slices, sliced = _wanted_slices(gate, side)
        return cls(gate, side.labels, counts, pairing, discordance, slices, sliced, population)

    @cached_property
    def models(self) -> tuple[UnchangedModel, ...]:
        """The model whose table has these counts, and the same model on each slice."""
        if self.pairing == "unpaired":
            return tuple(map(UnchangedModel.unpaired, (self.counts, self.sliced)))
        both = self.counts, self.sliced
        return tuple(UnchangedModel.paired(one, self.discordance) for one in both)

    @cached_property
    def tests(self) -> RuleTests:
        """The tests of every rule where the draws are as expected."""
        drafts = self._drafts(*(model.expected() for model in self.models))
        return RuleTests(drafts, plan_of(self.gate, drafts))

    @property
    def discordant(self) -> float | None:
        """The expected share of discordant items; None on two test sets."""
        return self.models[0].discordance if self.pairing == "paired" else None

    @property
    def centre(self) -> FloatArray:
        """What unchanged models differ by, or the values, shape (..., m)."""
        return self.tests.point

    @property
    def plan(self) -> Plan:
        """The results, in the order of `run_gate`."""
        return self.tests.plan

    @cached_property
    def support(self) -> FloatArray:
        """Items of each class, the same in all tables, shape (k,)."""
        return self.models[0].support.reshape(-1, len(self.labels))[0]

    @cached_property
    def sizes_of_slices(self) -> FloatArray:
        """Items of each class in each slice, the same in all tables, shape (s, k)."""
        support = self.models[1].support
        return support.reshape(-1, *support.shape[-2:])[0] if support.ndim > 2 else support

    def fewer(self, replicates: int) -> int:
        """Return how many replicates the slices are simulated in."""
        return min(replicates, max(MOST_SLICED // max(len(self.slices), 1), FEWEST))

    def counted(self, replicates: int, seed: int) -> VerdictCounts:
        """Draw the replicates in chunks and count their verdicts."""
        random = np.random.default_rng(seed)
        most = max(CHUNK // (self.counts.size + self.sliced.size), 1)
        parts = []
        for start in range(0, replicates, most):
            size = min(most, replicates - start)
            draws = [model.draw(size, random) for model in self.models]
            with np.errstate(all="ignore"):
                tests = RuleTests(self._drafts(*draws), self.plan)
                decisions = decide(tests, self.gate.level, lambda: self._joint_laws)
            parts.append(VerdictCounts.of(decisions, self.plan))
        return reduce(add, parts)

    @cached_property
    def _joint_laws(self) -> list[Block]:
        """The joint law of the results where the draws are as expected."""
        expected = self.models[0].expected()
        if self.pairing == "paired" and expected.k > MOST_JOINT:
            return []
        pairs = expected.items() if self.pairing == "paired" else None
        comparison = expected.compared(self._options, self.labels, pairs)
        return joint_laws(self.tests, {"baseline": comparison})

    @property
    def _options(self) -> Options:
        return Options(indices=self.gate.indices, population=self.population)

    def _drafts(self, draws: SimulatedPredictions, sliced: SimulatedPredictions) -> list[Draft]:
        whole, parts, found = self._compared(draws, self._options), None, []
        for rule in self.gate.rules:
            if rule.slices is None:
                few = small_classes(rule, self.support)
                rows = self._rows(rule, self.support)
                found.append(replace(self._draft(rule, draws, whole, few), rows=rows))
            else:
                parts = parts or self._compared(sliced, self._options)
                found.extend(self._of_slices(rule, sliced, parts))
        return found

    def _of_slices(
        self, rule: Rule, sliced: SimulatedPredictions, parts: AlignedValues
    ) -> Iterator[Draft]:
        """Yield the drafts of the slices of a rule, or that of its largest gap."""
        places = [self.slices.index(one) for one in chosen(rule, self.slices)]
        if rule.kind == "max_gap":
            few = not_in_all(rule, self.sizes_of_slices[places])
            values = self._aligned(rule, sliced, parts, few)
            known = Estimate(values.candidate.estimates, rule.target.entry)
            limits = GapLimits.of_stack(known, places, rule.min_items)
            items = known.items[..., places, :].sum(-2)
            yield draft_of(rule, gap_rows(rule, self.labels, items, few), limits, items)
            return
        together = self._draft(rule, sliced, parts, ())
        for i in places:
            rows = self._rows(rule, self.sizes_of_slices[i])
            yield replace(together.at(i), rows=rows, slice=self.slices[i])

    def _draft(
        self, rule: Rule, draws: SimulatedPredictions, whole: AlignedValues, few: tuple[int, ...]
    ) -> Draft:
        """Return what is known of a rule, as if it had no results yet."""
        rows, values = Rows((), np.zeros(0, np.intp)), self._aligned(rule, draws, whole, few)
        if rule.compares:
            known = differences(rule.target.entry, values)
            return draft_of(rule, rows, known, known.items, against="baseline")
        estimates = values.candidate.estimates
        own = Estimate(estimates, rule.target.entry)
        draft = draft_of(rule, rows, own.statistic, own.items)
        return draft if rule.slices is None else without_vague(draft, estimates)

    def _aligned(
        self, rule: Rule, draws: SimulatedPredictions, whole: AlignedValues, few: tuple[int, ...]
    ) -> AlignedValues:
        """Return the values that have the index of a rule."""
        if rule.confusion is not None:
            known = not rule.target.lacks(self.labels)
            cell = [self.labels.index(name) for name in rule.confusion] if known else [0, 0]
            options = Options(indices=("recall",))
            return self._compared(draws.of_cell(*cell), options, CELL_CLASSES)
        if few:
            options = replace(self._options, indices=rule.target.keys, left_out=few)
            return self._compared(draws, options)
        return whole

    def _compared(
        self, draws: SimulatedPredictions, options: Options, labels: tuple[str, ...] = ()
    ) -> AlignedValues:
        pairs = draws if self.pairing == "paired" else None
        return draws.compared(options, labels or self.labels, pairs)

    def _rows(self, rule: Rule, support: FloatArray) -> Rows:
        if rule.target.lacks(self.labels):
            return Rows.single(exists=False)
        if rule.classes is None:
            own = support[self.labels.index(rule.confusion[0])] if rule.confusion else support.sum()
            few = small_classes(rule, support)
            return Rows.single(exists=bool(own > 0)).without(self.labels, few)
        # A comparison has a row for each class with items, a table one for each class.
        there = self.support if rule.slices is None else self.sizes_of_slices.max(0)
        here = there > 0 if rule.compares else support >= 0
        known = tuple(label for label, exists in zip(self.labels, here, strict=True) if exists)
        return Rows.of(rule, known, support[here])

    def detectable(self) -> FloatArray:
        """Return the drop that each result detects with 80 % power, NaN for none, (..., m)."""
        together = int(np.count_nonzero(self.plan.tested))
        return self.tests.detectable(self.gate.level, together)

    def of_size(self, factor: float) -> "LintRun":
        """Return the gate on a table with so many times the counts."""
        counts, sliced = (_scaled(part, factor) for part in (self.counts, self.sliced))
        return replace(self, counts=counts, sliced=sliced)

    def others(self, seed: int) -> OtherSets:
        """Draw the tables of other test sets with the same class sizes.

        Notes
        -----
        Each row is multinomial with the shares of the row-wise smoothed table: a class without an
        error, or without a right answer, has not shown that it never has one.
        """
        random = np.random.default_rng(seed)
        drawn = [_others(part, random) for part in (self.counts, self.sliced)]
        size = max(CHUNK // (self.counts.size + self.sliced.size), 1)
        pieces = [slice(start, start + size) for start in range(0, TABLES, size)]
        with np.errstate(all="ignore"):
            runs = [replace(self, counts=drawn[0][i], sliced=drawn[1][i]) for i in pieces]
            drops = np.concatenate([one.detectable() for one in runs])
            p_pass = np.concatenate([one.tests.p[1] for one in runs])
            z = special.ndtri(self.gate.level) - special.ndtri(p_pass)
        alone = [replace(self, counts=own, sliced=part) for own, part in zip(*drawn, strict=True)]
        chances = np.nansum(special.log_ndtr(z), axis=-1)
        return OtherSets(alone, np.nan_to_num(drops, nan=np.inf), chances)


def _checked_counts(side: Side, replicates: int) -> FloatArray:
    """Return the counts of a side that a gate can be simulated on, shape (k, k)."""
    table = side.table
    check_independent(side)
    if table.stack_shape or table.has_omissions:
        raise LintError("Linting a gate needs one table without unclassified and spurious items.")
    if table.weighted or table.fractional:
        raise LintError("Linting a gate needs whole counts of unweighted items.")
    if not isinstance(table.cells, DenseCells):
        raise LintError("Linting a gate needs a dense table.")
    if table.cells.counts.size * replicates > LARGEST:
        most = isqrt(LARGEST // replicates)
        text = f"{replicates} replicates of at most {most} classes can be simulated: merge classes."
        raise LintError(text)
    return np.asarray(table.cells.counts)


def _wanted_slices(gate: Gate, side: Side) -> tuple[tuple[Slice, ...], FloatArray]:
    """Return the s slices that rules are about, and their counts, shape (s, k, k)."""
    found: dict[Slice, None] = {}
    for i, rule in enumerate(gate.rules):
        own = () if rule.slices is None else slices_of(rule, side)
        if missing := next(missing_columns(rule, own), None):
            text = f"Send the slices of the rule.{nearest_column(missing, side)}"
            raise LintError(text, ("gates", "rules", i, "slices"))
        if own and rule.min_items and rule.classes is None:
            text = "Averages of slices that leave classes out are not simulated."
            raise LintError(text, ("gates", "rules", i, "min_items"))
        found |= dict.fromkeys(own)
    if (place := too_many(gate.rules, side)) is not None:
        text = f"All rules of a gate together judge at most {MOST_JUDGED} slices."
        raise LintError(text, ("gates", "rules", place, "slices"))
    if side.slices is None:
        return (), np.zeros((0, side.table.k, side.table.k))
    places = [side.slices.positions[frozenset(one)] for one in found]
    cells = side.slices.tables[places].cells
    assert isinstance(cells, DenseCells)  # noqa: S101 (slices are dense)
    return tuple(found), cells.counts


def _scaled(counts: FloatArray, factor: float) -> FloatArray:
    """Return whole counts, so many times as large.

    Right answers and errors are each rounded together, so that of small tables, too, errors are as
    rare, and of small classes together there are as many items.
    """
    right = np.eye(counts.shape[-1], dtype=bool)
    parts = np.stack([np.where(right, counts, 0.0), np.where(right, 0.0, counts)]) * factor
    sums = np.cumsum(parts.reshape(*parts.shape[:-2], right.size), axis=-1)
    whole = np.diff(np.rint(sums), axis=-1, prepend=0.0)
    return np.asarray(np.add.reduce(whole, axis=0).reshape(counts.shape))


def _others(counts: FloatArray, random: np.random.Generator) -> FloatArray:
    """Draw `TABLES` tables for each of some tables, stack shape (TABLES, ...)."""
    near = smoothed_by_rows(ConfusionTable.dense(counts)).cells
    assert isinstance(near, DenseCells)  # noqa: S101 (the table is dense)
    support = np.rint(np.add.reduce(counts, axis=-1)).astype(np.int64)
    shares = near.counts / (support + (support > 0) + (support == 0))[..., None]
    drawn = random.multinomial(support, shares, (TABLES, *support.shape))
    return drawn.astype(np.float64)
