"""Lint a gate: how often it fails an unchanged model, and which changes it detects."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add

import numpy as np
from scipy import special

from rprime.core.arrays import FloatArray
from rprime.core.cells import DenseCells
from rprime.core.comparison.aligned_values import AlignedValues
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Pairing
from rprime.core.comparison.guard import smoothed_by_rows
from rprime.core.gates.advice import RuleLint, advise
from rprime.core.gates.estimate import Estimate
from rprime.core.gates.evidence import (
    draft_of_difference,
    draft_of_gap,
    draft_of_values,
    nearest_column,
    not_in_all,
    without_vague,
)
from rprime.core.gates.gap import GapLimits
from rprime.core.gates.gate import joint_laws
from rprime.core.gates.multiplicity import Block
from rprime.core.gates.resampling import SimulatedPredictions, UnchangedModel
from rprime.core.gates.rows import Rows
from rprime.core.gates.rule_tests import Draft, RuleTests, plan_of
from rprime.core.gates.rules import Gate, Rule, check_gate
from rprime.core.gates.simulated_gate import OtherSets, VerdictCounts, rule_lints
from rprime.core.gates.sliced import (
    MOST_JUDGED,
    Slice,
    chosen,
    missing_columns,
    slices_of,
    too_many,
)
from rprime.core.gates.targets import IndexTarget
from rprime.core.gates.verdict import GateVerdictCode, Plan, decide
from rprime.core.options import Options
from rprime.core.populations.population import Population
from rprime.core.slices.slices import Slices
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
FEWER = 4
"""Other tables are simulated in so many times fewer replicates."""


class LintError(ValueError):
    """A gate cannot be simulated on the table.

    Parameters
    ----------
    place
        Where in the gate, as the tokens of a JSON pointer; empty: it is about the table.
    """

    def __init__(self, message: str, place: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.place = place


@dataclass(frozen=True, kw_only=True)
class GateLint:
    """The behaviour of a gate on an unchanged model.

    Parameters
    ----------
    false_fail_rate, inconclusive_rate
        Shares of the replicates with this verdict of the gate.
    false_fail_interval, inconclusive_interval
        From the lowest to the highest share on this table and on two others of `TABLES` drawn from
        it: those on which the gate passes about most and least easily, without 2.5 % of them at
        each end. None for rules about scores.
    rules
        In the order of the rules, and of the classes within a rule.
    advice
        Sentences for the author of the gate.
    """

    false_fail_rate: float
    inconclusive_rate: float
    false_fail_interval: tuple[float, float] | None
    inconclusive_interval: tuple[float, float] | None
    rules: tuple[RuleLint, ...]
    advice: tuple[str, ...]


def lint(
    gate: Gate,
    table: ConfusionTable,
    labels: tuple[str, ...],
    *,
    slices: Slices | None = None,
    pairing: Pairing = "paired",
    discordance: float = 0.06,
    replicates: int = 2000,
    seed: int = 0,
    population: Population | None = None,
) -> GateLint:
    """Simulate a gate on an unchanged model: the table describes baseline and candidate.

    Parameters
    ----------
    gate
        The simulation ignores its waivers.
    table
        A single table of whole numbers without unclassified and spurious items.
    labels
        Names of its classes.
    slices
        Of the table, if rules are about some. Each slice is drawn on its own: results of slices
        that share items are more alike than that, so that real rates of failure are lower.
    pairing
        Whether the gate will get the predictions of each item, or two tables.
    discordance
        If paired: share of the items of each class that only one of the models predicts correctly.
    replicates, seed
        Size and seed of the simulation; the same seed gives the same answer. It is smaller where
        there are many slices. Two more tables are simulated, in a quarter of the replicates. The
        cost grows with replicates x k^2: for 2000 replicates 0.1 to 0.4 s with 10 classes, 2 to 4 s
        with 100.
    population
        What the rules are about, given by the prevalence of the classes; None: the items.

    Raises
    ------
    RuleError
        If the catalog cannot answer a rule.
    LintError
        If the table cannot be drawn from.
    """
    check_gate(gate)
    counts = checked_counts(gate, table, replicates)
    names, sliced = wanted_slices(gate, Side(labels=labels, table=table, slices=slices))
    run = LintRun(gate, labels, counts, pairing, discordance, names, sliced, population)
    replicates = fewer(replicates, len(names))
    others = run.others(seed) if gate.rules else None
    runs = [run] if others is None else [run, *others.ends(others.chances)]
    sizes = [replicates, *[max(replicates // FEWER, 1)] * (len(runs) - 1)]
    counted = [one.counted(size, seed) for one, size in zip(runs, sizes, strict=True)]
    rates = np.array([one.rate(one.gate) for one in counted])
    rules = () if others is None else tuple(rule_lints(run, counted[0], others, run.expected.items))
    spans = [
        (float(low), float(high)) for low, high in zip(rates.min(0), rates.max(0), strict=True)
    ]
    return GateLint(
        false_fail_rate=float(rates[0, GateVerdictCode.fail]),
        inconclusive_rate=float(rates[0, GateVerdictCode.inconclusive]),
        false_fail_interval=spans[GateVerdictCode.fail],
        inconclusive_interval=spans[GateVerdictCode.inconclusive],
        rules=rules,
        advice=tuple(advise(run.plan, rules, rates.T, run.sizes[None])),
    )


def checked_counts(gate: Gate, table: ConfusionTable, replicates: int) -> FloatArray:
    """Return the counts of a table that a gate can be simulated on, shape (k, k).

    Raises
    ------
    LintError
        If the table cannot be drawn from, or a rule reads scores.
    """
    if any(rule.target.scored for rule in gate.rules):
        raise LintError("A table holds no scores: lint the gate without its rules about scores.")
    if table.stack_shape or table.has_omissions:
        raise LintError("Linting a gate needs one table without unclassified and spurious items.")
    if table.weighted or table.fractional:
        raise LintError("Linting a gate needs whole counts of unweighted items.")
    if not isinstance(table.cells, DenseCells):
        raise LintError("Linting a gate needs a dense table.")
    if table.cells.counts.size * replicates > LARGEST:
        most = LARGEST // table.cells.counts.size
        raise LintError(f"With {table.k} classes the limit is {most} replicates.")
    return np.asarray(table.cells.counts)


def fewer(replicates: int, slices: int) -> int:
    """Return how many replicates so many slices are simulated in."""
    return min(replicates, max(MOST_SLICED // max(slices, 1), FEWEST))


def wanted_slices(gate: Gate, side: Side) -> tuple[tuple[Slice, ...], FloatArray]:
    """Return the s slices that rules are about, and their counts, shape (s, k, k).

    Raises
    ------
    LintError
        If a rule is about slices that the side has not, or about too many.
    """
    found: dict[Slice, None] = {}
    for i, rule in enumerate(gate.rules):
        own = () if rule.slices is None else slices_of(rule, side)
        if missing := next(missing_columns(rule, own), None):
            text = f"Send the slices of the rule.{nearest_column(missing, side)}"
            raise LintError(text, ("rules", i, "slices"))
        if own and rule.min_items and rule.classes is None:
            text = "Averages of slices that leave classes out are not simulated."
            raise LintError(text, ("rules", i, "min_items"))
        found |= dict.fromkeys(own)
    if (place := too_many(gate.rules, side)) is not None:
        text = f"All rules of a gate together judge at most {MOST_JUDGED} slices."
        raise LintError(text, ("rules", place, "slices"))
    if side.slices is None:
        return (), np.zeros((0, side.table.k, side.table.k))
    places = [side.slices.positions[frozenset(one)] for one in found]
    cells = side.slices.tables[places].cells
    assert isinstance(cells, DenseCells)  # noqa: S101 (slices are dense)
    return tuple(found), cells.counts


@dataclass(frozen=True, eq=False)
class LintRun:
    """A gate and the table that it is simulated on, or a stack of tables for `expected` alone.

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

    @cached_property
    def model(self) -> UnchangedModel:
        """The model whose table has these counts."""
        return self._model(self.counts)

    @cached_property
    def models(self) -> UnchangedModel:
        """The same model on each slice."""
        return self._model(self.sliced)

    def _model(self, counts: FloatArray) -> UnchangedModel:
        if self.pairing == "paired":
            return UnchangedModel.paired(counts, self.discordance)
        return UnchangedModel.unpaired(counts)

    @cached_property
    def expected(self) -> RuleTests:
        """The tests of every rule where the draws are as expected."""
        drafts = self._drafts(self.model.expected(), self.models.expected())
        return RuleTests(drafts, plan_of(self.gate, drafts))

    @property
    def plan(self) -> Plan:
        """The results, in the order of `run_gate`."""
        return self.expected.plan

    @cached_property
    def support(self) -> FloatArray:
        """Items of each class, the same in all tables, shape (k,)."""
        return self.model.support.reshape(-1, len(self.labels))[0]

    @cached_property
    def sizes_of_slices(self) -> FloatArray:
        """Items of each class in each slice, the same in all tables, shape (s, k)."""
        support = self.models.support
        return support.reshape(-1, *support.shape[-2:])[0] if support.ndim > 2 else support

    @cached_property
    def sizes(self) -> dict[str | None, float]:
        """Items of each class, and under None of all."""
        support = self.support
        return dict(zip(self.labels, support.tolist(), strict=True)) | {None: float(support.sum())}

    def counted(self, replicates: int, seed: int) -> VerdictCounts:
        """Draw the replicates in chunks and count their verdicts."""
        if not self.gate.rules:
            return VerdictCounts.none()
        random = np.random.default_rng(seed)
        most = max(CHUNK // (self.counts.size + self.sliced.size), 1)
        sizes = [min(most, replicates - start) for start in range(0, replicates, most)]
        models = self.model, self.models
        parts = [self._counted(*(one.draw(size, random) for one in models)) for size in sizes]
        return reduce(add, parts)

    def _counted(self, draws: SimulatedPredictions, sliced: SimulatedPredictions) -> VerdictCounts:
        with np.errstate(all="ignore"):
            tests = RuleTests(self._drafts(draws, sliced), self.plan)
            decisions = decide(tests, self.gate.level, lambda: self._joint_laws)
        return VerdictCounts.of(decisions, self.plan)

    @cached_property
    def _joint_laws(self) -> list[Block]:
        """The joint law of the results where the draws are as expected."""
        expected = self.model.expected()
        if self.pairing == "paired" and expected.k > MOST_JOINT:
            return []
        pairs = expected.items() if self.pairing == "paired" else None
        comparison = expected.compared(self._options, self.labels, pairs)
        return joint_laws(self.expected, {"baseline": comparison})

    @property
    def _options(self) -> Options:
        return Options(indices=self.gate.indices, population=self.population)

    def _drafts(self, draws: SimulatedPredictions, sliced: SimulatedPredictions) -> list[Draft]:
        whole, parts, found = self._compared(draws, self._options), None, []
        for rule in self.gate.rules:
            if rule.slices is None:
                few = self._left_out(rule, self.support)
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
            index, whole = self._aligned(rule, sliced, parts, few)
            known = Estimate(whole.candidate.estimates, index.entry)
            limits = GapLimits.of_stack(known, places, rule.min_items)
            yield draft_of_gap(rule, limits, known.items[..., places, :].sum(-2), self.labels, few)
            return
        together = self._draft(rule, sliced, parts, ())
        for i in places:
            rows = self._rows(rule, self.sizes_of_slices[i])
            yield replace(together.at(i), rows=rows, slice=self.slices[i])

    def _compared(
        self, draws: SimulatedPredictions, options: Options, labels: tuple[str, ...] = ()
    ) -> AlignedValues:
        return draws.compared(
            options, labels or self.labels, draws if self.pairing == "paired" else None
        )

    def _draft(
        self, rule: Rule, draws: SimulatedPredictions, whole: AlignedValues, few: tuple[int, ...]
    ) -> Draft:
        """Return what is known of a rule, as if it had no results yet."""
        rows, (index, found) = Rows((), _NONE), self._aligned(rule, draws, whole, few)
        if rule.compares:
            return draft_of_difference(rule, rows, index.difference(found), against="baseline")
        known = found.candidate.estimates
        draft = draft_of_values(rule, rows, Estimate(known, index.entry))
        return draft if rule.slices is None else without_vague(draft, known)

    def _aligned(
        self, rule: Rule, draws: SimulatedPredictions, whole: AlignedValues, few: tuple[int, ...]
    ) -> tuple[IndexTarget, AlignedValues]:
        """Return the index that a rule bounds, and the values that have it."""
        index = rule.target
        if rule.confusion is not None:
            known = not rule.target.lacks(self.labels)
            cell = [self.labels.index(name) for name in rule.confusion] if known else [0, 0]
            options, index = Options(indices=("recall",)), IndexTarget("recall", "all")
            whole = self._compared(draws.of_cell(*cell), options, ("the class", "none"))
        elif few:
            options = replace(self._options, indices=index.keys, left_out=few)
            whole = self._compared(draws, options)
        assert isinstance(index, IndexTarget)  # noqa: S101 (the other kind is a cell)
        return index, whole

    def _left_out(self, rule: Rule, support: FloatArray) -> tuple[int, ...]:
        few = support < rule.min_items if rule.classes is None else ()
        return tuple(np.flatnonzero(few).tolist())

    def _rows(self, rule: Rule, support: FloatArray) -> Rows:
        if rule.classes is None:
            if rule.confusion and rule.target.lacks(self.labels):
                return Rows((None,), np.array([-1], dtype=np.intp))
            own = support[self.labels.index(rule.confusion[0])] if rule.confusion else support.sum()
            rows = Rows.of(rule, (), np.array([own]))
            return rows.without(self.labels, self._left_out(rule, support))
        # A comparison has a row for each class with items, a table one for each class.
        there = self.support if rule.slices is None else self.sizes_of_slices.max(0)
        here = there > 0 if rule.compares else support >= 0
        known = tuple(label for label, exists in zip(self.labels, here, strict=True) if exists)
        return Rows.of(rule, known, support[here])

    def detectable(self) -> FloatArray:
        """Return the drop that each result detects with 80 % power, NaN for none, (..., m)."""
        together = int(np.count_nonzero(self.plan.tested))
        return self.expected.detectable(self.gate.level, together)

    @property
    def chances(self) -> FloatArray:
        """Logarithms of the chance that results of an unchanged model pass, shape (..., m)."""
        return special.log_ndtr(special.ndtri(self.gate.level) - special.ndtri(self.expected.p[1]))

    def of_size(self, factor: float) -> "LintRun":
        """Return the gate on a table with so many times the counts."""
        counts, sliced = (_scaled(part, factor) for part in (self.counts, self.sliced))
        return replace(self, counts=counts, sliced=sliced)

    def others(self, seed: int) -> "OtherSets[LintRun]":
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
            chances = np.concatenate([one.chances for one in runs])
        return OtherSets(
            [replace(self, counts=own, sliced=part) for own, part in zip(*drawn, strict=True)],
            np.nan_to_num(drops, nan=np.inf),
            np.nansum(chances, axis=-1),
        )


_NONE = np.zeros(0, dtype=np.intp)


def _scaled(counts: FloatArray, factor: float) -> FloatArray:
    """Return whole counts, so many times as large; of small tables rare errors stay as rare."""
    right = np.eye(counts.shape[-1], dtype=bool)
    errors = np.where(right, 0.0, counts * factor).reshape(*counts.shape[:-2], right.size)
    whole = np.diff(np.rint(np.cumsum(errors, axis=-1)), axis=-1, prepend=0.0)
    return np.where(right, np.rint(counts * factor), whole.reshape(counts.shape))


def _others(counts: FloatArray, random: np.random.Generator) -> FloatArray:
    """Draw `TABLES` tables for each of some tables, stack shape (TABLES, ...)."""
    near = smoothed_by_rows(ConfusionTable.dense(counts)).cells
    assert isinstance(near, DenseCells)  # noqa: S101 (the table is dense)
    support = np.rint(np.add.reduce(counts, axis=-1)).astype(np.int64)
    shares = near.counts / (support + (support > 0) + (support == 0))[..., None]
    drawn = random.multinomial(support, shares, (TABLES, *support.shape))
    return drawn.astype(np.float64)
