"""Plan a test set: how many items until a gate passes an unchanged model and finds a drop."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rprime.core.arrays import FloatArray
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Pairing
from rprime.core.gates.candidate import chosen, rests_on_class
from rprime.core.gates.evidence import Rows
from rprime.core.gates.kinds import VerdictCode
from rprime.core.gates.lint import MOST_NAMED, assumed, share_text
from rprime.core.gates.rules import Gate, Rule, check_gate
from rprime.core.gates.sentences import number
from rprime.core.gates.simulation import LintError, LintRun, without_scores
from rprime.core.gates.verdict import GateVerdictCode
from rprime.core.intervals.proportions import POWER
from rprime.core.population import Population
from rprime.core.published import PUBLISHED
from rprime.core.quantities import conditions, plural
from rprime.core.slices.slices import Slice

_Result = tuple[str, str | None, Slice | None]
PASSES = 0.9
"""Share of unchanged models that a planned test set should let pass."""
FACTORS = 2 ** (np.arange(57.0) / 4 - 4)
"""Sizes of the test set, relative to the table: from a sixteenth to a thousandfold."""
CLEAR = 0.099
"""How far a quarter of the replicates must be from `PASSES` to decide: three standard errors."""


@dataclass(frozen=True, kw_only=True)
class ClassItems:
    """The items of a class, and how many its rules need."""

    __pydantic_config__: ClassVar = PUBLISHED

    class_: str
    """Name of the class."""
    items: int
    """Its items in the table."""
    needed: int | None
    """To find the drop in 80 % of runs; null if 1000 times as many do not suffice, or no rule is
    about the class."""
    for_width: int | None
    """Until the limits of its results are as near to each other as the `width` asked for; null as
    above, or without a width."""

    @property
    def name(self) -> str:
        """The class, as the subject of a sentence."""
        return f"Class `{self.class_}`"


@dataclass(frozen=True, kw_only=True)
class SliceItems:
    """The items of a slice, and how many its rules need."""

    __pydantic_config__: ClassVar = PUBLISHED

    slice: dict[str, str]
    """Column and value, of a crossing several."""
    items: int
    """Its items in the table."""
    needed: int | None
    """Until an unchanged model passes its rules in 90 % of runs, and each finds the drop in 80 %;
    null if 1000 times as many do not suffice."""
    for_width: int | None
    """As for a class."""

    @property
    def name(self) -> str:
        """The slice, as the subject of a sentence."""
        return f"Slice `{conditions(self.slice)}`"


@dataclass(frozen=True, kw_only=True)
class PlanReport:
    """How many items a gate needs, in the shares of the table's classes.

    Sizes are tried in steps, so that the step before is too small.
    """

    __pydantic_config__: ClassVar = PUBLISHED

    items: int
    """Of the table."""
    for_passing: int | None
    """Until an unchanged model passes in 90 % of runs; null if 1000 times as many as in the table
    do not suffice. The fewest that are tried are a sixteenth of `items`."""
    for_finding: int | None
    """Until every rule finds its drop in 80 % of runs; null as above, or if no rule has one."""
    for_width: int | None
    """Until the lower and the upper limit of every result are as near to each other as the `width`
    asked for; null as above, or without a width. It is interpolated between two steps."""
    discordance: float | None
    """Share of the items that only one of the two models got right; null if unpaired."""
    classes: tuple[ClassItems, ...]
    """What the rules need of each class."""
    slices: tuple[SliceItems, ...]
    """What the rules need of each of their slices."""
    advice: tuple[str, ...]
    """What to change, in sentences; often empty."""


def plan_items(
    gate: Gate,
    side: Side,
    *,
    pairing: Pairing = "paired",
    discordance: float = 0.06,
    drop: float | None = None,
    width: float | None = None,
    replicates: int = 400,
    seed: int = 0,
    population: Population | None = None,
) -> PlanReport:
    """Plan the number of items, by simulation of larger and smaller test sets of the same kind.

    The `drop` to find is where None is given twice the limit of a change or a gap; bounds on values
    and gains have none then. `width` is the largest distance between the limits of a result, each
    at the level of a pass; None plans none. Everything else, and what is raised, is as for `lint`.

    Notes
    -----
    A rule about classes is about those with `min_items` in the table, at all sizes.

    Sizes are tried in steps of a fourth root of 2.
    """
    check_gate(gate)
    _check_drop(gate, drop)
    gate, unsimulated = without_scores(gate)
    gate = replace(gate, rules=tuple(_about_classes(rule, side) for rule in gate.rules))
    run = LintRun.of(
        gate, side, replicates, pairing=pairing, discordance=discordance, population=population
    )
    report = _planned(run, drop, width, replicates=run.fewer(replicates), seed=seed)
    return replace(report, advice=(*unsimulated, *report.advice))


def _planned(
    run: LintRun, drop: float | None, width: float | None, *, replicates: int, seed: int
) -> PlanReport:
    """Plan the items."""
    found, narrow = _finding(run, drop), _narrow(run, width)
    passing, finding, near = _passing(run, replicates, seed), found.largest, narrow.largest
    total, classes = float(run.support.sum()), []
    for label, items in zip(run.labels, run.support.tolist(), strict=True):
        needed, for_width = (_items(items * sizes.of_class(label)) for sizes in (found, narrow))
        part = ClassItems(class_=label, items=round(items), needed=needed, for_width=for_width)
        classes.append(part)
    slices = tuple(_slices(run, found, narrow, passing))
    advice = _advice(run, total, drop, (passing, finding), (*classes, *slices))
    of_width = () if width is None else _width_advice(run, total, width, near)
    return PlanReport(
        items=round(total),
        for_passing=_items(total * passing),
        for_finding=_items(total * finding),
        for_width=_items(total * near),
        discordance=run.discordant,
        classes=tuple(classes),
        slices=slices,
        advice=(*advice, *of_width),
    )


def _check_drop(gate: Gate, drop: float | None) -> None:
    """Raise a `LintError` if a drop to find is one that a rule allows."""
    for rule in gate.rules:
        if drop is not None and rule.traits.tolerates and drop <= rule.limit:
            text = f"The drop must exceed the limit of every rule: {rule.name} allows it."
            raise LintError(text, ("drop",))


def _about_classes(rule: Rule, side: Side) -> Rule:
    """Name the classes that a rule is about, those with enough items, for tables of all sizes."""
    if rule.classes is None or rule.slices is not None or not rule.min_items:
        return rule
    kept = Rows.of(rule, side.labels, side.table.support).labels
    names = tuple(label for label in kept if label is not None)
    return replace(rule, classes=names, min_items=0) if names else rule


def _goal(rule: Rule, drop: float | None) -> float:
    """Return the drop that a rule must find; NaN if there is none."""
    if drop is not None:
        return drop
    return 2 * rule.limit if rule.traits.finds_double else np.nan


def _goals(run: LintRun, drop: float | None) -> list[tuple[_Result, float]]:
    """Return the results that must find a drop, and that drop."""
    pairs = zip(_results(run), _goals_of_results(run, drop), strict=True)
    return [pair for pair in pairs if np.isfinite(pair[1])]


def _goals_of_results(run: LintRun, drop: float | None) -> list[float]:
    """Return the drop that each result must find; NaN for none: an average finds nothing alone."""
    pairs = zip(run.plan.rules, run.plan.means, strict=True)
    return [_goal(rule, drop) if average is None else np.nan for rule, average in pairs]


def _passing(run: LintRun, replicates: int, seed: int) -> float:
    """Find the smallest size at which an unchanged model passes; NaN if none does."""
    if not run.gate.rules:
        return np.nan

    def passes(factor: float) -> bool:
        sized, share = run.of_size(factor), 0.0
        for count in (replicates // 4, replicates):
            verdicts = sized.counted(count, seed)
            share = verdicts.rate(verdicts.gate)[GateVerdictCode.passed]
            if abs(share - PASSES) > CLEAR:
                break
        return share >= PASSES

    place = bisect_left(FACTORS, True, key=passes)  # noqa: FBT003 (the first that does)
    return float(FACTORS[place]) if place < len(FACTORS) else np.nan


@dataclass(frozen=True, eq=False)
class _Sizes:
    """The size of the test set that each of some results needs, relative to the table, or NaN."""

    results: Sequence[_Result]
    factors: FloatArray

    @property
    def largest(self) -> float:
        """What all results need."""
        return _largest(self.factors)

    def of_class(self, label: str) -> float:
        """Return what the results of a class need."""
        return _largest(self.factors[[name == label for _, name, _ in self.results]])

    def of_slice(self, part: Slice, gaps: set[str]) -> FloatArray:
        """Return what each result of a slice needs, and each gap between it and others."""
        inside = [name == part or key in gaps for key, _, name in self.results]
        return self.factors[np.flatnonzero(inside)]


def _finding(run: LintRun, drop: float | None) -> _Sizes:
    """Find the size at which each of `_goals` of the largest one is found with power .8, or NaN."""
    pairs = _goals(run.of_size(FACTORS[-1]), drop)
    results, goals = [result for result, _ in pairs], [goal for _, goal in pairs]
    reached = _at_sizes(run, results, LintRun.detectable) <= np.array(goals)
    first = np.argmax(reached, axis=0)
    return _Sizes(results, np.where(reached.any(0), FACTORS[first], np.nan))


def _narrow(run: LintRun, width: float | None) -> _Sizes:
    """Find the size at which the limits of each result are so near to each other, or NaN.

    Between two sizes the logarithm of the distance is nearly a straight line of that of the size.
    """
    if width is None:
        return _Sizes((), np.zeros(0))

    def distance(sized: LintRun) -> FloatArray:
        low, high = sized.tests.limits(run.gate.pass_level())
        return np.asarray(high - low)

    results = _results(run.of_size(FACTORS[-1]))
    distances = _at_sizes(run, results, distance)
    reached = distances <= width
    first = np.argmax(reached, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        after, before = (
            np.log(np.take_along_axis(distances, place[None], 0)[0])
            for place in (first, np.maximum(first - 1, 0))
        )
        share = (np.log(width) - after) / (before - after)
    back = np.where((first > 0) & np.isfinite(share), share, 0.0)
    step = np.log(FACTORS[1] / FACTORS[0])
    factors = FACTORS[first] * np.exp(-back * step)
    return _Sizes(results, np.where(reached.any(0), factors, np.nan))


def _at_sizes(
    run: LintRun, results: Sequence[_Result], measure: Callable[[LintRun], FloatArray]
) -> FloatArray:
    """Measure results at each of `FACTORS`; infinite for one that a smaller test set lacks."""
    numbers = np.full((len(FACTORS), len(results)), np.inf)
    for row, factor in zip(numbers, FACTORS, strict=True):
        sized = run.of_size(factor)
        if results and sized.plan.rules:
            measured = dict(zip(_results(sized), measure(sized).tolist(), strict=True))
            row[...] = [measured.get(result, np.inf) for result in results]
    return numbers


def _slices(run: LintRun, found: _Sizes, narrow: _Sizes, passing: float) -> Iterator[SliceItems]:
    """Yield the items that the results of each slice need; `passing`: all of the gate's."""
    rules = {rule.name: rule for rule in run.gate.rules if rule.slices is not None}
    inside = {key: chosen(rule, run.slices) for key, rule in rules.items()}
    for name, items in zip(run.slices, run.sizes_of_slices.sum(-1).tolist(), strict=True):
        held = [rule for key, rule in rules.items() if name in inside[key]]
        gaps = {rule.name for rule in held if rule.traits.between_slices}
        must_pass = [passing] * any(not rule.decides_by.averages for rule in held)
        needed = float(np.max([*must_pass, *found.of_slice(name, gaps)]))
        near = _largest(narrow.of_slice(name, gaps))
        yield SliceItems(
            slice=dict(name),
            items=round(items),
            needed=_items(items * needed),
            for_width=_items(items * near),
        )


