"""lint: how often a gate would fail a model that has not changed, and what it can see."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Literal

import numpy as np

from rprime.core.cells import DenseCells
from rprime.core.gates.advice import RuleLint, advise
from rprime.core.gates.draws import Draws, Model
from rprime.core.gates.exhibit import (
    Places,
    labels_of,
    of_difference,
    places_of,
    spread,
    spread_facts,
)
from rprime.core.gates.power import detectable_drops
from rprime.core.gates.rehearsal import Rehearsal
from rprime.core.gates.rules import Gate, Rule, check_gate
from rprime.core.gates.verdict import (
    Array,
    Facts,
    Finding,
    Outcome,
    Plan,
    conclude,
    decide,
    effects,
)
from rprime.core.table import ConfusionTable

CHUNK = 1 << 17
"""Cells that are simulated at once: 1 MiB for each array."""
LARGEST = 1 << 27
"""Cells that are simulated at most: 250 classes in 2000 replicates, some seconds."""


class LintError(ValueError):
    """A table that no gate can be rehearsed on."""


@dataclass(frozen=True, kw_only=True)
class GateLint:
    """What a gate would do to an unchanged model.

    Parameters
    ----------
    false_fail_rate, inconclusive_rate
        Shares of the replicates in which the gate ends so.
    rules
        In the order of the rules, and of the classes within a rule.
    advice
        Sentences for whoever wrote the gate.
    """

    false_fail_rate: float
    inconclusive_rate: float
    rules: tuple[RuleLint, ...]
    advice: tuple[str, ...]


def lint(
    gate: Gate,
    table: ConfusionTable,
    labels: tuple[str, ...],
    *,
    pairing: Literal["paired", "unpaired"] = "paired",
    discordance: float = 0.06,
    replicates: int = 2000,
    seed: int = 0,
) -> GateLint:
    """Rehearse a gate on an unchanged model: baseline and candidate behave as the table says.

    Parameters
    ----------
    gate
        Its waivers are left aside, and it is the first look at the test set.
    table
        A single table of whole numbers without unclassified and spurious items.
    labels
        Names of its classes.
    pairing
        Whether the gate will see the predictions item by item, or two tables.
    discordance
        Paired: share of the items of each class that only one of the two models gets right.
    replicates, seed
        Of the simulation, which gives the same answer for the same seed. It costs about
        replicates x k^2: .2 s for 2000 and 10 classes, 3 s for 100.

    Raises
    ------
    RuleError
        If the catalog cannot answer a rule.
    LintError
        If the table cannot be drawn from.
    """
    check_gate(gate)
    if any(rule.entry.scored for rule in gate.rules):
        raise LintError("A table says nothing of scores: rehearse without the rules about these.")
    counts = _drawable(table, replicates)
    paired = pairing == "paired"
    model = Model.paired(counts, discordance) if paired else Model.unpaired(counts)
    stage = _Stage(gate, labels, model, paired=paired)
    tally = stage.tally(replicates, np.random.default_rng(seed)) if gate.rules else _Tally.none()
    rules = tuple(stage.rules(tally))
    return GateLint(
        false_fail_rate=tally.rate(tally.gate)[Outcome.fail],
        inconclusive_rate=tally.rate(tally.gate)[Outcome.inconclusive],
        rules=rules,
        advice=tuple(advise(stage.plan, rules, tally.rate(tally.gate), stage.sizes)),
    )


def _drawable(table: ConfusionTable, replicates: int) -> Array:
    if table.stack_shape or table.has_omissions:
        raise LintError("A gate is rehearsed on one table of classified items.")
    if table.weighted or table.fractional:
        raise LintError("Only whole counts of items can be drawn anew.")
    if not isinstance(table.cells, DenseCells):
        raise LintError("A gate is rehearsed on a dense table.")
    if table.cells.counts.size * replicates > LARGEST:
        most = LARGEST // table.cells.counts.size
        raise LintError(f"With {table.k} classes at most {most} replicates are simulated.")
    return np.asarray(table.cells.counts)


@dataclass(frozen=True, eq=False)
class _Tally:
    """How often what happened: results (m,), gate by `Outcome`."""

    replicates: int
    failed: Array
    inconclusive: Array
    gate: Array

    @classmethod
    def none(cls) -> "_Tally":
        return cls(1, np.zeros(0), np.zeros(0), np.zeros(len(Outcome)))

    def rate(self, counts: Array) -> list[float]:
        return [float(count) / self.replicates for count in counts]

    def __add__(self, other: "_Tally") -> "_Tally":
        return _Tally(
            self.replicates + other.replicates,
            self.failed + other.failed,
            self.inconclusive + other.inconclusive,
            self.gate + other.gate,
        )


@dataclass(frozen=True, eq=False)
class _Stage:
    """A gate and the model it is rehearsed on."""

    gate: Gate
    labels: tuple[str, ...]
    model: Model
    paired: bool

    @cached_property
    def plan(self) -> Plan:
        """The results, as `judge` would give them."""
        named = [
            (rule, label) for rule in self.gate.rules for label in labels_of(rule, self.labels)
        ]
        return Plan(self.gate, tuple(r for r, _ in named), tuple(label for _, label in named))

    @cached_property
    def sizes(self) -> dict[str | None, float]:
        """Items of each class, and under None of all."""
        support = self.model.support
        return dict(zip(self.labels, support.tolist(), strict=True)) | {None: float(support.sum())}

    def tally(self, replicates: int, random: np.random.Generator) -> _Tally:
        """Draw and judge, as many tables at a time as fit."""
        most = max(CHUNK // self.model.counts.size, 1)
        sizes = [min(most, replicates - start) for start in range(0, replicates, most)]
        tallies = [self._judged(self.model.draw(size, random), size) for size in sizes]
        return reduce(add, tallies)

    def _judged(self, draws: Draws, replicates: int) -> _Tally:
        with np.errstate(all="ignore"):
            facts = self._facts(self._rehearsal(draws))
        judgement = decide(facts, self.plan, self.gate.level())
        outcome = conclude(judgement, effects(judgement.findings, self.plan), self.plan)
        return _Tally(
            replicates,
            np.add.reduce(judgement.findings == Finding.fail, axis=0, dtype=np.float64),
            np.add.reduce(judgement.findings == Finding.inconclusive, axis=0, dtype=np.float64),
            np.bincount(outcome, minlength=len(Outcome)).astype(np.float64),
        )

    def _rehearsal(self, draws: Draws) -> Rehearsal:
        return Rehearsal(draws, self.gate.indices, self.paired)

    def _facts(self, rehearsal: Rehearsal) -> Facts:
        return Facts.join([self._facts_of(rule, rehearsal) for rule in self.gate.rules])

    def _facts_of(self, rule: Rule, rehearsal: Rehearsal) -> Facts:
        if rule.compares:
            facts = of_difference(rule, rehearsal.difference(rule))
        else:
            facts = Facts.of(rule, rehearsal.estimate(rule))
        return spread_facts(facts, self._places(rule))

    def _places(self, rule: Rule) -> Places:
        return places_of(labels_of(rule, self.labels), self.labels)

    def rules(self, tally: _Tally) -> Iterator[RuleLint]:
        """Give every result its rates and the drop that it sees."""
        rates = zip(tally.rate(tally.failed), tally.rate(tally.inconclusive), strict=True)
        drops = self._detectable() if self.plan.rules else np.zeros(0)
        for rule, label, (failed, open_), drop in zip(
            self.plan.rules, self.plan.labels, rates, drops, strict=True
        ):
            yield RuleLint(
                id=rule.name,
                class_=label,
                false_fail_rate=failed,
                inconclusive_rate=open_,
                detectable_drop=float(drop) if np.isfinite(drop) else None,
            )

    def _detectable(self) -> Array:
        expected = self._rehearsal(self.model.expected())
        together = max(int(np.count_nonzero(self.plan.tested)), 1)
        with np.errstate(all="ignore"):
            parts = [
                spread(
                    detectable_drops(rule, expected, self.gate.level(), together),
                    self._places(rule),
                )
                for rule in self.gate.rules
            ]
        return np.concatenate(parts)
