"""Plan a test set: how many items until a gate passes an unchanged model and finds a drop."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Pairing
from rprime.core.gates.advice import assumed
from rprime.core.gates.rule_tests import POWER
from rprime.core.gates.rules import Gate, check_gate
from rprime.core.gates.score_lint import DRAWS, LEAST_SIZE, PASSES, STEP, NormalGate, ScoredModel
from rprime.core.gates.simulated_gate import SimulatedGate
from rprime.core.gates.sliced import Slice, chosen
from rprime.core.gates.table_lint import LintRun
from rprime.core.gates.verdict import GateVerdictCode
from rprime.core.populations.population import Population

_Result = tuple[str, str | None, Slice | None]
FACTORS = LEAST_SIZE * STEP ** np.arange(57.0)
"""Sizes of the test set, relative to the table: from a sixteenth to a thousandfold."""


@dataclass(frozen=True, kw_only=True)
class ClassPlan:
    """The items of a class: as they are, and as many as its rules need to find the drop.

    `needed` is None if even a thousand times as many do not suffice, or no rule is about it.
    """

    class_: str
    items: int
    needed: int | None

    @property
    def name(self) -> str:
        """The class, as the subject of a sentence."""
        return f"Class `{self.class_}`"


@dataclass(frozen=True, kw_only=True)
class SlicePlan:
    """The items of a slice: as they are, and as many as its rules need.

    They find the drop in 80 % of runs and, if some must pass, an unchanged model passes the gate in
    90 %. `needed` is None if a thousand times as many do not suffice.
    """

    slice: dict[str, str]
    items: int
    needed: int | None

    @property
    def name(self) -> str:
        """The slice, as the subject of a sentence."""
        return f"Slice `{', '.join(f'{column}={value}' for column, value in self.slice.items())}`"


@dataclass(frozen=True, kw_only=True)
class ItemPlan:
    """How many items a gate needs, in the shares of the table's classes.

    An unchanged model passes in 90 % of runs, and every rule finds the drop in 80 %; None if a
    thousand times as many do not suffice. The intervals are what the tables of other test sets of
    this size would say; `discordance` is as of a `GateLint`.
    """

    items: int
    for_passing: int | None
    for_finding: int | None
    for_passing_interval: tuple[int | None, int | None]
    for_finding_interval: tuple[int | None, int | None]
    discordance: float | None
    classes: tuple[ClassPlan, ...]
    slices: tuple[SlicePlan, ...]
    advice: tuple[str, ...]


def plan_items(
    gate: Gate,
    side: Side,
    *,
    pairing: Pairing = "paired",
    discordance: float = 0.06,
    drop: float | None = None,
    replicates: int = 400,
    seed: int = 0,
    population: Population | None = None,
) -> ItemPlan:
    """Plan the number of items, by simulation of larger and smaller test sets of the same kind.

    The `drop` to find is for each rule twice its limit where None is given; everything else, and
    what is raised, is as for `lint`.

    Notes
    -----
    Sizes are tried in steps of a fourth root of 2. With rules about scores the tests of drawn test
    sets are scaled to each size by the normal law (see `NormalGate`), and real tests near the size
    that it finds decide which one lets an unchanged model pass.
    """
    check_gate(gate)
    if gate.scored:
        model = ScoredModel.of(gate, side, pairing=pairing, discordance=discordance)
        normal = NormalGate.of(model, DRAWS, seed)
        return _planned(normal, drop, replicates, seed, partial(model.checked, seed=seed))
    run = LintRun.of(
        gate, side, replicates, pairing=pairing, discordance=discordance, population=population
    )
    return _planned(run, drop, run.fewer(replicates), seed)


def _planned(
    run: SimulatedGate,
    drop: float | None,
    replicates: int,
    seed: int,
    checked: Callable[[float], float] = float,
) -> ItemPlan:
    """Plan the items, and correct the sizes for passing like that on the own test set."""
    results = _results(run.of_size(FACTORS[-1]))
    factors = _finding(run, drop)
    passing, finding = [_passing(run, replicates, seed)], [_largest(factors)]
    if run.gate.rules:
        others = run.others(seed)
        goals = np.array([drop or 2 * rule.limit for rule in run.plan.rules])
        hardest = np.max(others.drops / goals, axis=-1, initial=0.0)
        passing += [_passing(one, replicates, seed) for one in others.ends(others.chances)]
        finding += [_largest(_finding(one, drop)) for one in others.ends(hardest)]
        correction = checked(passing[0]) / passing[0]
        passing = [size * correction for size in passing]
    total, classes = float(run.support.sum()), []
    for label, items in zip(run.labels, run.support.tolist(), strict=True):
        needed = items * _largest(factors[[name == label for _, name, _ in results]])
        classes.append(ClassPlan(class_=label, items=round(items), needed=_items(needed)))
    slices = tuple(_slices(run, results, factors, passing[0]))
    return ItemPlan(
        items=round(total),
        for_passing=_items(total * passing[0]),
        for_finding=_items(total * finding[0]),
        for_passing_interval=_interval(total, passing),
        for_finding_interval=_interval(total, finding),
        discordance=run.discordant,
        classes=tuple(classes),
        slices=slices,
        advice=(
            *_advice(total, passing, finding, (*classes, *slices)),
            *assumed(run.gate, run.discordant),
        ),
    )


def _passing(run: SimulatedGate, replicates: int, seed: int) -> float:
    """Find the smallest size at which an unchanged model passes; NaN if none does."""
    if not run.gate.rules:
        return np.nan

    def passes(factor: float) -> bool:
        found = run.of_size(factor).counted(replicates, seed)
        return found.rate(found.gate)[GateVerdictCode.passed] >= PASSES

    place = bisect_left(FACTORS, True, key=passes)  # noqa: FBT003 (the first that does)
    return float(FACTORS[place]) if place < len(FACTORS) else np.nan


def _finding(run: SimulatedGate, drop: float | None) -> FloatArray:
    """Find the size at which each result of the largest one finds its drop with power .8, or NaN.

    A smaller test set may lack some results.
    """
    results = _results(run.of_size(FACTORS[-1]))
    if not results:
        return np.zeros(0)
    limits = {rule.name: rule.limit for rule in run.gate.rules}
    goals = np.array([drop or 2 * limits[name] for name, _, _ in results])
    drops = np.full((len(FACTORS), len(goals)), np.inf)
    for own, factor in zip(drops, FACTORS, strict=True):
        sized = run.of_size(factor)
        if sized.plan.rules:
            known = dict(zip(_results(sized), sized.detectable().tolist(), strict=True))
            own[...] = [known.get(result, np.inf) for result in results]
    reached = drops <= goals
    first = np.argmax(reached, axis=0)
    return np.where(reached.any(0), FACTORS[first], np.nan)


def _slices(
    run: SimulatedGate, results: list[_Result], factors: FloatArray, passing: float
) -> Iterator[SlicePlan]:
    """Yield the items that the results of each slice need; `passing`: all of the gate's."""
    if not isinstance(run, LintRun) or not run.slices:
        return
    rules = {rule.name: rule for rule in run.gate.rules if rule.slices is not None}
    inside = {key: chosen(rule, run.slices) for key, rule in rules.items()}
    for name, items in zip(run.slices, run.sizes_of_slices.sum(-1).tolist(), strict=True):
        held = [rule for key, rule in rules.items() if name in inside[key]]
        gaps = {rule.name for rule in held if rule.kind == "max_gap"}
        places = [i for i, (key, _, part) in enumerate(results) if part == name or key in gaps]
        must_pass = [passing] * any(rule.mandatory for rule in held)
        needed = items * float(np.max([*must_pass, *factors[places]]))
        yield SlicePlan(slice=dict(name), items=round(items), needed=_items(needed))


