"""Find the overall indices of scores that a store keeps of an evaluation."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rprime.core.catalog import OVERALL_INDICES
from rprime.core.estimates import Estimates
from rprime.core.evaluate import Evaluation
from rprime.core.intervals.intervals import Intervals
from rprime.core.intervals.proportions import quantile_of
from rprime.core.items import Items
from rprime.core.scores.kept import KeptScores, KeptValue
from rprime.core.selection import select
from rprime.core.values import Values

CHEAP_RESAMPLED = ("expected_calibration_error",)
"""Kept, too, although a report shows it without an interval: it is in the summary."""
KEPT = tuple(
    entry.key
    for entry in OVERALL_INDICES.values()
    if entry.scored and entry.needs is None
    if not entry.resampled or entry.key in CHEAP_RESAMPLED
)
"""Indices that are kept of every evaluation with scores; others only if its report has them."""


def kept_scores(evaluation: Evaluation, items: Items | None) -> KeptScores | None:
    """Return the overall indices of scores of a single table; None without scores.

    Those that the report has are taken from it, the others are computed.
    """
    values = evaluation.values
    if values.scores is None:
        return None
    shown: dict[str, KeptValue] = {}
    if evaluation.intervals is not None:
        shown = dict(_kept(values, evaluation.intervals))
    left = tuple(key for key in {*KEPT, *_keys(values)} if key not in shown)
    if left:
        options = replace(values.options, indices=tuple(sorted(left)), families=(), intervals=True)
        selection = select(options, scored=True)
        estimates = Estimates.of(values.table, options, selection, items, values.scores)
        shown |= _kept(estimates.values, estimates.intervals)
    return KeptScores(quantile_of(values.options.confidence), shown)


def _keys(values: Values) -> Iterator[str]:
    selection = values.selection
    return (selection.overall[place].key for place in selection.overall_scored)


def _kept(values: Values, intervals: Intervals) -> Iterator[tuple[str, KeptValue]]:
    reasons = values.overall_reasons
    for place, key in zip(values.selection.overall_scored, _keys(values), strict=True):
        value = float(values.overall[place])
        missing = 0 if reasons is None else int(reasons[place])
        limits = float(intervals.overall_low[place]), float(intervals.overall_high[place])
        code = missing or int(intervals.overall_reasons[place])
        little = bool(intervals.overall_low_reliability[place])
        yield key, KeptValue(value if np.isfinite(value) else np.nan, *limits, code, little)
