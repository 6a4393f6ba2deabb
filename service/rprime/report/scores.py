"""What a report says of scores besides the values: curves, rejection, views at a threshold."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.core.evaluate import Evaluation
from rprime.core.scores.calibration import Reliability
from rprime.core.scores.curves import (
    CurveColumns,
    Detections,
    errors,
    rejection_sweep,
    risk_coverage,
)
from rprime.core.scores.scores import Scores
from rprime.core.scores.summary import ScoreSummary
from rprime.core.scores.threshold import tables_at, values_at

Json = dict[str, Any]
NUMPY = orjson.OPT_SERIALIZE_NUMPY


def members(evaluation: Evaluation) -> dict[str, bytes]:
    """Render what the options ask of the scores, as JSON by name; NaN becomes null."""
    scores, options = evaluation.values.scores, evaluation.options
    if scores is None:
        return {}
    found: Json = {}
    if options.curves:
        places = np.flatnonzero(scores.support).tolist()
        detections = ((own, Detections.of(scores, own)) for own in places)
        bins = scores.reliability if scores.are_probabilities else None
        found["curves"] = curves(evaluation.labels, detections, bins, errors(scores))
    if options.reject == "sweep":
        found["rejection"] = columns(rejection_sweep(scores))
    if options.thresholds:
        found["thresholds"] = views(scores, evaluation)
    return {name: orjson.dumps(content, option=NUMPY) for name, content in found.items()}


def curves(
    labels: tuple[str, ...],
    detections: Iterable[tuple[int, Detections]],
    reliability: Reliability | None,
    risk: Iterable[Array],
) -> Json:
    """Return the curves; a class has a ROC curve only if other classes have items."""
    found: Json = {"roc": {}, "precision_recall": {}}
    for own, curve in detections:
        found["precision_recall"][labels[own]] = columns(curve.precision_recall())
        if curve.fp[-1]:
            found["roc"][labels[own]] = columns(curve.roc())
    if reliability is not None:
        found["reliability"] = list(reliability.bins())
    found["risk_coverage"] = columns(risk_coverage(*risk))
    return found


def stored_curves(summary: ScoreSummary, labels: tuple[str, ...]) -> bytes:
    """Render the curves that are stored, as JSON."""
    of_classes = (found for found in summary.detections() if found[0] < len(labels))
    content = curves(labels, of_classes, summary.calibration, summary.risk)
    return orjson.dumps(content, option=NUMPY)


def columns(curve: CurveColumns) -> Json:
    """Return a curve as arrays that can be dumped."""
    return {name: np.ascontiguousarray(column) for name, column in curve.items()}


def views(scores: Scores, evaluation: Evaluation) -> Json:
    """Return the table of a class against the rest at each requested threshold."""
    wanted = evaluation.options.thresholds
    number = {label: i for i, label in enumerate(evaluation.labels)}
    classes = np.array([number[label] for label, _ in wanted])
    tables = tables_at(scores, classes, np.array([threshold for _, threshold in wanted]))
    values = values_at(tables)
    counts = tables.cells.counts.astype(np.int64).tolist()
    found = {}
    for i, (label, threshold) in enumerate(wanted):
        own = {key: column[i] for key, column in values.items()}
        found[label] = {"threshold": threshold, "table": counts[i], "values": own}
    return found


def annotations(
    scores: Scores, evaluation: Evaluation, labels: list[bytes]
) -> Iterator[tuple[int, bytes]]:
    """Yield further members of overall Values of scores: a position and JSON."""
    places = evaluation.selection.overall_place
    if scores.are_probabilities:
        for key in ("conditional_log_likelihood", "log_loss"):
            if key in places:
                yield places[key], b',"clipped":%d' % scores.clipped
        if (place := places.get("expected_calibration_error")) is not None:
            yield place, b',"bins":' + orjson.dumps(list(scores.reliability.bins()))
    absent = np.flatnonzero(scores.support == 0).tolist()
    if absent and "hand_till_auc" in places:
        named = (b'{"class":%b,"reason":"no_true_samples"}' % labels[i] for i in absent)
        yield places["hand_till_auc"], b',"excluded":[%b]' % b",".join(named)
