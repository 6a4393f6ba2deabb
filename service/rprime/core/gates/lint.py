"""Lint a gate: how often it fails an unchanged model, and which changes it detects."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from scipy import special

from rprime.core.arrays import FloatArray
from rprime.core.cells import DenseCells
from rprime.core.comparison.aligned_values import AlignedValues
from rprime.core.comparison.compare import Pairing
from rprime.core.comparison.guard import smoothed_by_rows
from rprime.core.gates.advice import RuleLint, advise
from rprime.core.gates.estimate import Estimate
from rprime.core.gates.evidence import draft_of_difference, draft_of_values
from rprime.core.gates.gate import joint_laws
from rprime.core.gates.multiplicity import Block
from rprime.core.gates.resampling import SimulatedPredictions, UnchangedModel
from rprime.core.gates.rows import Rows
from rprime.core.gates.rule_tests import Draft, RuleTests, plan_of
from rprime.core.gates.rules import Gate, Rule, check_gate
from rprime.core.gates.targets import IndexTarget
from rprime.core.gates.verdict import (
    Decisions,
    GateVerdictCode,
    Plan,
    VerdictCode,
    conclude,
    decide,
    effects,
)
from rprime.core.options import Options
from rprime.core.table import ConfusionTable

CHUNK = 1 << 19
"""Cells simulated at once: 4 MiB for each array."""
LARGEST = 1 << 27
"""Most cells to simulate: 250 classes in 2000 replicates."""
MOST_JOINT = 100
"""Most classes for max-T of paired items, which counts true class, old and new prediction."""
TABLES = 200
"""Tables of other test sets, drawn to say how much the answers rest on this one."""
FEWER = 4
"""Other tables are simulated in so many times fewer replicates."""
ENDS = (0.025, 0.975)
"""Quantiles over these tables."""
Span = tuple[float | None, float | None]
"""Ends of an interval; None where there is no such number."""


class SimulatedGate(Protocol):
    """A gate and the model that it is simulated on."""

    @property
    def gate(self) -> Gate:
        """The gate."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes."""

    @property
    def plan(self) -> Plan:
        """The results, in the order of `run_gate`."""

    @property
    def support(self) -> FloatArray:
        """Items of each class, shape (k,)."""

    def detectable(self) -> FloatArray:
        """Return the drop that each result detects with 80 % power, NaN for none, shape (m,)."""

    def counted(self, replicates: int, seed: int) -> "VerdictCounts":
        """Count the verdicts of an unchanged model."""

    def of_size(self, factor: float) -> Self:
        """Return the gate on a test set of so many times the items."""

    def others(self, seed: int) -> "OtherSets[Self]":
        """Draw other test sets of the same size."""


