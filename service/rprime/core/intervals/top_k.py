"""The table of the k highest scores, of which the indices of these are plain indices."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from rprime.core.arrays import Array, positions
from rprime.core.catalog import find
from rprime.core.index import Index
from rprime.core.items import Items, table_of
from rprime.core.selection import Selection, arranged
from rprime.core.values import Values, compute


def plain(entry: Index) -> Index:
    """Return the index of the table that an index of the highest scores is; others as they are."""
    name = entry.key.replace("top_k_", "") if entry.interval == "top_k" else entry.key
    return find(entry.scope, name) or entry


@lru_cache(maxsize=64)
def highest_of(selection: Selection) -> tuple[Selection, tuple[Array, Array]]:
    """Select the indices of the table, and add which entries they are, per class and overall."""
    parts = selection.computed, selection.overall
    own, overall = (positions(entry.interval == "top_k" for entry in part) for part in parts)
    computed = tuple(plain(selection.computed[i]) for i in own)
    reported = int(np.count_nonzero(own < selection.reported))
    found = arranged(computed, reported, [plain(selection.overall[i]) for i in overall])
    return found, (own, overall)


def of_highest(values: Values) -> tuple[Values, Items] | None:
    """Return the values and the items of the table of the k highest scores; None if none is asked.

    An item whose true class is among its k highest scores is predicted as that class there, every
    other one as the class of its highest score. So top-k recall is the recall of that table.
    """
    scores, (selection, _) = values.scores, highest_of(values.selection)
    if scores is None or not (selection.computed or selection.overall):
        return None
    predicted = np.where(scores.within_top(values.options.top_k), scores.true, scores.top)
    items = Items(scores.true, predicted, scores.groups, scores.weights)
    options = replace(values.options, cell_weights=None, population=None)
    found = compute(table_of(items, scores.k), options, selection)
    return replace(found, grouped=scores.groups is not None), items