def _results(run: LintRun) -> list[_Result]:
    """Return rule, class and slice of each result."""
    names = (rule.name for rule in run.plan.rules)
    return list(zip(names, run.plan.labels, run.plan.slices, strict=True))


def _largest(factors: FloatArray) -> float:
    return float(np.max(factors)) if factors.size else np.nan


def _items(count: float) -> int | None:
    return int(np.ceil(count)) if np.isfinite(count) else None


def _advice(
    run: LintRun,
    total: float,
    drop: float | None,
    factors: tuple[float, float],
    parts: tuple[ClassItems | SliceItems, ...],
) -> Iterator[str]:
    """Say what the plan means."""
    rules = run.gate.rules
    if not rules:
        yield "The gate has no rules: it never passes."
        return
    without = [rule.name for rule in rules if np.isnan(_goal(rule, drop))]
    every = "every other rule" if without else "every rule"
    what = (
        (
            f"an unchanged model passes in {share_text(PASSES)} of runs",
            "milder limits or fewer rules",
        ),
        (
            f"{every} finds its drop in {share_text(POWER)} of runs",
            "stricter limits or a larger `drop`",
        ),
    )
    obstacles = list(_obstacles(run.of_size(FACTORS[-1])))
    for (holds, cure), factor in zip(what, factors, strict=True):
        if holds == what[1][0] and len(without) == len(rules):
            continue
        if np.isfinite(factor):
            yield _enough(total, factor, holds)
        else:
            remedy = "." if obstacles else f": take {cure}."
            most = f"{total * FACTORS[-1]:,.0f}"
            yield f"Up to {most} items like these, it does not hold that {holds}{remedy}"
    if without:
        names = ", ".join(without)
        yield f"The limit says no drop that {names} should find: state one as `drop`."
    yield from obstacles
    yield from assumed(run.gate, run.discordant)
    yield from _lacking(total, rules, parts)


