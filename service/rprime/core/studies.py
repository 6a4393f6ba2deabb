"""Studies of the papers: how indices correlate and discriminate, and which properties they have.

No property is declared: each is found by computing the catalog on random tables before and after
a change. The formulas are analytic, or piecewise analytic, in the counts, so two that agree on
generic tables of every piece agree everywhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index, IndexScope
from rprime.core.options import Options
from rprime.core.published import PUBLISHED, defined
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import Values, compute

MOST_COMPARISONS = 4_000_000
"""Comparisons of two models under an index that are in memory at the same time."""


@dataclass(frozen=True, slots=True)
class AgreementPair:
    """How far two indices agree over the models for which both are defined."""

    __pydantic_config__: ClassVar = PUBLISHED

    a: str
    """Name of one index."""
    b: str
    """Name of the other."""
    n: int
    """Models for which both are defined."""
    pearson: float | None
    """Of the values, -1 to 1; null if undefined."""
    spearman: float | None
    """Of the ranks, ties sharing the mean rank, -1 to 1; null if undefined."""
    kendall: float | None
    """Tau-b, -1 to 1; null if undefined."""
    rmse: float | None
    """Root of the mean squared difference; null without models."""


@dataclass(frozen=True, slots=True)
class OpposedPair:
    """Pairs of models of which one index prefers the first and the other the second."""

    __pydantic_config__: ClassVar = PUBLISHED

    a: str
    """Name of one index."""
    b: str
    """Name of the other."""
    count: int
    """Pairs of models that they order in opposite ways."""
    compared: int
    """Pairs in which each of the two indices prefers a model."""
    models: list[tuple[int, int]]
    """Some of the pairs, by position in the lists of values, from 0: the model that `a` prefers,
    and the one that `b` prefers."""


@dataclass(frozen=True, slots=True)
class Quartiles:
    """The box plot of the values of an index over the models."""

    __pydantic_config__: ClassVar = PUBLISHED

    n: int
    """How many values are defined."""
    minimum: float
    """The smallest value."""
    lower: float
    """First quartile, linearly interpolated."""
    median: float
    """The value in the middle."""
    upper: float
    """Third quartile."""
    maximum: float
    """The largest value."""


def agreements(values: Mapping[str, Array]) -> list[AgreementPair]:
    """Correlate every two indices; by name, values of shape (model,), NaN where there is none.

    References
    ----------
    Zhang, Su, Dou 2021, section 4.2; Kendall 1945 for tau-b.
    """
    names, numbers = list(values), np.array(list(values.values()), dtype=np.float64)
    if not numbers.size:
        return []
    finite = np.isfinite(numbers)
    filled = np.where(finite, numbers, 0.0)
    taus, ranks = _orderings(filled, finite)
    pairs = []
    for a in range(len(names) - 1):
        later = slice(a + 1, None)
        both = finite[a] & finite[later]
        n, first, others = both.sum(axis=-1), np.broadcast_to(filled[a], both.shape), filled[later]
        with np.errstate(all="ignore"):
            pearson = _correlation(first, others, both)
            spearman = _correlation(ranks[a, later], ranks[later, a], both)
            rmse = np.sqrt(np.add.reduce((first - others) ** 2, axis=-1, where=both) / n)
        coefficients = np.array((pearson, spearman, taus[a, later], rmse))
        rows = zip(names[later], n.tolist(), coefficients.T.tolist(), strict=True)
        pairs += [AgreementPair(names[a], b, n, *map(defined, row)) for b, n, row in rows]
    return pairs


def disagreements(
    values: Mapping[str, Array], directions: Sequence[int], listed: int
) -> Iterator[OpposedPair]:
    """Yield every two indices that disagree about which model of some pair is better.

    A tie under one of the two is no disagreement. Values are as in `agreements`, and `directions`
    as `direction` says. At most `listed` pairs of models are named.
    """
    numbers = np.array(list(values.values()), dtype=np.float64)
    oriented = np.where(np.isfinite(numbers), numbers, np.nan) * np.array(directions)[:, None]
    first, second = np.triu_indices(numbers.shape[1], 1)
    # An order that involves a missing value counts as a tie.
    orders = {
        name: np.nan_to_num(np.sign(row[first] - row[second])).astype(np.int8)
        for name, row in zip(values, oriented, strict=True)
    }
    for a, b in combinations(orders, 2):
        product = orders[a] * orders[b]
        opposed = np.flatnonzero(product < 0)
        if opposed.size:
            named = opposed[:listed]
            swapped = orders[a][named] < 0
            better = np.where(swapped, second[named], first[named]).tolist()
            worse = np.where(swapped, first[named], second[named]).tolist()
            models = list(zip(better, worse, strict=True))
            yield OpposedPair(a, b, int(opposed.size), int(np.count_nonzero(product)), models)


def box(values: Array) -> Quartiles | None:
    """Summarise values of shape (model,), NaN where one does not exist; None if none exists."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    return Quartiles(int(finite.size), *np.quantile(finite, (0, 0.25, 0.5, 0.75, 1)).tolist())


