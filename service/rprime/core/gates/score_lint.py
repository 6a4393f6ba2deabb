"""Lint a gate with rules about scores: by resampling items with their scores."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.common_items import table_of
from rprime.core.comparison.compare import Pairing, compare
from rprime.core.gates.advice import RuleLint, advise
from rprime.core.gates.gate import run_gate
from rprime.core.gates.lint import GateLint, LintError, Span, refuse_slices, span
from rprime.core.gates.resampling import UnchangedModel
from rprime.core.gates.result import GateResult, Result
from rprime.core.gates.rules import Gate, check_gate
from rprime.core.gates.verdict import GateVerdictCode, Plan
from rprime.core.items import Items
from rprime.core.options import Options
from rprime.core.scores.scores import Scores

MOST_REPLICATES = 200
"""Each is a comparison of its own, of some milliseconds."""
MOST_SCORES = 1 << 20
"""Most scores, items times classes, to resample."""


def lint_scores(
    gate: Gate,
    side: Side,
    *,
    pairing: Pairing = "paired",
    discordance: float = 0.06,
    replicates: int = MOST_REPLICATES,
    seed: int = 0,
) -> GateLint:
    """Simulate a gate on an unchanged model: its items, drawn anew with their scores.

    Parameters
    ----------
    gate, pairing, discordance, seed
        As for `lint`. If paired, the new model gives as many items of a class the scores of other
        items of it as make this share discordant.
    side
        The model's items with their scores.
    replicates
        Reduced to 200.

    Raises
    ------
    RuleError
        If the catalog cannot answer a rule.
    LintError
        If there are no items with scores, or too many.
    """
    check_gate(gate)
    refuse_slices(gate)
    if side.items is None or side.scores is None:
        raise LintError("Rules about scores need items with scores.")
    if side.scores.values.size > MOST_SCORES or side.items.groups is not None:
        raise LintError(f"At most {MOST_SCORES:,} scores of independent items can be resampled.")
    count, random = min(replicates, MOST_REPLICATES), np.random.default_rng(seed)
    model = _ScoredModel.of(side, discordance, paired=pairing == "paired")
    options = Options(indices=gate.indices)
    found = []
    for _ in range(count):
        candidate, baseline = model.draw(random)
        comparison = compare(candidate, baseline, options, attributed=())
        found.append(run_gate(gate, candidate, comparison, options, today=date.max))
    return _summary(gate, found, side)


@dataclass(frozen=True, eq=False)
class _ScoredModel:
    """Items with scores, and the share of each class that a new model scores anew."""

    side: Side
    items: Items
    scores: Scores
    members: tuple[Array, ...]
    redrawn: Array
    paired: bool

    @classmethod
    def of(cls, side: Side, discordance: float, *, paired: bool) -> "_ScoredModel":
        assert side.items is not None  # noqa: S101 (the caller has checked)
        assert side.scores is not None  # noqa: S101 (the caller has checked)
        k = len(side.labels)
        counts = np.zeros((k, k + 1))
        np.add.at(counts, (side.items.true, side.items.predicted), 1.0)
        model = UnchangedModel.paired(counts, discordance)
        members = tuple(np.flatnonzero(side.items.true == own) for own in range(k))
        return cls(side, side.items, side.scores, members, model.redrawn, paired)

    def draw(self, random: np.random.Generator) -> tuple[Side, Side]:
        """Draw candidate and baseline with the class sizes of the side."""
        old = self._drawn(random)
        new = self._drawn(random)
        if self.paired:
            again = random.random(len(old)) < self.redrawn[self.items.true[old]]
            new = np.where(again, new, old)
        true = self.items.true[old]
        return self._side(new, true), self._side(old, true if self.paired else true.copy())

    def _drawn(self, random: np.random.Generator) -> Array:
        """Draw items of each class with replacement."""
        return np.concatenate([random.choice(m, len(m)) for m in self.members if len(m)])

    def _side(self, places: Array, true: Array) -> Side:
        items = Items(true, self.items.predicted[places])
        scores = Scores(true, self.scores.values[places])
        table = table_of(items, len(self.side.labels))
        kept = items if self.paired else None
        return Side(labels=self.side.labels, table=table, items=kept, scores=scores)


def _summary(gate: Gate, found: list[GateResult], side: Side) -> GateLint:
    """Count the verdicts."""
    verdicts: Counter[str] = Counter(one.verdict for one in found)
    count = len(found)
    results = list(zip(*(one.results for one in found), strict=True))
    named = {rule.name: rule for rule in gate.rules}
    rules = [
        RuleLint(
            id=own[0].rule,
            class_=own[0].class_,
            false_fail_rate=sum(r.verdict == "fail" for r in own) / count,
            inconclusive_rate=sum(r.verdict == "inconclusive" for r in own) / count,
            detectable_drop=median,
            detectable_interval=interval,
        )
        for own, (median, interval) in zip(results, map(_detectable, results), strict=True)
    ]
    rates = {GateVerdictCode.fail: "fail", GateVerdictCode.inconclusive: "inconclusive"}
    gate_rates = [verdicts[rates.get(code, "pass")] / count for code in GateVerdictCode]
    plan = Plan(gate, tuple(named[r.id] for r in rules), tuple(r.class_ for r in rules))
    support = side.table.support
    sizes: dict[str | None, float] = dict(zip(side.labels, support.tolist(), strict=True))
    return GateLint(
        false_fail_rate=verdicts["fail"] / count,
        inconclusive_rate=verdicts["inconclusive"] / count,
        false_fail_interval=None,
        inconclusive_interval=None,
        rules=tuple(rules),
        advice=tuple(
            advise(plan, rules, np.array(gate_rates)[:, None], sizes | {None: float(support.sum())})
        ),
    )


def _detectable(own: Sequence[Result]) -> tuple[float | None, Span]:
    """Return the median and the interval of what a result detects over the test sets drawn."""
    drops = [np.inf if r.min_detectable_drop is None else r.min_detectable_drop for r in own]
    known = [drop for drop in drops if np.isfinite(drop)]
    median = float(np.median(known)) if known else None
    middle = np.array([np.inf if median is None else median])
    return median, span(np.array(drops)[:, None], middle)[0]
