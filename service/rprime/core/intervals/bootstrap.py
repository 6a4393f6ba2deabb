"""Bootstrap intervals, on request, of indices without another rule."""

import zlib
from dataclasses import replace
from functools import lru_cache
from typing import cast

import numpy as np

from rprime.core.arrays import Array, integers
from rprime.core.catalog import CLASS_INDICES
from rprime.core.intervals.plan import Bounds
from rprime.core.intervals.smoothing import POOLED, SmoothedCells, smoothed
from rprime.core.items import Items
from rprime.core.options import Options
from rprime.core.progress import watched
from rprime.core.selection import Selection, arranged
from rprime.core.table import ConfusionTable
from rprime.core.values import Values, compute

DRAWS = 1000
MOST_CLASSES = 50
"""Such a table takes 0.14 s."""
BIASES = 3.0
"""By how many times the bias of the draws a limit moves; simulations chose it."""
ROUNDING = 1e-12
"""Draws that spread less are all equal: the design fixes the value."""
MOST_CELLS = 2**20
"""Cells of the tables that are evaluated at once."""
MOST_SCORES = ((2**13, DRAWS), (2**16, DRAWS // 5))
"""Most scores, items times classes, to draw from, and how often: an index takes some seconds."""
OF_ITEMS = ("confidence", "correct", "top", "log_likelihoods", "brier_scores", "are_probabilities")
"""Results of scores that do not depend on how often an item is drawn."""


@lru_cache(maxsize=64)
def resampled(selection: Selection, *, scored: bool = False) -> tuple[Selection, Array, Array]:
    """Select the entries with bootstrap intervals, of tables or of scores.

    Their places, per class and overall, are added.
    """
    per_class, overall = (
        [i for i, entry in enumerate(entries) if entry.resampled and entry.scored == scored]
        for entries in (selection.computed, selection.overall)
    )
    computed, chosen = (
        [selection.computed[i] for i in per_class],
        [selection.overall[i] for i in overall],
    )
    averaged = dict.fromkeys(key for entry in chosen for key in entry.of)
    needed = [CLASS_INDICES[key] for key in averaged if CLASS_INDICES[key] not in computed]
    return (
        arranged((*computed, *needed), len(per_class), chosen),
        integers(per_class),
        integers(overall),
    )


def can_resample(values: Values, items: Items | None) -> bool:
    """Whether tables can be drawn: there are few classes, and each item counts once on its own."""
    alone = items is None or (items.groups is None and items.weights is None)
    whole = values.sample is None and not values.table.weighted
    whole = whole and not np.any(values.table.fractional)
    return alone and whole and values.table.k <= MOST_CLASSES


@np.errstate(all="ignore")
def add_bootstrap(values: Values, per_class: Array, overall: Array) -> None:
    """Fill in bootstrap limits of a stack of tables: (2, computed, ..., k) and (2, overall, ...).

    Notes
    -----
    1000 tables of the same number of classified items, with `fixed_rows` of the same rows, are
    drawn from the pooled table, so that a table without errors has intervals, too. Let b be the
    mean of their values minus the value of the pooled table, and u the larger distance of their
    two quantiles from that mean. The limits of a value v are v - u - 3 max(b, 0) and
    v + u + 3 max(-b, 0): near the end of its range an index is biased away from that end, and the
    bias at the table is itself uncertain. The table seeds the generator.
    """
    selection, classes, whole = resampled(values.selection)
    entries = (*selection.per_class, *selection.overall)
    if not entries:
        return
    sizes = _sizes(values, classes, whole)
    bounds = Bounds(values.table.k)
    ranges = [e.range if e.score_range is None else bounds.of(e) for e in entries]
    ends = np.repeat(ranges, sizes, axis=0).T
    split = len(classes) * values.table.k
    for position in np.ndindex(values.table.stack_shape):
        at = (slice(None), *position)
        table = (values.table[position[0]] if position else values.table).classified
        if not table.total:
            continue
        observed = np.concatenate(
            (values.per_class[classes][at].ravel(), values.overall[whole][at])
        )
        steps = _steps(_drawn(table, values.options, selection), values.options)
        limits = _within(observed + steps, ends)
        shape = (2, len(classes), values.table.k)
        per_class[(slice(None), classes, *position)] = limits[:, :split].reshape(shape)
        overall[(slice(None), whole, *position)] = limits[:, split:]


@np.errstate(all="ignore")
def add_score_bootstrap(values: Values, per_class: Array, overall: Array) -> None:
    """Fill in bootstrap limits (2, computed, k) and (2, overall) of indices of scores.

    Each item must count once and on its own.

    Notes
    -----
    1000 test sets (200 where there are many scores) of as many items are drawn from the items. The
    limits follow from their values as for tables, with the value of the items instead of that of
    the pooled table.
    """
    scores, (selection, classes, whole) = values.scores, resampled(values.selection, scored=True)
    entries = (*selection.per_class, *selection.overall)
    if scores is None or not entries or scores.groups is not None or scores.weights is not None:
        return
    n, draws = len(scores.true), [d for most, d in MOST_SCORES if scores.values.size <= most]
    if not draws:
        return
    random = np.random.default_rng(zlib.crc32(scores.confidence.tobytes()))
    shared = {name: getattr(scores, name) for name in OF_ITEMS}
    observed = np.concatenate((values.per_class[classes].ravel(), values.overall[whole]))
    options = replace(values.options, population=None, cell_weights=None)
    drawn = [observed]
    for _ in watched("Bootstrap", range(draws[0])):
        counts = np.bincount(random.integers(0, n, n), minlength=n).astype(np.float64)
        sample = replace(scores, weights=counts)
        vars(sample).update(shared)
        computed = compute(values.table, options, selection, sample)
        of_classes = computed.per_class[: selection.reported].ravel()
        drawn.append(np.concatenate((of_classes, computed.overall)))
    ranges = np.repeat([entry.range for entry in entries], _sizes(values, classes, whole), axis=0)
    limits = _within(observed + _steps(np.array(drawn), values.options), ranges.T)
    limits[:, ~np.isfinite(observed)] = np.nan
    split = len(classes) * values.table.k
    per_class[:, classes] = limits[:, :split].reshape(2, len(classes), values.table.k)
    overall[:, whole] = limits[:, split:]


def _sizes(values: Values, classes: Array, whole: Array) -> list[int]:
    """Return how many values each entry has."""
    return [*(values.table.k for _ in classes), *(1 for _ in whole)]


def _drawn(table: ConfusionTable, options: Options, selection: Selection) -> Array:
    """Return the values of the pooled table, then of the tables drawn from it, (1 + draws, m)."""
    pooled = cast("SmoothedCells", smoothed(table).cells).dense().counts[POOLED]
    filled = np.ascontiguousarray(np.stack(table.cells.coordinates()))
    random = np.random.default_rng(zlib.crc32(filled.tobytes()))
    if options.sampling == "fixed_rows":
        shares = pooled / np.maximum(np.add.reduce(pooled, axis=-1), 1.0)[:, None]
        pooled = shares * table.support[:, None]
        drawn = random.multinomial(table.support.astype(np.int64), shares, (DRAWS, table.k))
    else:
        shares = pooled.ravel() / np.add.reduce(pooled, axis=None)
        drawn = random.multinomial(int(table.total), shares, DRAWS).reshape(-1, *pooled.shape)
    counts = np.concatenate((pooled[None], drawn))
    block = max(MOST_CELLS // pooled.size, 1)
    parts = [counts[i : i + block] for i in range(0, len(counts), block)]
    values = []
    for part in watched("Bootstrap", parts):
        drawn_values = compute(ConfusionTable.dense(part), options, selection)
        per_class = np.moveaxis(drawn_values.per_class[: selection.reported], 1, 0)
        of_classes = per_class.reshape(len(part), -1)
        values.append(np.concatenate((of_classes, drawn_values.overall.T), axis=-1))
    return np.concatenate(values)


def _steps(values: Array, options: Options) -> Array:
    """Return the distances of the limits from the values, (2, m), from what `_drawn` returns."""
    draws = np.sort(values[1:], axis=0)  # what does not exist is last
    number = np.count_nonzero(np.isfinite(draws), axis=0)
    tail = np.floor((1 - options.confidence) / 2 * number).astype(np.intp)
    columns = np.arange(draws.shape[1])
    mean = np.add.reduce(np.nan_to_num(draws), axis=0) / number
    low, high = draws[tail, columns], draws[number - 1 - tail, columns]
    bias, width = mean - values[0], np.maximum(mean - low, high - mean)
    steps = np.array((-width - BIASES * np.maximum(bias, 0), width + BIASES * np.maximum(-bias, 0)))
    steps[:, (number <= len(draws) / 2) | (width < ROUNDING)] = np.nan
    return steps


def _within(limits: Array, ends: Array) -> Array:
    """Clip limits (2, m) to the ends (2, m) of their ranges; NaN without a width."""
    limits = np.minimum(np.maximum(limits, ends[0]), ends[1])
    limits[:, ~(limits[0] < limits[1])] = np.nan
    return limits
