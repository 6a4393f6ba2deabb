"""The population that a request names, as the core takes it."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from rprime.core.arrays import Array
from rprime.core.comparison.alignment import Side
from rprime.core.index_names import listed
from rprime.core.population import MOST_CLASSES, Population
from rprime.core.table import ConfusionTable
from rprime.evidence import Evidence
from rprime.evidence.coding import group_codes
from rprime.problems.problem import Problem, UnknownMember, raise_violations, refuse
from rprime.schemas.gate import Gates
from rprime.schemas.population import PopulationAsked

PLACE = "/population"
MOST_CELLS = 2**21
"""Numbers in the tables of all strata."""
CLOSE = 1e-6
"""By how much shares may miss a sum of 1, because they are rounded."""


def population_of(
    request: PopulationAsked, read: Evidence, gates: Gates | None
) -> Population | None:
    """Return the population that a request names; None if the store knows it."""
    refuse_evidence(read, weighed="cell_weights" in read.matrices)
    if request.stored is not None:
        return None
    if request.shares is None:
        population = Population.uniform(read.table)
        if isinstance(request.prevalence, Mapping):
            shares = _of_labels(request.prevalence, read.labels, f"{PLACE}/prevalence")
            population = Population("true", shares)
            _refuse_omitted(request.prevalence, population, read, "items")
    elif request.strata == "predicted":
        if read.table.unclassified is not None:
            detail = (
                "Some items have no predicted class, so they are in no stratum: name the stratum "
                "of each item in `strata`, or leave them out."
            )
            raise refuse(f"{PLACE}/strata", "unclassified_items", detail)
        population = Population(
            "predicted", _of_labels(request.shares, read.labels, f"{PLACE}/shares")
        )
        _refuse_omitted(request.shares, population, read, "predictions")
    else:
        population = _own(request, read)
    check_items(population, read.table, read.labels)
    if gates is not None and population.strata != "true":
        # The items of the row of a cell are no sample of a class.
        cells = [i for i, rule in enumerate(gates.rules) if rule.confusion is not None]
        if cells:
            detail = (
                "A rule about a cell needs a population that is given by `prevalence`, or none."
            )
            raise refuse(f"/gates/rules/{cells[0]}/confusion", "not_with_population", detail)
    return population


def _refuse_omitted(
    shares: Mapping[str, float], population: Population, read: Evidence, what: str
) -> None:
    """Refuse classes that the evidence has and the population does not mention."""
    sizes = population.sizes(read.table)
    out = [f"`{n}`" for n, size in zip(read.labels, sizes, strict=True) if size and n not in shares]
    if out:
        detail = (
            f"There are {what} of {listed(out)}, but no share: give 0 to what is not in the "
            "population."
        )
        raise refuse(PLACE, "stratum_without_share", detail)


def stored_prevalence(
    identifier: str, stored: tuple[Sequence[str], Array], read: Evidence
) -> Population:
    """Return the prevalence of a stored evaluation, by its labels and counts, for these classes."""
    items = {name: float(n) for name, n in zip(*stored, strict=True) if n}
    unknown = items.keys() - set(read.labels)
    place = f"{PLACE}/prevalence/evaluation"
    if unknown or not items:
        detail = (
            f"The evaluation has items of {len(unknown)} classes that this request does not have."
            if unknown
            else "The evaluation has no items."
        )
        raise refuse(place, "other_classes", detail)
    shares = np.array([items.get(name, 0.0) for name in read.labels])
    population = Population("true", shares / shares.sum(), evaluation=identifier)
    check_items(population, read.table, read.labels)
    return population


def check_items(population: Population, table: ConfusionTable, labels: Sequence[str]) -> None:
    """Refuse a stratum that has a share of the population and no items."""
    what = "predictions" if population.strata == "predicted" else "items"
    refuse_empty(population.shares, population.sizes(table), population.names or labels, what)


def refuse_empty(shares: Array, sizes: Array, names: Sequence[str], what: str) -> None:
    """Refuse shares of the population of which there is nothing."""
    empty = [f"`{names[i]}`" for i in np.flatnonzero((shares > 0) & (sizes == 0)).tolist()]
    if empty:
        detail = (
            f"There is a share but there are no {what} of {listed(empty)}, so nothing is known of "
            "that part of the population: send items of it, or merge it with others."
        )
        raise refuse(PLACE, "stratum_without_items", detail)


def stands_for_population(read: Side, *, weighed: bool) -> bool:
    """Whether stored evidence can be evaluated at equal shares of its classes."""
    try:
        refuse_evidence(read, weighed=weighed)
    except Problem:
        return False
    return True


def refuse_evidence(read: Evidence | Side, *, weighed: bool) -> None:
    """Refuse evidence that stands for no population; `weighed`: by the option `cell_weights`."""
    if read.table.k > MOST_CLASSES:
        detail = f"A population has at most {MOST_CLASSES} classes: merge classes."
        raise refuse(PLACE, "too_many_classes", detail)
    refused = {
        "`y_score`: send only the predicted classes, in `y_pred`": read.scores is not None,
        "`groups`: the items of a stratum are taken to be independent": read.items is not None
        and read.items.groups is not None,
        "`spurious` predictions, which belong to no item of the population": read.table.spurious
        is not None,
        "`cell_weights`": weighed,
        "`slices`: leave one of the two out": read.slices is not None,
    }
    for what, present in refused.items():
        if present:
            detail = f"A population cannot be combined with {what}."
            raise refuse(PLACE, "not_with_population", detail)


def refuse_unknown_classes(names: Iterable[str], labels: Sequence[str], place: str) -> None:
    """Refuse names of classes in an object that are not classes."""
    classes = frozenset(labels)
    detail = "Name {} of the object is not a class; use the names in `labels`."
    raise_violations(
        UnknownMember(place, "undeclared_label", detail.format(number), name)
        for number, name in enumerate(names, 1)
        if name not in classes
    )


def _of_labels(shares: Mapping[str, float], labels: Sequence[str], place: str) -> Array:
    refuse_unknown_classes(shares, labels, place)
    return _shares([shares.get(name, 0.0) for name in labels], place, set(labels) - set(shares))


def _shares(shares: list[float], place: str, missing: AbstractSet[str] = frozenset()) -> Array:
    vector = np.array(shares)
    total = float(vector.sum())
    if abs(total - 1) > CLOSE:
        detail = f"The shares sum to {total:.6g}; they must sum to 1. "
        detail += f"Class `{min(missing)}` has none." if missing else "Divide each by their sum."
        raise refuse(place, "shares_do_not_sum_to_one", detail)
    return vector


def _own(request: PopulationAsked, read: Evidence) -> Population:
    place = f"{PLACE}/strata"
    if read.items is None:
        detail = "Strata of items need the items: send `y_true` and `y_pred`."
        raise refuse(place, "no_items", detail)
    if read.items.weights is not None:
        detail = "Strata of items cannot be combined with weights: the shares weigh the items."
        raise refuse(place, "not_with_population", detail)
    assert isinstance(request.strata, list) and request.shares is not None  # noqa: S101, PT018 (the schema)
    texts = list(map(str, request.strata))
    codes = group_codes(texts, len(read.items.true) + read.left_out, place, what="strata")
    if read.identities is not None:
        detail = "Items with ids are sorted by them, so that strata in another order do not fit."
        raise refuse(place, "not_with_ids", detail)
    if read.order is not None:
        texts = [texts[i] for i in read.order]
        codes = group_codes(texts, len(texts), place, what="strata")
    names = tuple(dict.fromkeys(texts))
    missing = set(names) - request.shares.keys()
    if missing:
        detail = f"{len(missing)} of the strata have no share: give 0 to what is not in it."
        raise refuse(f"{PLACE}/shares", "stratum_without_share", detail)
    names += tuple(name for name in request.shares if name not in set(names))
    k = read.table.k
    if len(names) * k * (k + 1) > MOST_CELLS:
        detail = f"{len(names):,} strata of {k:,} classes are too many; merge strata."
        raise refuse(place, "too_many_strata", detail)
    joint = (codes.astype(np.intp) * k + read.items.true) * (k + 1) + read.items.predicted
    counts = np.bincount(joint, minlength=len(names) * k * (k + 1)).astype(np.float64)
    shares = _shares([request.shares[name] for name in names], f"{PLACE}/shares")
    return Population("own", shares, names, counts.reshape(len(names), k, k + 1))


def check_baseline(population: Population, labels: Sequence[str], other: Side) -> None:
    """Refuse a comparison of two sides that cannot have the same population."""
    if population.strata != "true":
        detail = (
            "Strata of predicted classes or of items belong to one side: a comparison needs a "
            "population that both sides have, given by `prevalence`."
        )
        raise refuse(PLACE, "not_comparable", detail)
    if other.items is not None and other.items.groups is not None:
        detail = "A population cannot be combined with `groups`, which the baseline has."
        raise refuse(PLACE, "not_with_population", detail)
    items = dict(zip(other.labels, other.table.support, strict=True))
    sizes = np.array([items.get(name, 0.0) for name in labels])
    refuse_empty(population.shares, sizes, labels, "items in the baseline")
