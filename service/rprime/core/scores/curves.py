"""ROC, precision-recall and risk-coverage curves, thinned to points that keep the hull."""

from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array
from rprime.core.scores.calibration import errors_by_confidence
from rprime.core.scores.ranking import ClassRanking
from rprime.core.scores.scores import Scores

MOST_POINTS = 1000
"""Most points of one curve."""
CurveColumns = dict[str, Array]
"""The coordinates and thresholds of a curve by name, shape (points,) each. An item counts if
its score is at least the threshold; a threshold of NaN stands for no items."""


@dataclass(frozen=True, eq=False)
class Detections:
    """Positives and negatives at or above every threshold on the score of one class.

    Parameters
    ----------
    threshold
        Shape (points,): NaN for no items, then the distinct scores, highest first.
    tp, fp
        Numbers of positives and negatives that reach it, the same shape.
    """

    threshold: Array
    tp: Array
    fp: Array

    @classmethod
    def of(cls, scores: Scores, own: int) -> "Detections":
        """Count the detections of one class."""
        column = scores.values[:, own]
        ranking = ClassRanking.of(column, scores.true, own, scores.weights)
        assert ranking.order is not None  # noqa: S101 (see `ClassRanking.of`)
        starts, sizes, found = (part[::-1] for part in ranking.groups)
        tp = np.append(0, np.cumsum(found))
        total = np.append(0, np.cumsum(sizes))
        threshold = np.append(np.nan, column[ranking.order[starts]])
        return cls(threshold, tp, total - tp)

    def roc(self) -> CurveColumns:
        """The ROC curve, from (0, 0) to (1, 1)."""
        kept = thinned(self.fp, self.tp)
        return {
            "false_positive_rate": self.fp[kept] / self.fp[-1],
            "recall": self.tp[kept] / self.tp[-1],
            "threshold": self.threshold[kept],
        }

    def precision_recall(self) -> CurveColumns:
        """The precision-recall curve; precision is 1 where nothing is found."""
        recall = self.tp / self.tp[-1]
        precision = np.ones(len(self.tp))
        precision[1:] = self.tp[1:] / (self.tp[1:] + self.fp[1:])
        kept = thinned(recall, precision)
        return {
            "recall": recall[kept],
            "precision": precision[kept],
            "threshold": self.threshold[kept],
        }


def risk_coverage(scores: Scores) -> CurveColumns:
    """Compute the error rate among the items with the highest top scores, for every number."""
    answered, wrong, threshold = _errors(scores)
    risk = np.divide(wrong, answered, out=np.zeros(len(wrong)), where=answered > 0)
    kept = thinned(answered, risk)
    kept = kept[answered[kept] > 0]  # no items have no error rate
    return {
        "coverage": answered[kept] / answered[-1],
        "risk": risk[kept],
        "threshold": threshold[kept],
    }


def rejection_sweep(scores: Scores) -> CurveColumns:
    """Compute overall indices as items with a low top score are left unclassified.

    Notes
    -----
    R' counts an unclassified item as not wrong: it rises to 1 as all are left out, while
    accuracy falls to 0.
    """
    answered, wrong, threshold = _errors(scores)
    n = answered[-1]
    kept = thinned(answered, n - wrong)
    answered, wrong = answered[kept], wrong[kept]
    with np.errstate(invalid="ignore"):
        right = (answered - wrong) / answered
    return {
        "threshold": threshold[kept],
        "coverage": answered / n,
        "accuracy": (answered - wrong) / n,
        "accuracy_on_answered": right,
        "r_prime": (n - wrong) / n,
    }


def _errors(scores: Scores) -> tuple[Array, Array, Array]:
    """Count answered items and errors at every top score as threshold, from no items on."""
    found = errors_by_confidence(scores.confidence, scores.correct, scores.weights)
    return *found, np.append(np.nan, np.unique(scores.confidence)[::-1])


def thinned(x: Array, y: Array, most: int = MOST_POINTS) -> Array:
    """Choose points of a curve that keep its convex hull.

    Parameters
    ----------
    x, y
        Shape (points,), x ascending. Hulls of counts are exact.
    most
        Number of points to keep: the ends and the hull, then others at equal distances along
        the curve.

    Returns
    -------
    Ascending positions. If the hull has too many corners, every so many of them.
    """
    if len(x) <= most:
        return np.arange(len(x))
    x, y = x.astype(np.float64), y.astype(np.float64)
    corners = np.unique(np.concatenate((_upper_hull(x, y), _upper_hull(x, -y))))
    if len(corners) >= most:
        return corners[np.linspace(0, len(corners) - 1, most).astype(np.intp)]
    steps = np.abs(np.diff(x)) / (x[-1] - x[0] or 1.0)
    steps += np.abs(np.diff(y)) / (np.ptp(y) or 1.0)
    along = np.append(0.0, np.cumsum(steps))
    goals = np.linspace(0.0, along[-1], most - len(corners))
    between = np.minimum(np.searchsorted(along, goals), len(x) - 1)
    return np.unique(np.concatenate((corners, between)))


def _upper_hull(x: Array, y: Array) -> Array:
    """Find the corners of the upper convex hull by quickhull; return unsorted positions."""
    corners = [0, len(x) - 1]
    waiting = [(0, len(x) - 1, np.arange(1, len(x) - 1))]
    while waiting:
        first, last, between = waiting.pop()
        across, up = x[last] - x[first], y[last] - y[first]
        height = across * (y[between] - y[first]) - up * (x[between] - x[first])
        above = height > 0
        if not above.any():
            continue
        top = int(between[np.argmax(height)])
        corners.append(top)
        between = between[above]
        waiting += [(first, top, between[between < top]), (top, last, between[between > top])]
    return np.array(corners)
