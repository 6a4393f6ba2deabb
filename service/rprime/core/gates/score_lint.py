"""Simulate a gate with rules about scores: by resampling items with their scores."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial, reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
from scipy import special

from rprime.core.arrays import Array, FloatArray
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Pairing, compare
from rprime.core.comparison.difference import INFLUENCE, Difference
from rprime.core.gates.draft import Draft, Rows
from rprime.core.gates.evidence import GateCandidate, gather_evidence
from rprime.core.gates.gate import joint_laws
from rprime.core.gates.multiplicity import Block, Blocks
from rprime.core.gates.resampling import UnchangedModel
from rprime.core.gates.rule_tests import RuleTests
from rprime.core.gates.rules import Gate
from rprime.core.gates.simulated_gate import LintError, OtherSets, VerdictCounts, check_independent
from rprime.core.gates.verdict import Codes, GateVerdictCode, Plan, decide
from rprime.core.items import Items, table_of
from rprime.core.options import Options
from rprime.core.scores.scores import Scores

MOST_REPLICATES = 200
"""Each is a comparison of its own, of some milliseconds."""
MOST_SCORES = 1 << 20
"""Most scores, items times classes, to resample."""
DRAWS = 60
"""Comparisons behind a plan."""
MOST_CHECKED = 1 << 16
"""Most scores of a test set whose size is checked by real tests; larger ones are nearly normal."""
PASSES = 0.9
"""Share of unchanged models that a planned test set should let pass."""
LEAST_SIZE = 1 / 16
"""Of a test set that is tried, relative to the own one."""
STEP = 2**0.25
"""Between the sizes that are tried."""


@dataclass(frozen=True, eq=False)
class ScoredModel:
    """A gate, items with scores, and the share of each class that a new model scores anew."""

    gate: Gate
    side: Side
    items: Items
    scores: Scores
    members: tuple[Array, ...]
    redrawn: Array
    discordant: float | None
    """The expected share of discordant items; None on two test sets."""

    @classmethod
    def of(cls, gate: Gate, side: Side, *, pairing: Pairing, discordance: float) -> "ScoredModel":
        """Take the items of a side; a LintError if none has scores, or too many have."""
        place = next((i for i, rule in enumerate(gate.rules) if rule.slices is not None), None)
        if place is not None:
            text = "Rules about scores are simulated alone: lint those about slices without them."
            raise LintError(text, ("gates", "rules", place, "slices"))
        items, scores, k = side.items, side.scores, len(side.labels)
        if items is None or scores is None:
            place = next(i for i, rule in enumerate(gate.rules) if rule.target.entry.scored)
            text = "Rules about scores need items with scores: send `y_true` and `y_score`."
            raise LintError(text, ("gates", "rules", place, "index"))
        check_independent(side)
        if scores.values.size > MOST_SCORES:
            raise LintError(f"At most {MOST_SCORES:,} scores can be resampled.")
        counts = np.zeros((k, k + 1))
        np.add.at(counts, (items.true, items.predicted), 1.0)
        model = UnchangedModel.paired(counts, discordance)
        members = tuple(np.flatnonzero(items.true == own) for own in range(k))
        share = model.discordance if pairing == "paired" else None
        return cls(gate, side, items, scores, members, model.redrawn, share)

    @property
    def paired(self) -> bool:
        """Whether both models answer the same items."""
        return self.discordant is not None

    def checked(self, factor: float, seed: int) -> float:
        """Find the smallest size near a factor at which unchanged models pass, by real tests.

        A factor that is NaN, or that asks for too many scores, is returned as it is.
        """
        passing, size = None, factor
        while LEAST_SIZE <= size <= MOST_CHECKED / self.scores.values.size:
            counted = NormalGate.of(self, DRAWS, seed, size).drawn
            passes = counted.rate(counted.gate)[GateVerdictCode.passed] >= PASSES
            if passing is not None and passes != passing:
                return size * STEP if passing else size
            passing = passes
            size = size / STEP if passes else size * STEP
        return max(size, LEAST_SIZE)

    def tests(self, random: np.random.Generator, factor: float) -> tuple[RuleTests, Blocks]:
        """Test the rules on drawn sides, with so many times the items of each class.

        Also returns the joint laws of the tests.
        """
        old, new = self._drawn(random, factor), self._drawn(random, factor)
        true = self.items.true[old]
        if self.paired:
            new = np.where(random.random(len(old)) < self.redrawn[true], new, old)
        candidate = self._side(new, true)
        baseline = self._side(old, true if self.paired else true.copy())
        options = Options(indices=self.gate.indices)
        found = compare(candidate, baseline, options, attributed=())
        known = GateCandidate(candidate, {"baseline": found}, options, self.gate.indices)
        tests = gather_evidence(self.gate, known)
        return tests, cache(partial(joint_laws, tests, {"baseline": found.aligned}))

    def _drawn(self, random: np.random.Generator, factor: float) -> Array:
        """Draw items of each class with replacement, at least one."""
        there = [own for own in self.members if len(own)]
        return np.concatenate([random.choice(m, max(round(factor * len(m)), 1)) for m in there])

    def _side(self, places: Array, true: Array) -> Side:
        items = Items(true, self.items.predicted[places])
        scores = Scores(true, self.scores.values[places])
        table = table_of(items, len(self.side.labels))
        kept = items if self.paired else None
        return Side(labels=self.side.labels, table=table, items=kept, scores=scores)


@dataclass(frozen=True, eq=False)
class NormalGate:
    """A gate on test sets of any size, by the normal law around drawn ones.

    The centre, shape (m,), is what unchanged models differ by (0), or the value on the own test
    set. Of each result on the drawn ones, shape (draws, m), `noise` is how far its point is from
    the centre, and `error`, `before`, `fixed` and `items` are its standard error, the value of the
    baseline, a code of `VerdictCode` and the number of items. `drawn` counts the verdicts there.

    Notes
    -----
    Noise and standard errors fall with the root of the size. The guard of a paired difference
    falls faster, so sizes are rather too large.
    """

    labels: tuple[str, ...]
    support: FloatArray
    discordant: float | None
    plan: Plan
    blocks: Sequence[Block]
    centre: FloatArray
    noise: FloatArray
    error: FloatArray
    before: FloatArray
    fixed: Codes
    items: FloatArray
    drawn: VerdictCounts

    @classmethod
    def of(cls, model: ScoredModel, draws: int, seed: int, factor: float = 1.0) -> "NormalGate":
        """Test the rules on drawn test sets of so many times the items of the model's own."""
        random = np.random.default_rng(seed)
        tests, laws = model.tests(random, factor)
        every = [_numbers(tests, laws)]
        every += [_numbers(*model.tests(random, factor)) for _ in range(1, draws)]
        counts, *arrays = zip(*every, strict=True)
        point, error, before, fixed, items = map(np.stack, arrays)
        centre = np.where(tests.plan.compares, 0.0, np.nanmedian(point, axis=0))
        side, noise, drawn = model.side, point - centre, reduce(add, counts)
        about = (side.labels, side.table.support, model.discordant, tests.plan, laws())
        return cls(*about, centre, noise, error, before, fixed, items, drawn)

    @property
    def gate(self) -> Gate:
        """The gate."""
        return self.plan.gate

    @cached_property
    def tests(self) -> RuleTests:
        """Normal tests of every result, shape (draws, m)."""
        value, plan = self.centre + self.noise, self.plan
        known = Difference.unknown(value.shape)
        known.value[...], known.baseline[...], known.reach[...] = value, self.before, np.inf
        known.candidate[...] = np.where(plan.compares, self.before + value, value)
        known.influence_error[...], known.items[...] = self.error, self.items
        known.methods[...] = INFLUENCE
        drafts = [
            Draft(
                rule=plan.rules[start],
                rows=Rows(plan.labels[start:end], np.arange(end - start)),
                statistic=known[:, start:end],
                fixed=self.fixed[:, start:end],
                items=known.items[:, start:end],
                against=plan.against[start],
            )
            for start, end in pairwise([*plan.starts, len(plan.rules)])
        ]
        return RuleTests(drafts, plan)

    def detectable(self) -> FloatArray:
        """Return the median drop that each result detects with 80 % power, NaN for none, (m,)."""
        found = np.median(self._drops, axis=0)
        return np.where(np.isfinite(found), found, np.nan)

    @cached_property
    def _drops(self) -> FloatArray:
        together = int(np.count_nonzero(self.plan.tested))
        found = self.tests.detectable(self.gate.level, together)
        return np.nan_to_num(found, nan=np.inf)

    def counted(self, replicates: int, seed: int) -> VerdictCounts:  # noqa: ARG002 (a protocol)
        """Count the verdicts on all draws."""
        with np.errstate(all="ignore"):
            found = decide(self.tests, self.gate.level, lambda: self.blocks)
        return VerdictCounts.of(found, self.plan)

    def of_size(self, factor: float) -> "NormalGate":
        """Return the gate on test sets of so many times the items."""
        root = np.sqrt(factor)
        support, items = np.rint(self.support * factor), self.items * factor
        noise, error = self.noise / root, self.error / root
        return replace(self, support=support, items=items, noise=noise, error=error)

    def others(self, seed: int) -> OtherSets:  # noqa: ARG002 (a protocol)
        """Take the drawn test sets as the own ones."""
        centres = np.where(self.plan.compares, 0.0, self.centre + self.noise)
        runs = [
            replace(self, centre=centre, error=np.broadcast_to(error, self.error.shape))
            for centre, error in zip(centres, self.error, strict=True)
        ]
        margin = (centres - self.plan.threshold) * np.where(self.plan.guards_below, 1.0, -1.0)
        beyond = margin / self.error + special.ndtri(self.gate.level)
        return OtherSets(runs, self._drops, np.nansum(special.log_ndtr(beyond), axis=-1))


# Any: arrays of shape (m,).
def _numbers(tests: RuleTests, laws: Blocks) -> tuple[Any, ...]:
    """Return the counted verdicts of one draw, and what scales with its size."""
    decisions = decide(tests, tests.plan.gate.level, laws)
    counted = VerdictCounts.of(decisions, tests.plan)
    return counted, tests.point, tests.error, tests.values[1], tests.fixed, tests.items