def _width_advice(run: LintRun, total: float, width: float, factor: float) -> Iterator[str]:
    """Say from how many items on the limits of all results are as near as asked for."""
    untested = [rule.name for rule in run.gate.rules if rule.test == "none"]
    confidence = number(100 * (1 - run.gate.pass_level()))
    near = (
        f"the limits of every result, each with {confidence} % confidence, are at most "
        f"{number(width)} apart"
    )
    if untested:
        yield f"Point values have no limits: take `test: none` out of {', '.join(untested)}."
    elif not run.gate.rules:
        return
    elif np.isfinite(factor):
        yield f"From about {_items(total * factor):,} items like these on, {near}."
    else:
        most = f"{total * FACTORS[-1]:,.0f}"
        yield f"Up to {most} items like these, it does not hold that {near}: take a larger `width`."


def _enough(total: float, factor: float, holds: str) -> str:
    """Say how many items are enough: the size that is, and the step before that is not."""
    most = f"{_items(total * factor):,}"
    if factor <= FACTORS[0]:
        return f"With {most} items or fewer like these, {holds}."
    before = FACTORS[np.searchsorted(FACTORS, factor) - 1]
    return f"From between {_items(total * before):,} and {most} items like these on, {holds}."


def _obstacles(run: LintRun) -> Iterator[str]:
    """Name the rules that an unchanged model does not pass even on so large a test set."""
    plan, tests = run.plan, run.tests
    point, fixed = (part.reshape(-1, len(plan.rules))[0] for part in (run.centre, tests.fixed))
    beyond = np.where(plan.guards_below, point < plan.threshold, point > plan.threshold)
    for rule in run.gate.rules:
        places = [i for i, other in enumerate(plan.rules) if other is rule]
        if any(fixed[i] != VerdictCode.by_test for i in places):
            yield (
                f"Rule {rule.name} cannot be judged: a class or slice that it is about has no "
                "items, or no value."
            )
        elif not rule.traits.unchanged_passes:
            yield f"Rule {rule.name} demands a gain, so an unchanged model does not pass it."
        elif not rule.traits.compares and any(beyond[places]):
            yield f"Rule {rule.name} forbids this model: its value is beyond the limit."


def _lacking(
    total: float, rules: tuple[Rule, ...], parts: tuple[ClassItems | SliceItems, ...]
) -> Iterator[str]:
    """Name the classes and slices with too few items, those that lack most first."""
    lacking = [c for c in parts if c.needed is not None and c.needed > c.items]
    lacking.sort(key=lambda c: -(c.needed or 0) / max(c.items, 1))
    for part in lacking[:MOST_NAMED]:
        needed = part.needed or 0
        if isinstance(part, SliceItems) or all(_of_own_items(rule) for rule in rules):
            yield f"{part.name} has {plural(part.items, 'item')} and needs {needed:,}."
        else:
            every = total * needed / part.items
            yield (
                f"{part.name} has {plural(part.items, 'item')} and needs {needed:,} among "
                f"{every:,.0f} like these: items of the other classes count, too."
            )
    if (more := len(lacking) - MOST_NAMED) > 0:
        yield f"{plural(more, 'other', 'have')} fewer items than needed, too."


def _of_own_items(rule: Rule) -> bool:
    """Whether a class needs no items of other classes: its index is one of its own items."""
    return rule.classes is None or rests_on_class(rule.target.entry)
