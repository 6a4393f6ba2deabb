"""Leaderboard: versions in tiers, where tests find no difference to the best of a tier."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import orjson

from rprime.application.stored_sides import read_options, shaping_options, side_of_stored
from rprime.application.work import RemoteStore
from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import Comparison, compare
from rprime.core.multiplicity import holm
from rprime.core.options import Options
from rprime.core.population import Population
from rprime.core.published import Json
from rprime.core.quantities import plural
from rprime.core.slices.comparison import side_of_slice
from rprime.core.slices.slices import Slice
from rprime.history.series import Measured, Point
from rprime.problems.problem import refuse
from rprime.report.subject import evaluation_name
from rprime.schemas.history import LeaderboardQuery
from rprime.store import Filters, Store
from rprime.store.ids import created_at

LEVEL = 0.05
"""One-sided, Holm-adjusted over all ordered pairs of versions, since their order is observed."""
MOST_MEASURED = 10_000
BIASED = "The best of several observed values is too high on average."

OTHER_POPULATION, OTHER_OPTIONS = "different_populations", "different_options"
"""Why a version has no place: its value is about another population, or computed otherwise."""

_SHOWN = ("evaluation", "model", "version", "value", "interval")


@dataclass(frozen=True)
class Versions:
    """The versions that a query selects; `points` are the newest evaluation of each."""

    measured: Measured
    points: list[Point]
    filters: Filters


def versions_of(store: Store, project: str, query: LeaderboardQuery) -> Versions:
    """Find the versions that a query selects. Reads the store.

    Problem 422 if no direction of the index is better, 404 if no evaluation has the class.
    """
    measured = Measured.of(query.index, query.class_, uniform=query.prevalence is not None)
    if measured.index.higher_is_better is None:
        detail = "The index has no better direction, so it cannot order versions."
        raise refuse("/query/index", "not_ordered", detail)
    filters = _filters(store, project, query)
    points = measured.points(store, project, filters, MOST_MEASURED)
    if not points:
        measured.refuse_unknown(store, project, filters)
    if query.test_set is None and filters.test_set is None and filters.fingerprint is None:
        points = [point for point in points if point.test_set is None]
    # Without a version each evaluation stands for itself.
    newest = {(p.model, p.version or f"\n{p.evaluation}"): p for p in points}
    return Versions(measured, list(newest.values()), filters)


def leaderboard_in_worker(
    _body: bytes, store: RemoteStore, *, query: LeaderboardQuery, versions: Versions
) -> bytes:
    """Return the tiers as JSON: to test many pairs of items takes time and memory."""
    measured, filters = versions.measured, versions.filters
    ranking = TierRanking(store.as_store, measured, query.limit, query.slice, versions.points)
    tiers: list[Json] = []
    for points, why in ranking.tiers():
        shown = [{name: getattr(point, name) for name in _SHOWN} for point in points]
        tiers.append({"tier": len(tiers) + 1, "versions": shown, "why": why})
    document = {
        "index": measured.index.key,
        "class": measured.label,
        "slice": dict(query.slice) or None,
        "prevalence": query.prevalence,
        "test_set": filters.test_set or filters.fingerprint,
        "tiers": tiers,
        "unranked": ranking.unranked,
    }
    return orjson.dumps(document)


def _filters(store: Store, project: str, query: LeaderboardQuery) -> Filters:
    """Select one test set, since values on different test sets are not comparable."""
    names: Json = {"model": query.model, "branch": query.branch, "slice": query.slice}
    if query.test_set is not None:
        return Filters(test_set=query.test_set, **names)
    newest = store.page(project, Filters(**names), limit=1).items
    if newest and newest[0].test_set is not None:
        return Filters(test_set=newest[0].test_set, **names)
    return Filters(fingerprint=newest[0].fingerprint if newest else None, **names)


@dataclass(eq=False)
class TierRanking:
    """Ranks versions by tests between the best of each tier and the remaining ones.

    Which version is the best one is known from the same items, so the family of tests are both
    directions of every pair of versions with a value, also of those that the limit leaves out. Only
    tests with the best of a tier are computed; the others count as if they never rejected.

    Its points are the newest evaluation of each version. Only the items of `one` slice count;
    empty: all do.
    """

    store: Store
    measured: Measured
    limit: int
    one: Slice
    points: list[Point]
    unranked: list[Json] = field(default_factory=list)
    sides: dict[str, Side] = field(default_factory=dict)
    options: dict[str, Options] = field(default_factory=dict)
    plain: dict[bytes, Options] = field(default_factory=dict)
    tested: list[float] = field(default_factory=list)

    def tiers(self) -> Iterator[tuple[list[Point], str]]:
        """Yield the tiers, best first, each with the reason for it."""
        remaining = self.contenders
        while remaining:
            first = remaining is self.contenders
            tier, remaining, why = self._next(remaining)
            yield tier, f"{why} {BIASED}" if first and len(self.known) > 1 else why

    @cached_property
    def contenders(self) -> list[Point]:
        """The versions to rank, best first."""
        return self.known[: self.limit]

    @cached_property
    def known(self) -> list[Point]:
        """The versions with a value, best first."""
        ranked: list[tuple[float, Point]] = []
        sign = -1.0 if self.measured.index.higher_is_better else 1.0
        newest = max((p for p in self.points if p.value is not None), default=None)
        for point in self.points:
            if point.value is None:
                self._leave_out(point, point.reason)
            elif newest is not None and point.population != newest.population:
                self._leave_out(point, OTHER_POPULATION)
            elif newest is not None and point.options != newest.options:
                self._leave_out(point, OTHER_OPTIONS)
            else:
                ranked.append((sign * point.value, point))
        return [point for _, point in sorted(ranked)]

    @property
    def family(self) -> int:
        """Number of ordered pairs of versions."""
        return len(self.known) * (len(self.known) - 1)

    def _adjusted(self, p: list[float]) -> Array:
        """Adjust p-values of comparisons with the best of a tier, beside those of tiers before."""
        self.tested += p
        return holm(self.tested, self.family)[len(self.tested) - len(p) :]

    def _leave_out(self, point: Point, reason: str) -> None:
        names = {"evaluation": point.evaluation, "model": point.model, "version": point.version}
        self.unranked.append({**names, "reason": reason})

    def _next(self, remaining: list[Point]) -> tuple[list[Point], list[Point], str]:
        """Split off the next tier: the best remaining version and all not shown to be worse."""
        best, *others = remaining
        side, held = self._side(best), []
        options = self.options[best.evaluation]
        for other in others:
            if self._shares(other) != self._shares(best):
                self._leave_out(other, OTHER_POPULATION)
            elif self._weights(other) != self._weights(best):
                self._leave_out(other, OTHER_OPTIONS)
            else:
                compared = compare(side, self._side(other), options, attributed=())
                held.append((other, compared))
        for other, comparison in held:
            if comparison.comparability == "different":
                self._leave_out(other, "different_test_sets")
        held = [pair for pair in held if pair[1].comparability != "different"]
        adjusted = self._adjusted([self._p(comparison) for _, comparison in held])
        apart = adjusted < LEVEL
        together = [other for (other, _), worse in zip(held, apart, strict=True) if not worse]
        worse = [other for (other, _), is_worse in zip(held, apart, strict=True) if is_worse]
        why = _why(best, [c for _, c in held], adjusted, apart, versions=len(self.known))
        return [best, *together], worse, why

    def _side(self, point: Point) -> Side:
        if point.evaluation not in self.sides:
            stored = self.store.get(point.evaluation)
            whole = side_of_stored(stored, self.store, slice_=self.one)
            # The points have the slice.
            side = self.sides[point.evaluation] = side_of_slice(whole, self.one) or whole
            self.options[point.evaluation] = self._options(stored.options, side)
        return self.sides[point.evaluation]

    def _options(self, content: bytes, side: Side) -> Options:
        """Return what a version is compared with.

        About items the same object for the same options, so that each side is computed once.
        """
        population = read_options(content, 0).population
        if self.measured.uniform:
            population = Population.uniform(side.table)
        shaping = shaping_options(content)
        if shaping not in self.plain:
            keys = (self.measured.index.key,)
            self.plain[shaping] = replace(read_options(shaping, 0), indices=keys)
        plain = self.plain[shaping]
        return plain if population is None else replace(plain, population=population)

    def _weights(self, point: Point) -> dict[tuple[str, str], float]:
        """Return the cell weights other than 1 of a value, by the classes."""
        labels, weights = self._side(point).labels, self.options[point.evaluation].cell_weights
        if weights is None:
            return {}
        places = zip(*np.nonzero(weights != 1), strict=True)
        return {(labels[i], labels[j]): float(weights[i, j]) for i, j in places}

    def _shares(self, point: Point) -> dict[str, float] | None:
        """Return the prevalence of the classes in the population of a value; None: the items.

        That of strata of predicted classes is an estimate, and each has its own.
        """
        labels, population = self._side(point).labels, self.options[point.evaluation].population
        if population is None:
            return None
        if population.strata != "true":
            return {point.evaluation: 1.0}
        return {name: n for name, n in zip(labels, population.shares.tolist(), strict=True) if n}

    def _p(self, comparison: Comparison) -> float:
        """Return the p-value that the best is better; NaN without a test."""
        key, label = self.measured.index.key, self.measured.label
        if label is None:
            deltas = comparison.of_overall(key)[np.newaxis]
        elif label in comparison.classes:
            deltas = comparison.of_classes(key, (label,))
        else:
            return float("nan")
        with np.errstate(all="ignore"):
            below, above = deltas.p(0.0)
            return float((above if self.measured.index.higher_is_better else below)[0])


def _why(
    best: Point, held: list[Comparison], adjusted: Array, apart: Array, *, versions: int
) -> str:
    """Explain a tier by its tests."""
    if not held:
        return "There is no other version to compare it with."
    name = evaluation_name(best.model, best.version, created_at(best.evaluation))
    how = " and ".join(sorted({comparison.pairing or "untested" for comparison in held}))
    over = f"all ordered pairs of {plural(versions, 'version')}"
    tests = f"{how} tests, one-sided at {LEVEL:g}, Holm-adjusted over {over}"
    tied, worse = adjusted[~apart], adjusted[apart]
    parts = []
    if tied.size:
        closest = np.nanmin(tied) if np.isfinite(tied).any() else None
        by = "no test exists" if closest is None else f"smallest p {closest:.3g}"
        number = plural(tied.size, "version")
        parts.append(f"{number} without a clear difference to {name} ({by})")
    if worse.size:
        number = plural(worse.size, "version")
        parts.append(f"{number} shown to be worse than {name} (largest p {worse.max():.3g})")
    return f"{'; '.join(parts)}: {tests}."
