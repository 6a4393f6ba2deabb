"""Find which changes of a table leave an index unchanged, and which indices rank models alike.

No property is declared: each is found by computing the catalog on random tables before and after
a change. The formulas are analytic, or piecewise analytic, in the counts, so two that agree on
generic tables of every piece agree everywhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal, NamedTuple, get_args

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import Index, IndexScope
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import compute

Extent = Literal["always", "same_test_set"]
SIZES = (3, 4)
"""Numbers of classes. Two classes have more properties, because every error involves both."""
TABLES = 48
"""Tables for each number of classes; analytic formulas need one, piecewise ones need more."""
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Relation:
    """An index `key` that orders models as another one of its scope does, or the opposite way.

    It is `rising` if the two rise together. `extent` says whether one is a function of the other
    always, or only among models on one test set, that is, for fixed class sizes.
    """

    key: str
    rising: bool
    extent: Extent


@dataclass(frozen=True, slots=True)
class Properties:
    """The changes that an index is invariant to, for 3 classes and no unclassified items.

    Parameters
    ----------
    class_order
        Renaming or reordering the classes, in truth and predictions alike.
    scale
        Multiplying all counts by one factor.
    prevalence
        Changing the proportions of the true classes without changing the rates within a class.
    own_prevalence
        The same for the class of a per-class index alone, with fixed proportions among the
        other classes; None for an overall index.
    transposition
        Exchanging truth and prediction.
    transposed
        The index that it becomes by transposition, possibly itself; None if there is none.
    relations
        Other indices that order models the same or the opposite way.
    """

    class_order: bool
    scale: bool
    prevalence: bool
    own_prevalence: bool | None
    transposition: bool
    transposed: str | None
    relations: tuple[Relation, ...]


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
    close = partial(np.allclose, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
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
        steps = np.diff(ordered, axis=-1) > TOLERANCE * (1 + np.abs(ordered[..., 1:]))
        ascending = np.zeros(values.shape, dtype=np.int32)
        np.cumsum(steps, axis=-1, out=ascending[..., 1:])
        ranks = np.empty_like(ascending)
        np.put_along_axis(ranks, order, ascending, axis=-1)
        rising += ranks.tobytes()
        falling += (ascending[..., -1:] - ranks).tobytes()
    return rising, falling
