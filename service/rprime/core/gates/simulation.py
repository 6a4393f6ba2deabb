"""Simulate a gate on a table: an unchanged model predicts its items twice."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import groupby
from math import isqrt
from operator import add

import numpy as np

from rprime.core import special
from rprime.core.arrays import FloatArray
from rprime.core.cells import DenseCells
from rprime.core.comparison.aligned_values import AlignedValues
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Pairing
from rprime.core.comparison.difference import Difference
from rprime.core.comparison.guard import SideGradients, smoothed_by_rows
from rprime.core.gates.average import Part, average_evidence
from rprime.core.gates.candidate import (
    MOST_JUDGED,
    chosen,
    columns_of,
    gap_rows,
    missing_columns,
    nearest_column,
    not_in_all,
    rule_with_too_many_slices,
    slices_of,
    small_classes,
    without_vague,
)
from rprime.core.gates.evidence import GapLimits, Rows, RuleEvidence, evidence_of
from rprime.core.gates.kinds import VerdictCode
from rprime.core.gates.rules import Gate, Rule
from rprime.core.gates.targets import CELL_CLASSES, Estimate, index_differences
from rprime.core.gates.unchanged_model import SimulatedPredictions, UnchangedModel, diagonal_of
from rprime.core.gates.verdict import (
    Decisions,
    GateVerdictCode,
    Plan,
    RuleTests,
    conclude,
    decide,
    effects,
    joint_laws,
)
from rprime.core.multiplicity import Block
from rprime.core.options import Options
from rprime.core.population import Population
from rprime.core.selection import select
from rprime.core.slices.slices import Slice
from rprime.core.table import ConfusionTable
from rprime.core.values import compute

ENDS = (0.025, 0.975)
"""Quantiles over other test sets."""


class LintError(ValueError):
    """A gate cannot be simulated.

    `place` is where, as tokens of a JSON pointer: ("gates", "rules", 2, "slices"); empty: it is the
    evidence.
    """

    def __init__(self, message: str, place: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.place = place


def without_scores(gate: Gate) -> tuple[Gate, tuple[str, ...]]:
    """Return the rules that can be simulated, and a sentence about those that read scores."""
    scored = [i for i, rule in enumerate(gate.rules) if rule.target.entry.scored]
    if not scored:
        return gate, ()
    if len(scored) == len(gate.rules):
        text = "Rules about scores are not simulated: name an index of the table."
        raise LintError(text, ("gates", "rules", scored[0], "index"))
    names = ", ".join(gate.rules[i].name for i in scored)
    kept = tuple(rule for rule in gate.rules if not rule.target.entry.scored)
    return replace(gate, rules=kept), (f"Not simulated, because they read scores: {names}.",)


def check_independent(side: Side) -> None:
    """Refuse items in groups or with weights: they are drawn one by one, as if all were alike."""
    items = side.items
    if items is not None and items.groups is not None:
        text = (
            "A simulation draws items one by one, but items of a group are alike, so that a gate "
            "needs more of them than it would say. Leave `groups` out to learn what independent "
            "items would do, and collect more than that."
        )
        raise LintError(text, ("groups",))
    if items is not None and items.weights is not None:
        raise LintError("A simulation needs items that count once.", ("sample_weight",))


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
            np.add.reduce(verdicts == VerdictCode.undecided, axis=0, dtype=np.float64),
            np.bincount(gate, minlength=len(GateVerdictCode)).astype(np.float64),
        )

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
class OtherSets:
    """Other test sets like that of a run, as the model might have behaved on them.

    `drops` are what each result detects on them, shape (runs, m), infinite for nothing; `chances`
    the logarithms of the chance that all results of an unchanged model pass, if these were
    independent, shape (runs,).
    """

    runs: Sequence["LintRun"]
    drops: FloatArray
    chances: FloatArray

    def ends(self, order: FloatArray) -> "list[LintRun]":
        """Return the runs at both `ENDS` of an order, shape (runs,)."""
        places = np.argsort(order, kind="stable")
        return [self.runs[places[round(end * (len(places) - 1))]] for end in ENDS]


CHUNK = 1 << 19
"""Cells simulated at once: 4 MiB for each array."""
LARGEST = 1 << 27
"""Most cells to simulate: 250 classes in 2000 replicates."""
MOST_SLICED = 20_000
"""Most slices to simulate, replicates counted, but at least `FEWEST` replicates."""
FEWEST = 100
MOST_JOINT = 100
"""Most classes for max-T of paired items, which counts true class, old and new prediction."""
BISECTIONS = 20
"""Halvings of an interval, down to a millionth."""
TINY = 1e-12
TABLES = 200
"""Tables of other test sets, drawn to say how much the answers rest on this one."""


@dataclass(frozen=True, eq=False)
class LintRun:
    """A gate and the table that it is simulated on, or a stack of tables for `tests` alone.

    `sliced` has the counts of the s slices that rules are about, shape (..., s, k, k). `lost` is
    the share of the items of each class that the candidate loses, shape (k,); None: none.
    """

    gate: Gate
    labels: tuple[str, ...]
    counts: FloatArray
    pairing: Pairing
    discordance: float
    slices: tuple[Slice, ...]
    sliced: FloatArray
    population: Population | None = None
    lost: FloatArray | None = None

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
        return tuple(UnchangedModel.paired(counts, self.discordance) for counts in both)

    @cached_property
    def tests(self) -> RuleTests:
        """The tests of every rule where the draws are as expected."""
        evidence = self._evidence(*(model.expected() for model in self.models))
        return RuleTests(evidence, Plan(self.gate, evidence))

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
            draws = [self._lose(model.draw(size, random), random) for model in self.models]
            with np.errstate(all="ignore"):
                tests = RuleTests(self._evidence(*draws), self.plan)
                # Of a model that loses something, passes count, which the joint law leaves alone.
                blocks = None if self.lost is not None else lambda: self._joint_laws
                decisions = decide(tests, self.gate.pass_level(), blocks)
            parts.append(VerdictCounts.of(decisions, self.plan))
        return reduce(add, parts)

    def _lose(
        self, draws: SimulatedPredictions, random: np.random.Generator
    ) -> SimulatedPredictions:
        """Have the candidate lose what it does."""
        if self.lost is None:
            return draws
        recall = diagonal_of(self.counts) / np.maximum(self.support, 1.0)
        shares = np.clip(self.lost / np.maximum(recall, TINY), 0.0, 1.0)
        return draws.losing(shares, self.errors, random)

    @cached_property
    def errors(self) -> FloatArray:
        """The shares of the errors of each class by prediction, even where there are none."""
        apart = 1 - np.eye(len(self.labels))
        wrong = self.counts * apart
        total = np.add.reduce(wrong, axis=-1, keepdims=True)
        even = apart / max(len(self.labels) - 1, 1)
        return np.where(total > 0, wrong / np.where(total > 0, total, 1.0), even)

    def loss_for(self, rule: Rule, change: float, losers: Sequence[int]) -> float:
        """Return what classes lose of their recall where a rule's index changes so much.

        That of all classes together is the mean of the index over classes, or the overall index.
        """
        low, high = 0.0, float(np.min(diagonal_of(self.counts)[losers] / self.support[losers]))
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            reached = self._change(rule, losers, middle) >= change
            low, high = (low, middle) if reached else (middle, high)
        return high

    def _change(self, rule: Rule, losers: Sequence[int], loss: float) -> float:
        """Return how far the index of a rule changes where classes lose some of their items."""
        lost = np.zeros(len(self.labels))
        lost[losers] = loss * self.support[losers]
        after = self.counts + lost[:, None] * (self.errors - np.eye(len(self.labels)))
        tables = ConfusionTable.dense(np.stack([self.counts, after]))
        values = compute(tables, self._options, select(self._options))
        if rule.classes is None:
            before, now = values.lookup("overall", rule.index)
        else:
            of_losers = values.lookup("class", rule.index)[:, losers]
            before, now = np.nanmean(of_losers, axis=-1)
        return float(np.nan_to_num(rule.traits.breach(now - before)))

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

    def _evidence(
        self, draws: SimulatedPredictions, sliced: SimulatedPredictions
    ) -> list[RuleEvidence]:
        whole, of_slices = self._compared(draws, self._options), None
        drafts: list[RuleEvidence] = []
        for rule in self.gate.rules:
            if rule.slices is None:
                few = small_classes(rule, self.support)
                rows = self._rows(rule, self.support)
                evidence = replace(self._draft(rule, draws, whole, few), rows=rows)
                drafts.extend(self._with_average(rule, evidence, draws, whole))
            else:
                of_slices = of_slices or self._compared(sliced, self._options)
                drafts.extend(self._of_slices(rule, sliced, of_slices))
        return drafts

    def _with_average(
        self, rule: Rule, evidence: RuleEvidence, draws: SimulatedPredictions, whole: AlignedValues
    ) -> Iterator[RuleEvidence]:
        """Yield the evidence on classes, and on their average if it decides."""
        if not rule.decides_by.averages:
            yield evidence
            return
        parts = [Part.of(evidence, whole, self._baseline)]
        average = self._average(rule, parts, draws)
        yield replace(evidence, alone=average is None)
        if average is not None:
            yield average

    def _average(
        self,
        rule: Rule,
        parts: Sequence[Part],
        draws: SimulatedPredictions,
        columns: tuple[str, ...] = (),
    ) -> RuleEvidence | None:
        """Return the evidence on an average; the draws are those of all items, or of slices."""
        key = rule.target.average or ""

        def averaged(parts: Sequence[Part], left_out: tuple[int, ...]) -> list[Difference]:
            options = replace(self._options, indices=(key,), left_out=left_out)
            if not columns:
                return [self._compared(draws, options).of_overall(key)[..., None]]
            places = [self.slices.index(part.evidence.slice or ()) for part in parts]
            values = self._compared(draws.of_slices(places), options)
            means = values.of_overall(key)[..., None]
            return [means[..., i, :] for i in range(len(places))]

        return average_evidence(
            rule,
            parts,
            level=self.gate.pass_level(),
            averaged=averaged,
            columns=columns,
            pairing=self.pairing,
        )

    @cached_property
    def _baseline(self) -> SideGradients:
        return self._own_gradients(self.counts)

    def _own_gradients(self, counts: FloatArray) -> SideGradients:
        """Return the gradients of the own table, or of the mean of a stack of these."""
        table = ConfusionTable.dense(counts.reshape(-1, *counts.shape[-2:]).mean(0))
        return SideGradients(compute(table, self._options, select(self._options)))

    def _of_slices(
        self, rule: Rule, sliced: SimulatedPredictions, parts: AlignedValues
    ) -> Iterator[RuleEvidence]:
        """Yield the evidence of the slices of a rule, or that of its largest gap."""
        places = [self.slices.index(part) for part in chosen(rule, self.slices)]
        if rule.traits.between_slices:
            few = not_in_all(rule, self.sizes_of_slices[places])
            values = self._aligned(rule, sliced, parts, few)
            estimate = Estimate(values.candidate.estimates, rule.target.entry)
            limits = GapLimits.of_stack(estimate, places, rule.min_items)
            items = estimate.items[..., places, :].sum(-2)
            yield evidence_of(rule, gap_rows(rule, self.labels, items, few), limits, items)
            return
        together = self._draft(rule, sliced, parts, ())
        every = [
            replace(
                together.at(i), rows=self._rows(rule, self.sizes_of_slices[i]), slice=self.slices[i]
            )
            for i in places
        ]
        if rule.decides_by.averages:
            yield from self._with_averages(rule, every, sliced, parts)
        else:
            yield from every

    def _with_averages(
        self,
        rule: Rule,
        every: Sequence[RuleEvidence],
        sliced: SimulatedPredictions,
        values: AlignedValues,
    ) -> Iterator[RuleEvidence]:
        """Yield the evidence on slices, and behind those of each column their average."""
        for columns, group in groupby(every, key=columns_of):
            members, parts = list(group), []
            for evidence in members:
                place = self.slices.index(evidence.slice or ())
                baseline = self._own_gradients(self.sliced[..., place, :, :])
                parts.append(Part.of(evidence, values, baseline))
            average = self._average(rule, parts, sliced, columns)
            yield from (replace(evidence, alone=average is None) for evidence in members)
            if average is not None:
                yield average

    def _draft(
        self, rule: Rule, draws: SimulatedPredictions, whole: AlignedValues, few: tuple[int, ...]
    ) -> RuleEvidence:
        """Return what is known of a rule, as if it had no results yet."""
        rows, values = Rows((), np.zeros(0, np.intp)), self._aligned(rule, draws, whole, few)
        if rule.traits.compares:
            difference = index_differences(rule.target.entry, values)
            return evidence_of(rule, rows, difference, difference.items, against="baseline")
        estimates = values.candidate.estimates
        estimate = Estimate(estimates, rule.target.entry)
        draft = evidence_of(rule, rows, estimate.statistic, estimate.items)
        return draft if rule.slices is None else without_vague(draft, estimates)

    def _aligned(
        self, rule: Rule, draws: SimulatedPredictions, whole: AlignedValues, few: tuple[int, ...]
    ) -> AlignedValues:
        """Return the values that have the index of a rule."""
        if rule.confusion is not None:
            declared = not rule.target.lacks(self.labels)
            cell = [self.labels.index(name) for name in rule.confusion] if declared else [0, 0]
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
            items = (
                support[self.labels.index(rule.confusion[0])] if rule.confusion else support.sum()
            )
            few = small_classes(rule, support)
            return Rows.single(exists=bool(items > 0)).without(self.labels, few)
        # A comparison has a row for each class with items, a table one for each class.
        there = self.support if rule.slices is None else self.sizes_of_slices.max(0)
        here = there > 0 if rule.traits.compares else support >= 0
        labels = tuple(label for label, exists in zip(self.labels, here, strict=True) if exists)
        return Rows.of(rule, labels, support[here])

    @property
    def smallest_limits(self) -> FloatArray:
        """The smallest limit that an unchanged model passes with power .8, shape (m,).

        NaN for rules about values.
        """
        limits = self.tests.passable(self.gate.pass_level())
        return np.where(self.plan.compares & self.plan.tested, limits, np.nan)

    def detectable(self) -> FloatArray:
        """Return the drop that each result detects with 80 % power, NaN for none, (..., m)."""
        together = int(np.count_nonzero(self.plan.tested & ~self.plan.averages))
        return self.tests.detectable(self.gate.alpha, together)

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
            drops = np.concatenate([run.detectable() for run in runs])
            p_pass = np.concatenate([run.tests.p[1] for run in runs])
            z = special.ndtri(self.gate.pass_level()) - special.ndtri(p_pass)
        alone = [
            replace(self, counts=counts, sliced=part) for counts, part in zip(*drawn, strict=True)
        ]
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
    slices: dict[Slice, None] = {}
    for i, rule in enumerate(gate.rules):
        of_rule = () if rule.slices is None else slices_of(rule, side)
        if missing := next(missing_columns(rule, of_rule), None):
            text = f"Send the slices of the rule.{nearest_column(missing, side)}"
            raise LintError(text, ("gates", "rules", i, "slices"))
        if of_rule and rule.min_items and rule.classes is None:
            text = "Averages of slices that leave classes out are not simulated."
            raise LintError(text, ("gates", "rules", i, "min_items"))
        slices |= dict.fromkeys(of_rule)
    if (place := rule_with_too_many_slices(gate.rules, side)) is not None:
        text = f"All rules of a gate together judge at most {MOST_JUDGED} slices."
        raise LintError(text, ("gates", "rules", place, "slices"))
    if side.slices is None:
        return (), np.zeros((0, side.table.k, side.table.k))
    places = [side.slices.positions[frozenset(part)] for part in slices]
    cells = side.slices.tables[places].cells
    assert isinstance(cells, DenseCells)  # noqa: S101 (slices are dense)
    return tuple(slices), cells.counts


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