def _results(run: SimulatedGate) -> list[_Result]:
    """Return rule, class and slice of each result."""
    names = (rule.name for rule in run.plan.rules)
    return list(zip(names, run.plan.labels, run.plan.slices, strict=True))


def _largest(factors: FloatArray) -> float:
    return float(np.max(factors)) if factors.size else np.nan


def _interval(total: float, factors: list[float]) -> tuple[int | None, int | None]:
    """Return the fewest and the most items; None where some do not suffice."""
    every = np.nan_to_num(factors, nan=np.inf)
    return _items(total * float(every.min())), _items(total * float(every.max()))


def _items(count: float) -> int | None:
    return int(np.ceil(count)) if np.isfinite(count) else None


def _advice(
    total: float,
    passing: list[float],
    finding: list[float],
    parts: tuple[ClassPlan | SlicePlan, ...],
) -> list[str]:
    """Say what the plan means."""
    texts = []
    goals = {
        f"an unchanged model passes in {PASSES:.0%} of runs": passing,
        f"every rule finds its drop in {POWER:.0%} of runs": finding,
    }
    for what, factors in goals.items():
        if np.isfinite(factors[0]):
            low, high = _interval(total, factors)
            most = f"{high:,}" if high is not None else f"more than {total * FACTORS[-1]:,.0f}"
            texts.append(
                f"With {_items(total * factors[0]):,} items like these, {what}; as far as these "
                f"{total:,.0f} items can tell, with {low:,} to {most}."
            )
        else:
            texts.append(
                f"Up to {total * FACTORS[-1]:,.0f} items like these, it does not hold "
                f"that {what}: take larger limits or fewer rules."
            )
    lacking = [c for c in parts if c.needed is not None and c.needed > c.items]
    lacking.sort(key=lambda c: -(c.needed or 0) / max(c.items, 1))
    texts.extend(f"{c.name} has {c.items:,} items and needs {c.needed:,}." for c in lacking[:5])
    if len(lacking) > len(lacking[:5]):
        texts.append(f"{len(lacking) - 5} more need more items than they have.")
    return texts
