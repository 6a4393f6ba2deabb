"""What a report says of scores besides the values: curves, rejection, views at a threshold."""

from collections.abc import Iterable, Iterator

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.core.evaluate import Evaluation
from rprime.core.published import Json
from rprime.core.scores.calibration import Reliability
from rprime.core.scores.curves import (
    CurveColumns,
    Detections,
    ScoreSummary,
    errors,
    rejection_sweep,
    risk_coverage,
    tables_at,
    values_at,
)
from rprime.core.scores.scores import Scores

NUMPY = orjson.OPT_SERIALIZE_NUMPY


def members(evaluation: Evaluation) -> dict[str, bytes]:
    """Render what the options ask of the scores, as JSON by name; NaN becomes null."""
    scores, options = evaluation.values.scores, evaluation.options
    if scores is None:
        return {}
    parts: Json = {}
    if options.curves:
        places = np.flatnonzero(scores.support).tolist()
        detections = ((place, Detections.of(scores, place)) for place in places)
        bins = scores.reliability(options.calibration) if scores.are_probabilities else None
        parts["curves"] = curves(evaluation.labels, detections, bins, errors(scores))
    if options.reject == "sweep":
        parts["rejection"] = columns(rejection_sweep(scores))
    if options.thresholds:
        parts["thresholds"] = views(scores, evaluation)
    return {name: orjson.dumps(content, option=NUMPY) for name, content in parts.items()}


def curves(
    labels: tuple[str, ...],
    detections: Iterable[tuple[int, Detections]],
    reliability: Reliability | None,
    risk: Iterable[Array],
) -> Json:
    """Return the curves; a class has a ROC curve only if other classes have items."""
    content: Json = {"roc": {}, "precision_recall": {}}
    for place, curve in detections:
        content["precision_recall"][labels[place]] = columns(curve.precision_recall())
        if curve.fp[-1]:
            content["roc"][labels[place]] = columns(curve.roc())
    if reliability is not None:
        content["reliability"] = list(reliability.bins())
    content["risk_coverage"] = columns(risk_coverage(*risk))
    return content


def stored_curves(summary: ScoreSummary, labels: tuple[str, ...]) -> bytes:
    """Render the curves that are stored, as JSON."""
    of_classes = (pair for pair in summary.detections() if pair[0] < len(labels))
    content = curves(labels, of_classes, summary.calibration, summary.risk)
    return orjson.dumps(content, option=NUMPY)


def columns(curve: CurveColumns) -> Json:
    """Return a curve as arrays that can be dumped."""
    return {name: np.ascontiguousarray(column) for name, column in curve.items()}


def views(scores: Scores, evaluation: Evaluation) -> Json:
    """Return the table of a class against the rest at each requested threshold."""
    thresholds = evaluation.options.thresholds
    number = {label: i for i, label in enumerate(evaluation.labels)}
    classes = np.array([number[label] for label, _ in thresholds])
    tables = tables_at(scores, classes, np.array([threshold for _, threshold in thresholds]))
    values = values_at(tables)
    counts = tables.cells.counts.astype(np.int64).tolist()
    content = {}
    for i, (label, threshold) in enumerate(thresholds):
        row = {key: column[i] for key, column in values.items()}
        content[label] = {"threshold": threshold, "table": counts[i], "values": row}
    return content


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
            bins = scores.reliability(evaluation.options.calibration)
            expected = orjson.dumps(bins.error_if_calibrated)
            listed = orjson.dumps(list(bins.bins()))
            yield place, b',"if_calibrated":%b,"bins":%b' % (expected, listed)
    absent = np.flatnonzero(scores.support == 0).tolist()
    if absent and "hand_till_auc" in places:
        named = (b'{"class":%b,"reason":"no_true_samples"}' % labels[i] for i in absent)
        yield places["hand_till_auc"], b',"excluded":[%b]' % b",".join(named)
