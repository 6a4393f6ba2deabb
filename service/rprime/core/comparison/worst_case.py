"""Differences with every missing item counted as wrong for each class."""

from collections.abc import Sequence
from dataclasses import replace

from rprime.core.catalog import find
from rprime.core.comparison.compare import compare
from rprime.core.comparison.difference import Difference
from rprime.core.comparison.missing_items import MissingItems
from rprime.core.options import Options

COUNTS = ("counts", "ratio")
"""What an index reads that counts one class against all others."""
OF_ALL_CLASSES = "gt_index"
"""The one whose counts are corrected by those of all classes."""


def worst_class_differences(
    missing: MissingItems, key: str, classes: Sequence[str], options: Options
) -> Difference:
    """Return the difference of an index for some classes, each in its worst case, shape (n,).

    Classes without items in the baseline are unknown: all of their numbers are NaN.
    """
    entry = find("class", key)
    alone = entry is not None and entry.reads in COUNTS and key != OF_ALL_CLASSES
    alone = alone and options.population is None
    options = replace(options, indices=(key,), families=(), left_out=())
    if alone:
        options = replace(options, cost=None, kappa_weights=None, cell_weights=None)
    parts = []
    for label in classes:
        known = missing.of_class(label) if alone else missing
        found = compare(known.worst_case(key, label), known.baseline, options, attributed=())
        there = label in found.classes
        parts.append(found.of_classes(key, (label,)) if there else Difference.unknown(1))
    return Difference.join(parts) if parts else Difference.unknown(0)