Run = TypeVar("Run", bound=SimulatedGate)


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
    pairing: Pairing = "paired",
    discordance: float = 0.06,
    replicates: int = 2000,
    seed: int = 0,
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
    pairing
        Whether the gate will get the predictions of each item, or two tables.
    discordance
        If paired: share of the items of each class that only one of the models predicts correctly.
    replicates, seed
        Size and seed of the simulation; the same seed gives the same answer. Two more tables are
        simulated, in a quarter of the replicates. The cost grows with replicates x k^2: for 2000
        replicates 0.1 to 0.4 s with 10 classes, 2 to 4 s with 100.

    Raises
    ------
    RuleError
        If the catalog cannot answer a rule.
    LintError
        If the table cannot be drawn from.
    """
    check_gate(gate)
    counts = checked_counts(gate, table, replicates)
    run = LintRun(gate, labels, counts, pairing, discordance)
    others = run.others(seed) if gate.rules else None
    runs = [run] if others is None else [run, *others.ends(others.chances)]
    fewer = max(replicates // FEWER, 1)
    counted = [one.counted(fewer if one is not run else replicates, seed) for one in runs]
    rates = np.array([one.rate(one.gate) for one in counted])
    rules = () if others is None else tuple(rule_lints(run, counted[0], others))
    spans = [
        (float(low), float(high)) for low, high in zip(rates.min(0), rates.max(0), strict=True)
    ]
    return GateLint(
        false_fail_rate=float(rates[0, GateVerdictCode.fail]),
        inconclusive_rate=float(rates[0, GateVerdictCode.inconclusive]),
        false_fail_interval=spans[GateVerdictCode.fail],
        inconclusive_interval=spans[GateVerdictCode.inconclusive],
        rules=rules,
        advice=tuple(advise(run.plan, rules, rates.T, run.sizes)),
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
    refuse_slices(gate)
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


def refuse_slices(gate: Gate) -> None:
    """Raise a `LintError` about the first rule about slices."""
    place = next((i for i, rule in enumerate(gate.rules) if rule.slices is not None), None)
    if place is not None:
        text = "Slices are not simulated: lint the gate without its rules about slices."
        raise LintError(text, ("rules", place, "slices"))


@dataclass(frozen=True, eq=False)
class VerdictCounts:
    """Counts of verdicts: of the results, shape (m,), and of the gate, by `GateVerdictCode`."""

    replicates: int
    failed: FloatArray
    inconclusive: FloatArray
    gate: FloatArray

    @classmethod
    def of(cls, decisions: Decisions, plan: Plan) -> "VerdictCounts":
        """Count decisions of shape (replicates, m), or (m,) for a single one."""
        verdicts = np.atleast_2d(decisions.verdicts)
        gate = np.atleast_1d(conclude(decisions, effects(decisions, plan), plan))
        return cls(
            len(verdicts),
            np.add.reduce(verdicts == VerdictCode.fail, axis=0, dtype=np.float64),
            np.add.reduce(verdicts == VerdictCode.inconclusive, axis=0, dtype=np.float64),
            np.bincount(gate, minlength=len(GateVerdictCode)).astype(np.float64),
        )

    @classmethod
    def none(cls) -> "VerdictCounts":
        """Return the counts of a gate without rules."""
        return cls(1, np.zeros(0), np.zeros(0), np.zeros(len(GateVerdictCode)))

    def rate(self, counts: FloatArray) -> list[float]:
        """Return counts as shares of the replicates."""
        return [float(count) / self.replicates for count in counts]

    def __add__(self, other: "VerdictCounts") -> "VerdictCounts":
        return VerdictCounts(
            self.replicates + other.replicates,
            self.failed + other.failed,
            self.inconclusive + other.inconclusive,
            self.gate + other.gate,
        )


@dataclass(frozen=True, eq=False)
class LintRun:
    """A gate and the table that it is simulated on, or a stack of tables for `expected` alone."""

    gate: Gate
    labels: tuple[str, ...]
    counts: FloatArray
    pairing: Pairing
    discordance: float

    @property
    def paired(self) -> bool:
        """Whether the gate gets the predictions of each item."""
        return self.pairing == "paired"

    @cached_property
    def model(self) -> UnchangedModel:
        """The model whose table has these counts."""
        if self.paired:
            return UnchangedModel.paired(self.counts, self.discordance)
        return UnchangedModel.unpaired(self.counts)

    @cached_property
    def expected(self) -> RuleTests:
        """The tests of every rule where the draws are as expected."""
        drafts = self._drafts(self.model.expected())
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
    def sizes(self) -> dict[str | None, float]:
        """Items of each class, and under None of all."""
        support = self.support
        return dict(zip(self.labels, support.tolist(), strict=True)) | {None: float(support.sum())}

    def counted(self, replicates: int, seed: int) -> VerdictCounts:
        """Draw the replicates in chunks and count their verdicts."""
        if not self.gate.rules:
            return VerdictCounts.none()
        random = np.random.default_rng(seed)
        most = max(CHUNK // self.model.counts.size, 1)
        sizes = [min(most, replicates - start) for start in range(0, replicates, most)]
        parts = [self._counted(self.model.draw(size, random)) for size in sizes]
        return reduce(add, parts)

    def _counted(self, draws: SimulatedPredictions) -> VerdictCounts:
        with np.errstate(all="ignore"):
            tests = RuleTests(self._drafts(draws), self.plan)
            decisions = decide(tests, self.gate.level, lambda: self._joint_laws)
        return VerdictCounts.of(decisions, self.plan)

    @cached_property
    def _joint_laws(self) -> list[Block]:
        """The joint law of the results where the draws are as expected."""
        expected = self.model.expected()
        if self.paired and expected.k > MOST_JOINT:
            return []
        pairs = expected.items() if self.paired else None
        comparison = expected.compared(self._options, self.labels, pairs)
        return joint_laws(self.expected, {"baseline": comparison})

    @property
    def _options(self) -> Options:
        return Options(indices=self.gate.indices)

    def _drafts(self, draws: SimulatedPredictions) -> list[Draft]:
        whole = self._compared(draws, self._options)
        return [self._draft(rule, draws, whole) for rule in self.gate.rules]

    def _compared(
        self, draws: SimulatedPredictions, options: Options, labels: tuple[str, ...] = ()
    ) -> AlignedValues:
        return draws.compared(options, labels or self.labels, draws if self.paired else None)

    def _draft(self, rule: Rule, draws: SimulatedPredictions, whole: AlignedValues) -> Draft:
        rows, index, few = self._rows(rule), rule.target, self._left_out(rule)
        if rule.confusion is not None:
            known = not rule.target.lacks(self.labels)
            cell = [self.labels.index(name) for name in rule.confusion] if known else [0, 0]
            options, index = Options(indices=("recall",)), IndexTarget("recall", "all")
            whole = self._compared(draws.of_cell(*cell), options, ("the class", "none"))
        elif few:
            whole = self._compared(draws, Options(indices=index.keys, left_out=few))
        assert isinstance(index, IndexTarget)  # noqa: S101 (the other kind is a cell)
        if rule.compares:
            return draft_of_difference(rule, rows, index.difference(whole), against="baseline")
        return draft_of_values(rule, rows, Estimate(whole.candidate.estimates, index.entry))

    def _left_out(self, rule: Rule) -> tuple[int, ...]:
        few = self.support < rule.min_items if rule.classes is None else ()
        return tuple(np.flatnonzero(few).tolist())

    def _rows(self, rule: Rule) -> Rows:
        support = self.support
        if rule.classes is None:
            true = rule.confusion[0] if rule.confusion else None
            if rule.confusion and rule.target.lacks(self.labels):
                return Rows((None,), np.array([-1], dtype=np.intp))
            rows = Rows.of(rule, (), np.array([self.sizes[true]]))
            return rows.without(self.labels, self._left_out(rule))
        # A comparison has a row for each class with items, a table one for each class.
        here = support > 0 if rule.compares else np.ones(support.shape, dtype=bool)
        known = tuple(label for label, exists in zip(self.labels, here, strict=True) if exists)
        return Rows.of(rule, known, support[here])

    def detectable(self) -> FloatArray:
        """Return the drop that each result detects with 80 % power, NaN for none, (..., m)."""
        together = int(np.count_nonzero(self.plan.tested))
        return self.expected.detectable(self.gate.level, together)

    def of_size(self, factor: float) -> "LintRun":
        """Return the gate on a table with so many times the counts."""
        return replace(self, counts=np.rint(self.counts * factor))

    def others(self, seed: int) -> "OtherSets[LintRun]":
        """Draw the tables of other test sets with the same class sizes.

        Notes
        -----
        Each row is multinomial with the shares of the row-wise smoothed table: a class without an
        error, or without a right answer, has not shown that it never has one.
        """
        near = smoothed_by_rows(ConfusionTable.dense(self.counts)).cells
        assert isinstance(near, DenseCells)  # noqa: S101 (the table is dense)
        support = np.rint(self.support).astype(np.int64)
        shares = near.counts / (support + (support > 0) + (support == 0))[:, None]
        random = np.random.default_rng(seed)
        counts = random.multinomial(support, shares, (TABLES, len(support))).astype(np.float64)
        size = max(CHUNK // self.counts.size, 1)
        parts = [counts[start : start + size] for start in range(0, TABLES, size)]
        runs = [replace(self, counts=part) for part in parts]
        with np.errstate(all="ignore"):
            drops = np.concatenate([one.detectable() for one in runs])
            beyond = special.ndtri(np.concatenate([one.expected.p[1] for one in runs]))
            chances = special.log_ndtr(special.ndtri(self.gate.level) - beyond)
        return OtherSets(
            [replace(self, counts=own) for own in counts],
            np.nan_to_num(drops, nan=np.inf),
            np.nansum(chances, axis=-1),
        )


@dataclass(frozen=True, eq=False)
class OtherSets(Generic[Run]):
    """Other test sets like that of a run, as the model might have behaved on them.

    Parameters
    ----------
    runs
        The gate on each of them.
    drops
        What each result detects on them, shape (runs, m); infinite for nothing.
    chances
        Logarithm of the chance that all results of an unchanged model pass, if these were
        independent, shape (runs,).
    """

    runs: Sequence[Run]
    drops: FloatArray
    chances: FloatArray

    def ends(self, order: FloatArray) -> list[Run]:
        """Return the runs at both `ENDS` of an order, shape (runs,)."""
        places = np.argsort(order, kind="stable")
        return [self.runs[places[round(end * (len(places) - 1))]] for end in ENDS]


def rule_lints(run: Run, counted: VerdictCounts, others: OtherSets[Run]) -> Iterator[RuleLint]:
    """Yield the rates of every result and the drop that it detects."""
    rates = zip(counted.rate(counted.failed), counted.rate(counted.inconclusive), strict=True)
    own = run.detectable()
    drops = zip(own, span(others.drops, own), strict=True)
    for rule, label, (failed, open_), (drop, interval) in zip(
        run.plan.rules, run.plan.labels, rates, drops, strict=True
    ):
        yield RuleLint(
            id=rule.name,
            class_=label,
            false_fail_rate=failed,
            inconclusive_rate=open_,
            detectable_drop=float(drop) if np.isfinite(drop) else None,
            detectable_interval=interval,
        )


def span(values: FloatArray, own: FloatArray) -> list[Span]:
    """Return intervals of numbers over tables, which contain those of the own table.

    Parameters
    ----------
    values
        Shape (tables, m); infinite for nothing.
    own
        Shape (m,): NaN for nothing. A table without errors lies outside of most that are drawn.

    Returns
    -------
    The ends; None where they are infinite.
    """
    here = np.nan_to_num(own, nan=np.inf)
    low, high = np.quantile(values, ENDS, axis=0, method="nearest")
    ends = zip(np.minimum(low, here).tolist(), np.maximum(high, here).tolist(), strict=True)
    return [(_finite(lowest), _finite(highest)) for lowest, highest in ends]


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