def direction(index: Index | None) -> int:
    """Return 1 if larger is better or the index is unknown, else -1."""
    return -1 if index is not None and index.higher_is_better is False else 1


def _correlation(left: Array, right: Array, where: Array) -> Array:
    """Correlate the rows of two arrays; NaN where one of them is constant."""
    n = where.sum(axis=-1, keepdims=True)
    sides = []
    for side in (left, right):
        # The mean of equal numbers can differ from them in the last bit.
        low = np.minimum.reduce(side, axis=-1, where=where, initial=np.inf)
        high = np.maximum.reduce(side, axis=-1, where=where, initial=-np.inf)
        centre = np.add.reduce(side, axis=-1, where=where, keepdims=True) / n
        deviation = np.where(where, side - centre, 0.0)
        spread = np.sqrt(np.add.reduce(deviation * deviation, axis=-1))
        sides.append(deviation / np.where(low < high, spread, np.nan)[:, None])
    return np.clip(np.add.reduce(sides[0] * sides[1], axis=-1), -1.0, 1.0)


def _orderings(values: Array, defined: Array) -> tuple[Array, Array]:
    """Compare all models with all others, under every index, block by block.

    Returns Kendall's tau-b, shape (index, index); and the ranks of the models under an index among
    those with a value of the other index, shape (index, index, model), centred and doubled.
    """
    indices, models = values.shape
    present = defined.astype(np.float64)
    ranks = np.empty((indices, indices, models))
    concordance, decided = np.zeros((2, indices, indices))
    block = max(1, MOST_COMPARISONS // (indices * models))
    for start in range(0, models, block):
        part = slice(start, start + block)
        order = np.sign(values[:, part, None] - values[:, None, :])
        order *= present[:, part, None] * present[:, None, :]
        ranks[:, :, part] = (order @ present.T).transpose(0, 2, 1)
        flat = order.reshape(indices, -1)
        pairs = (present[:, part, None] * present[:, None, :]).reshape(indices, -1)
        concordance += flat @ flat.T
        decided += np.abs(flat) @ pairs.T
    with np.errstate(all="ignore"):
        taus = concordance / np.sqrt(decided * decided.T)
    return np.where(decided * decided.T > 0, taus, np.nan), ranks


Series = Literal["x", "y"]

ALMOST_ZERO = 1e-300
"""Replaces a rate of 0: a class that is never predicted has no precision, so averages would leave
it out and jump. At this rate they have the limit of the index."""
TOLERANCE = 1e-13
"""Largest relative difference of values that count as equal."""
MOST_CELLS = 1_000_000
"""Cells of the tables of one series that are in memory at the same time."""


@dataclass(frozen=True, eq=False)
class TracedIndex:
    """An index that needs no option; of a per-class one the number of the class, from 1."""

    index: Index
    class_: int | None = None


@dataclass(frozen=True, slots=True)
class DiscriminationLine:
    """Where an index gives both series the same value; above the line it prefers series y.

    An index that is not monotone has several lines, each with an entry of its own.
    """

    __pydantic_config__: ClassVar = PUBLISHED

    index: str
    """Key of the index."""
    class_: int | None
    """From 1; null for an overall index."""
    k: int
    """Number of classes."""
    p: float
    """Imbalance of the classes, 0 to 1."""
    points: list[tuple[float, float]]
    """[c_x, c_y] along the line; empty if there is no line."""
    prefers: Series | None
    """The series that it always prefers, if there is no line. If no value is best, the larger one
    counts as preferred."""
    reason: Literal["indifferent", "undefined"] | None = None
    """Why there is neither a line nor a preference: the two series always have the same value, or
    there are none to compare."""

    @property
    def coordinates(self) -> Array:
        """The points, shape (n, 2)."""
        return np.array(self.points, dtype=np.float64).reshape(-1, 2)


def proportions(k: int, imbalance: Array) -> Array:
    """Shares of k classes, from equal ones (p = 0) to ones that halve from class to class (1).

    For p of shape (...), (1 - p) / k + p 2^(k - i) / (2^k - 1), shape (..., k): Labatut, Cherifi
    2011, section 5.
    """
    halving = 2.0 ** np.arange(k - 1, -1, -1) / (2.0**k - 1)
    p = np.asarray(imbalance, dtype=np.float64)[..., None]
    return np.asarray((1 - p) / k + p * halving)


def series_tables(shares: Array, rates: Array, unequal: Array) -> ConfusionTable:
    """Build the tables of classifiers that spread their errors evenly over the other classes.

    For the proportions of the classes, shape (..., k), and the probability of being right, shape
    (...). It is that of class 1 alone where `unequal`: other classes are always predicted correctly
    (series y); else that of every class (series x).
    """
    k = shares.shape[-1]
    shape = np.broadcast_shapes(shares.shape[:-1], rates.shape, unequal.shape)
    right = np.where(unequal[..., None], 1.0, rates[..., None])
    right = np.broadcast_to(right, (*shape, k)).copy()
    right[..., 0] = rates
    counts = np.repeat(((1 - right) * shares / (k - 1))[..., None], k, axis=-1)
    counts[..., range(k), range(k)] = right * shares
    return ConfusionTable.dense(counts)


def discriminate(
    subjects: Sequence[TracedIndex], k: int, imbalances: Sequence[float], resolution: int
) -> list[DiscriminationLine]:
    """Trace the lines of indices for k classes (Labatut, Cherifi 2011).

    Parameters
    ----------
    imbalances
        Values of p, from 0 to 1.
    resolution
        Number of values of each rate from 0 to 1, at least 3. The points are where a line
        crosses the grid, exact to the precision of the index.
    """
    block = max(1, MOST_CELLS // (resolution * max(resolution, k * k)))
    grid, starts = np.linspace(0, 1, resolution), range(0, len(imbalances), block)
    blocks = [_traced(subjects, k, imbalances[i : i + block], grid) for i in starts]
    return [line for lines in zip(*blocks, strict=True) for part in lines for line in part]


def _traced(
    subjects: Sequence[TracedIndex], k: int, imbalances: Sequence[float], grid: Array
) -> list[list[DiscriminationLine]]:
    """Trace the lines of every subject, all tables of the grid in one stack."""
    shares = proportions(k, np.array(imbalances, dtype=np.float64))
    rates = np.maximum(grid, ALMOST_ZERO)
    table = series_tables(shares[:, None, None], rates, np.array([False, True])[:, None])
    options = Options(indices=tuple(dict.fromkeys(s.index.key for s in subjects)))
    values = compute(table, options, select(options))
    traced = (_Tracing(subject, shares, grid, _of(values, subject)) for subject in subjects)
    return [list(tracing.lines(imbalances)) for tracing in traced]


def _of(values: Values, subject: TracedIndex) -> Array:
    numbers = values.lookup(subject.index.scope, subject.index.key)
    numbers = numbers if subject.class_ is None else numbers[..., subject.class_ - 1]
    exists = np.isfinite(numbers)
    for key in subject.index.of:
        # An average that leaves out classes in only one series cannot compare the two.
        exists &= values.defined[values.selection.place[key]].all(axis=-1)
    return np.where(exists, numbers, np.nan)


@dataclass(frozen=True, eq=False)
class _Tracing:
    """The lines of one index for several imbalances.

    `shares` has the shape (p, k), `grid` n rates, and `values` those of series x and y at every
    rate, shape (p, 2, n).
    """

    subject: TracedIndex
    shares: Array
    grid: Array
    values: Array

    def lines(self, imbalances: Sequence[float]) -> Iterator[DiscriminationLine]:
        """Yield the lines, or the reason why none exists, in the order of the imbalances."""
        x, y = self.values[:, 0, :, None], self.values[:, 1, None, :]
        same = np.abs(x - y) <= TOLERANCE * (1 + np.maximum(np.abs(x), np.abs(y)))
        # Of every pair of rates, shape (p, n, n); NaN where undefined.
        signs = np.where(same, 0.0, np.sign(x - y))
        edges, corners = _edges(signs), _vertices(signs)
        every = np.concatenate((self._points(edges), self.grid[corners[:, 1:]]))
        places = np.concatenate((edges[:, 0], corners[:, 0]))
        about = self.subject.index.key, self.subject.class_, self.shares.shape[-1]
        for place, p in enumerate(imbalances):
            points = every[places == place]
            if len(points) > 1:
                for branch in self._branches(place, points):
                    yield DiscriminationLine(*about, p, branch.tolist(), None)
            else:
                yield DiscriminationLine(*about, p, [], *self._verdict(signs[place]))

    def _points(self, edges: Array) -> Array:
        """Find where lines cross edges of the grid, all at once, shape (n, 2)."""
        from scipy.optimize import elementwise  # noqa: PLC0415 (takes as long to import as the service to start)

        place, fixed, below, unequal = edges.T
        rates = np.maximum(self.grid, ALMOST_ZERO)
        # The value at the unknown rate equals the value of the other series.
        target = self.values[place, 1 - unequal, fixed]
        unknown = np.empty(target.size)
        block = max(1, MOST_CELLS // self.shares.shape[-1] ** 2)
        for start in range(0, target.size, block):
            part = slice(start, start + block)
            ends = rates[below[part]], rates[below[part] + 1]
            args = place[part], unequal[part], target[part]
            unknown[part] = elementwise.find_root(self._excess, ends, args=args).x
        unknown[unknown <= ALMOST_ZERO] = 0.0
        fixed_rates = self.grid[fixed]
        both = np.where(unequal, (fixed_rates, unknown), (unknown, fixed_rates))
        return both.T

    def _excess(self, rates: Array, place: Array, unequal: Array, target: Array) -> Array:
        table = series_tables(self.shares[place.astype(np.intp)], rates, unequal > 0)
        options = Options(indices=(self.subject.index.key,))
        return _of(compute(table, options, select(options)), self.subject) - target

    def _branches(self, place: int, points: Array) -> Iterator[Array]:
        """Split points into lines along which both series are monotone, and order them."""
        pieces, slopes = [], []
        for axis in (0, 1):
            rising = _directions(self.values[place, axis])
            piece = np.cumsum(np.diff(rising, prepend=rising[0]) != 0)
            interval = np.searchsorted(self.grid[1:-1], points[:, axis], side="right")
            pieces.append(piece[interval])
            slopes.append(rising[interval])
        # Along a line the values of both series move together.
        falling = slopes[0] * slopes[1] < 0
        order = np.lexsort((np.where(falling, -1, 1) * points[:, 1], points[:, 0], *pieces))
        ordered, branch = points[order], np.stack(pieces, axis=-1)[order]
        ends = np.flatnonzero((branch[1:] != branch[:-1]).any(axis=-1)) + 1
        yield from (part for part in np.split(ordered, ends) if len(part) > 1)

    def _verdict(
        self, signs: Array
    ) -> tuple[Series | None, Literal["indifferent", "undefined"] | None]:
        if not np.isfinite(signs[1:-1, 1:-1]).all():
            return None, "undefined"
        over, under = bool((signs > 0).any()), bool((signs < 0).any())
        if not (over or under):
            return None, "indifferent"
        return ("x" if over == (self.subject.index.higher_is_better is not False) else "y"), None


def _edges(signs: Array) -> Array:
    """Find the edges of the grid at whose ends the signs are opposite, shape (n, 4).

    Position among the imbalances; numbers of the grid value on whose line the edge lies, and of the
    one just below the other rate, the unknown one; 1 if this is that of series y, else 0.
    """
    of_y = np.argwhere(signs[:, :, :-1] * signs[:, :, 1:] < 0)
    of_x = np.argwhere(signs[:, :-1] * signs[:, 1:] < 0)[:, [0, 2, 1]]
    unequal = np.repeat((1, 0), (len(of_y), len(of_x)))
    return np.column_stack((np.concatenate((of_y, of_x)), unequal))


def _vertices(signs: Array) -> Array:
    """Find points of the grid on a line: equality, and both signs around it.

    If the two series agree in a whole region, or along a border of the square, no line exists.
    Shape (n, 3): place and the two numbers of grid values.
    """
    padded = np.pad(signs, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    candidates = np.argwhere(signs == 0)
    around = windows[tuple(candidates.T)]
    both = (around > 0).any(axis=(-2, -1)) & (around < 0).any(axis=(-2, -1))
    return candidates[both]


def _directions(values: Array) -> Array:
    """Return 1 where values rise and -1 where they fall; flat intervals keep the last sign."""
    steps = np.diff(values)
    steps[~(np.abs(steps) > TOLERANCE * (1 + np.abs(values[1:])))] = 0
    signs = np.sign(steps)
    moving = np.where(signs != 0, np.arange(len(signs)), -1)
    last = np.maximum.accumulate(moving)
    first = np.argmax(signs != 0)
    return np.where(last >= 0, signs[last], signs[first])


Extent = Literal["always", "same_test_set"]
SIZES = (3, 4)
"""Numbers of classes. Two classes have more properties, because every error involves both."""
TABLES = 48
"""Tables for each number of classes; analytic formulas need one, piecewise ones need more."""
PROPERTY_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Relation:
    """Another index of the same scope that orders models the same way."""

    __pydantic_config__: ClassVar = PUBLISHED

    key: str
    """Key of the other index."""
    rising: bool
    """Whether both rise together, or one falls as the other rises."""
    extent: Extent
    """Whether it holds for any two tables, or only among models on one test set: that is, for fixed
    class sizes."""


@dataclass(frozen=True, slots=True)
class Properties:
    """What an index is invariant to: computed, where all items are classified and k > 2."""

    __pydantic_config__: ClassVar = PUBLISHED

    class_order: bool
    """The order of the classes; options stay as they are."""
    scale: bool
    """Multiplying all counts by one factor."""
    prevalence: bool
    """The proportions of the true classes, each treated as before."""
    own_prevalence: bool | None
    """The proportion of its own class only, the others in fixed proportions; null for an overall
    index."""
    transposition: bool
    """Exchanging truth and prediction."""
    transposed: str | None
    """The index that it turns into by that, if any."""
    relations: tuple[Relation, ...]
    """Indices that order models the same way."""


def properties_of(index: Index) -> Properties:
    """Return the properties of an index of the catalog."""
    return all_properties()[index.scope, index.key]


@cache
def all_properties() -> dict[tuple[IndexScope, str], Properties]:
    """Find the properties of the whole catalog, by scope and key."""
    drawn = [_DrawnTables.of(k) for k in SIZES]
    properties: dict[tuple[IndexScope, str], Properties] = {}
    for scope, entries in drawn[0].entries.items():
        keys = [entry.key for entry in entries]
        orders: dict[Extent, list[tuple[bytes, bytes]]] = {}
        for extent in get_args(Extent):
            rows = zip(*(tables.related[scope, extent] for tables in drawn), strict=True)
            orders[extent] = [_order_names(values) for values in rows]
        for place, key in enumerate(keys):
            keeps = partial(_keep, drawn, scope, place)
            turned = [k for other, k in enumerate(keys) if keeps("transposed", other)]
            itself = key in turned
            properties[scope, key] = Properties(
                class_order=keeps("reordered"),
                scale=keeps("scaled"),
                prevalence=keeps("resampled"),
                own_prevalence=keeps("own") if scope == "class" else None,
                transposition=itself,
                transposed=key if itself else next(iter(turned), None),
                relations=tuple(_relations(place, keys, orders)),
            )
    return properties


TableChange = Literal["reordered", "scaled", "resampled", "transposed", "own"]


class _DrawnTables(NamedTuple):
    """The catalog computed on tables of k classes, before and after each change.

    `entries` are the indices of each scope. `values` are by the change of the tables, "" for none,
    and the scope: shape (index, table, class) and (index, table). Reordered classes are put back
    into their first order; "own", of classes only, has the values of each class after resampling
    it alone. `related` has values on tables of any class sizes, then on sets of tables of one test
    set each; shape as `values`, but the last axis is ordered.
    """

    entries: dict[IndexScope, tuple[Index, ...]]
    values: dict[str, dict[IndexScope, Array]]
    related: dict[tuple[IndexScope, Extent], Array]

    @classmethod
    def of(cls, k: int) -> "_DrawnTables":
        """Draw tables of k classes from a fixed seed."""
        rng = np.random.default_rng(k)
        # Options under which every index exists and no two coincide by their defaults.
        cost = rng.uniform(1, 5, (k, k)) * (1 - np.eye(k))
        options = Options(families=("all",), beta=2.0, cost=cost, kappa_weights="linear")
        counts = _tables(rng, (TABLES, k, k))
        order = rng.permutation(k)
        while (order == np.arange(k)).any():
            order = rng.permutation(k)
        shares = rng.uniform(0.2, 5, (TABLES, k, 1))
        changed = {
            "": counts,
            "reordered": counts[:, order][:, :, order],
            "scaled": counts * 7,
            "resampled": counts * shares,
            "transposed": counts.swapaxes(-2, -1),
        }
        values = {name: _values(tables, options) for name, tables in changed.items()}
        values["reordered"]["class"] = values["reordered"]["class"][..., np.argsort(order)]
        factors = np.where(np.eye(k, dtype=bool), shares, 1.0)[..., None]
        per_class = _values(counts[:, None] * factors, options)["class"]
        values["own"] = {"class": per_class.diagonal(axis1=-2, axis2=-1)}
        selection = select(options)
        related = _related(rng, options, k)
        return cls({"class": selection.per_class, "overall": selection.overall}, values, related)


def _keep(
    drawn: "list[_DrawnTables]",
    scope: IndexScope,
    place: int,
    change: TableChange,
    other: int | None = None,
) -> bool:
    """Whether an index is the same, or equals another one, after a change of all tables."""
    row = place if other is None else other
    close = partial(np.allclose, rtol=PROPERTY_TOLERANCE, atol=PROPERTY_TOLERANCE, equal_nan=True)
    return all(close(d.values[change][scope][place], d.values[""][scope][row]) for d in drawn)


def _relations(
    place: int, keys: list[str], orders: dict[Extent, list[tuple[bytes, bytes]]]
) -> Iterator[Relation]:
    """Yield the other indices whose order is the same, or the opposite."""
    for other, key in enumerate(keys):
        for extent, names in orders.items():
            rising, falling = names[place]
            # A constant index orders nothing, so it has no relations.
            if other != place and rising != falling and rising in names[other]:
                yield Relation(key, rising == names[other][0], extent)
                break


def _tables(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw positive tables, from almost perfect ones to ones no better than chance."""
    k = shape[-1]
    skill = rng.uniform(0, 20, (*shape[:-2], 1, 1)) * np.eye(k)
    return np.asarray(rng.gamma(0.7, 10.0, shape) + skill * rng.gamma(2.0, 2.0, shape) + 0.5)


def _related(
    rng: np.random.Generator, options: Options, k: int
) -> dict[tuple[IndexScope, Extent], Array]:
    """Compute the indices of tables whose orders are compared."""
    free = _tables(rng, (4 * TABLES, k, k))
    # Sets of models, each set on its own test set.
    same = _tables(rng, (4, TABLES, k, k))
    same *= rng.uniform(10, 100, (4, 1, k, 1)) / same.sum(axis=-1, keepdims=True)
    always, on_test_set = _values(free, options), _values(same, options)
    # Each row is ordered separately: all tables and classes, or the models on one test set.
    return {
        ("class", "always"): always["class"].reshape(len(always["class"]), -1),
        ("overall", "always"): always["overall"],
        ("class", "same_test_set"): on_test_set["class"].swapaxes(-2, -1),
        ("overall", "same_test_set"): on_test_set["overall"],
    }


def _values(counts: Array, options: Options) -> dict[IndexScope, Array]:
    values = compute(ConfusionTable.dense(counts), options, select(options))
    return {"class": values.per_class, "overall": values.overall}


def _order_names(rows: tuple[Array, ...]) -> tuple[bytes, bytes]:
    """Name the order of values along the last axis, but for rounding, and the opposite order."""
    rising, falling = b"", b""
    for values in rows:
        order = np.argsort(values, axis=-1, kind="stable")
        ordered = np.take_along_axis(values, order, axis=-1)
        steps = np.diff(ordered, axis=-1) > PROPERTY_TOLERANCE * (1 + np.abs(ordered[..., 1:]))
        ascending = np.zeros(values.shape, dtype=np.int32)
        np.cumsum(steps, axis=-1, out=ascending[..., 1:])
        ranks = np.empty_like(ascending)
        np.put_along_axis(ranks, order, ascending, axis=-1)
        rising += ranks.tobytes()
        falling += (ascending[..., -1:] - ranks).tobytes()
    return rising, falling
