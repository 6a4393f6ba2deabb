"""ROC, precision-recall and risk-coverage curves, thinned to few points."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from rprime.core.arrays import Array
from rprime.core.options import Options
from rprime.core.scores.calibration import (
    BINS,
    DEFAULT_BINNING,
    Binning,
    Reliability,
    ranked,
    where_dropping,
)
from rprime.core.scores.ranking import ClassRanking
from rprime.core.scores.scores import Scores
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import compute

MOST_POINTS = 1000
"""Most points of one curve."""
CurveColumns = dict[str, Array]
"""The coordinates and thresholds of a curve by name, shape (points,) each. An item counts if
its score is at least the threshold; a threshold of NaN stands for no items."""


@dataclass(frozen=True, eq=False)
class Detections:
    """Positives and negatives at or above every threshold on the score of one class.

    All have the shape (points,); the thresholds are NaN for no items, then the distinct scores,
    highest first.
    """

    threshold: Array
    tp: Array
    fp: Array

    @classmethod
    def of(cls, scores: Scores, label: int) -> "Detections":
        """Count the detections of one class; for k, of all, each score a decision of its own."""
        if label == scores.k:
            column, ranking = scores.values.ravel(), scores.pooled
        else:
            column = scores.values[:, label]
            ranking = ClassRanking.of(column, scores.true, label, scores.weights)
        assert ranking.order is not None  # noqa: S101 (see `ClassRanking.of`)
        starts, sizes, positives = (part[::-1] for part in ranking.groups)
        tp = np.append(0, np.cumsum(positives))
        total = np.append(0, np.cumsum(sizes))
        threshold = np.append(np.nan, column[ranking.order[starts]])
        return cls(threshold, tp, total - tp)

    @property
    def roc_auc(self) -> float:
        """Area under the ROC curve."""
        return float(np.trapezoid(self.tp, self.fp) / (self.tp[-1] * self.fp[-1]))

    @property
    def average_precision(self) -> float:
        """Mean precision at the scores of the positives as thresholds."""
        return float(np.diff(self.tp) @ self._precision[1:] / self.tp[-1])

    @property
    def _precision(self) -> Array:
        precision = np.ones(len(self.tp))
        detected = self.tp + self.fp
        np.divide(self.tp, detected, out=precision, where=detected > 0)
        return precision

    def binned(self, edges: Array) -> Array:
        """Count positives and negatives between edges of the score; an upper edge is within.

        Shape (3, bins): positives, negatives, and the sum of the scores of both. The first and
        the last bin have no end.
        """
        above = len(self.tp) - np.searchsorted(self.threshold[:0:-1], edges[1:-1], "right")
        steps = np.append(0, np.diff(self.tp + self.fp))
        sums = np.cumsum(steps * np.nan_to_num(self.threshold))
        reached = np.stack((self.tp, self.fp, sums))[:, above - 1]
        ends = np.stack((self.tp[-1:], self.fp[-1:], sums[-1:]))
        return -np.diff(np.hstack((ends, reached, np.zeros((3, 1)))))

    def few(self, points: int) -> "Detections":
        """Keep the points at equal distances along the ROC curve, and at doubling numbers of items.

        Parameters
        ----------
        points
            Of the first kind. No point of the ROC curve is farther than 2 / (points - 1) from
            the line between the kept ones, across or up. The others keep the start of the
            precision-recall curve.
        """
        along = self.fp / self.fp[-1] + self.tp / self.tp[-1]
        detected = self.tp + self.fp
        ranks = np.geomspace(detected[detected > 0][0], detected[-1], points // 2)
        goals = (
            np.searchsorted(along, np.linspace(0, 2, points)),
            np.searchsorted(detected, ranks),
        )
        kept = np.unique(np.minimum(np.append(*goals), len(along) - 1))
        return Detections(self.threshold[kept], self.tp[kept], self.fp[kept])

    def roc(self) -> CurveColumns:
        """The ROC curve, from (0, 0) to (1, 1)."""
        rates = {"false_positive_rate": self.fp / self.fp[-1], "recall": self.tp / self.tp[-1]}
        return _at(thinned(self.fp, self.tp), **rates, threshold=self.threshold)

    def precision_recall(self) -> CurveColumns:
        """The precision-recall curve; precision is 1 where nothing is found."""
        recall, precision = self.tp / self.tp[-1], self._precision
        kept = thinned(recall, precision)
        return _at(kept, recall=recall, precision=precision, threshold=self.threshold)


def risk_coverage(answered: Array, wrong: Array, threshold: Array) -> CurveColumns:
    """Compute the error rate among the items with the highest top scores, from `errors`."""
    risk = np.divide(wrong, answered, out=np.zeros(len(wrong)), where=answered > 0)
    kept = thinned(answered, risk)
    kept = kept[answered[kept] > 0]  # no items have no error rate
    return _at(kept, coverage=answered / answered[-1], risk=risk, threshold=threshold)


def rejection_sweep(scores: Scores) -> CurveColumns:
    """Compute overall indices as items with a low top score are left unclassified.

    R' counts an unclassified item as not wrong: it rises to 1 as all are left out, while
    accuracy falls to 0.
    """
    answered, wrong, threshold = errors(scores)
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


def errors(scores: Scores) -> tuple[Array, Array, Array]:
    """Count answered items and errors at every top score as threshold, from no items on."""
    answered, wrong, drops, _ = ranked(scores.confidence, scores.correct, scores.weights)
    threshold = np.append(np.nan, np.unique(scores.confidence)[::-1])
    return *where_dropping(answered, wrong, drops), threshold


def _at(places: Array, **columns: Array) -> CurveColumns:
    return {name: column[places] for name, column in columns.items()}


def thinned(x: Array, y: Array, most: int = MOST_POINTS) -> Array:
    """Choose points of a curve that keep its convex hull.

    Parameters
    ----------
    x, y
        Shape (points,), x ascending.
    most
        Number of points to keep: the ends and the hull, then others at equal distances along
        the curve. If the hull has too many corners, every so many of them.
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


KEYS = (
    "recall",
    "specificity",
    "precision",
    "negative_predictive_value",
    "f1",
    "informedness",
    "class_mcc",
    "r_prime",
)
"""The indices reported for a threshold."""


def tables_at(scores: Scores, classes: Array, thresholds: Array) -> ConfusionTable:
    """Count one-vs-rest tables of classes (t,), each at its own threshold (t,).

    The class is predicted if its score is at least the threshold. The stack (t,) is of two
    classes: the class, and the rest.
    """
    counts = np.empty((len(classes), 2, 2))
    for table, label, threshold in zip(counts, classes, thresholds, strict=True):
        rest = scores.true != label
        missed = scores.values[:, label] < threshold
        table[...] = np.bincount(2 * rest + missed, scores.weights, 4).reshape(2, 2)
    return ConfusionTable.dense(counts, weighted=scores.weights is not None)


def values_at(tables: ConfusionTable) -> dict[str, Array]:
    """Return the indices of every table's class, shape (t,) each; NaN where undefined."""
    options = Options(indices=KEYS)
    values = compute(tables, options, select(options))
    indices = {key: values.lookup("class", key)[..., 0] for key in KEYS}
    return {key: np.where(np.isfinite(v), v, np.nan) for key, v in indices.items()}


POINTS = 64
"""Points along a ROC curve; a third as many again keep the start of precision-recall curves."""
MOST_CLASSES = 100
"""Classes that are kept: those with the smallest areas under their ROC curves."""
MOST_POOLED = 1_000_000
"""Scores up to which those of all classes are pooled, too."""


@dataclass(frozen=True, eq=False)
class ScoreSummary:
    """Thinned curves and bins of c classes; all counts are sums of weights if items have some.

    Parameters
    ----------
    classes
        Shape (c,): their positions in the labels, ascending. Only classes that have items beside
        those of other classes have curves. The last may be k, the scores of all classes pooled.
    areas
        Shape (2, c): area under the ROC curve, and average precision, both of all points.
    sizes
        Shape (c,): points of each class in the next three.
    threshold, tp, fp
        Shape (points,): the `Detections` of the classes, one after another.
    edges
        Shape (bins + 1,): of the 15 bins of equal width of the next one.
    bins
        Shape (3, c, bins): items of the class, other items, and the sum of the scores of both.
    reliability
        Shape (5, bins): lower and upper edges, items, right ones, sum of the top scores; (5, 0) if
        not probabilities.
    risk
        Shape (3, r): answered items, errors among them, and the threshold of the top score.
    """

    classes: Array
    areas: Array
    sizes: Array
    threshold: Array
    tp: Array
    fp: Array
    edges: Array
    bins: Array
    reliability: Array
    risk: Array

    @classmethod
    def of(cls, scores: Scores, binning: Binning | None = None) -> "ScoreSummary":
        """Summarise scores, once."""
        return scores.once(("summary", binning), lambda: _summarised(scores, binning))

    def detections(self) -> Iterator[tuple[int, Detections]]:
        """Yield each class, or k, with its curve."""
        ends = np.cumsum(self.sizes)
        parts = (np.split(part, ends) for part in (self.threshold, self.tp, self.fp))
        for label, *columns in zip(self.classes.tolist(), *parts, strict=False):
            yield label, Detections(*columns)

    @property
    def calibration(self) -> Reliability | None:
        """The bins of the top score, if the scores are probabilities."""
        if not self.reliability.size:
            return None
        low, high, *sums = self.reliability
        return Reliability(np.append(low, high[-1]), *sums)

    def check(self, k: int) -> None:
        """Raise a ValueError for arrays that do not fit each other, or k classes."""
        c, points = len(self.classes), int(self.sizes.sum())
        shapes = [(c,), (2, c), (c,), *[(points,)] * 3, (BINS + 1,), (3, c, BINS)]
        actual = [getattr(self, field.name).shape for field in fields(self)]
        fits = actual[:-2] == shapes and self.reliability.shape[:-1] == (RELIABILITY_ROWS,)
        if not fits or self.risk.ndim != 2 or (self.classes > k).any():
            raise ValueError("the arrays of the curves do not fit")


RELIABILITY_ROWS = 5


def _summarised(scores: Scores, binning: Binning | None) -> ScoreSummary:
    edges = DEFAULT_BINNING.edges(scores.confidence)
    if not scores.are_probabilities:
        edges = np.linspace(scores.values.min(), scores.values.max(), BINS + 1)
    total = np.add.reduce(scores.support)
    classes = np.flatnonzero((scores.support > 0) & (scores.support < total)).tolist()
    if classes and scores.values.size <= MOST_POOLED:
        classes.append(scores.k)
    areas, kept, bins = [], [], []
    for label in classes:
        detections = Detections.of(scores, label)
        areas.append((detections.roc_auc, detections.average_precision))
        bins.append(detections.binned(edges))
        kept.append(detections.few(POINTS))
    # The classes with the smallest areas, and what is pooled.
    pooled = np.array(classes) == scores.k
    order = np.argsort(np.where(pooled, -np.inf, [auc for auc, _ in areas]), kind="stable")
    places = np.sort(order[: MOST_CLASSES + int(pooled.any())])
    risk = np.stack(errors(scores))
    diagram = scores.reliability(binning) if scores.are_probabilities else None
    parts = () if diagram is None else (diagram.edges[:-1], diagram.edges[1:], *diagram.sums)
    shown = [kept[i] for i in places.tolist()]
    return ScoreSummary(
        classes=np.array(classes, dtype=np.int64)[places],
        areas=np.array(areas).reshape(-1, 2)[places].T,
        sizes=np.array([len(curve.tp) for curve in shown], dtype=np.int64),
        **{
            name: np.concatenate([np.empty(0), *(getattr(curve, name) for curve in shown)])
            for name in ("threshold", "tp", "fp")
        },
        edges=edges,
        bins=np.array(bins).reshape(-1, 3, BINS)[places].swapaxes(0, 1),
        reliability=np.array([*parts]).reshape(RELIABILITY_ROWS, -1),
        risk=risk[:, thinned(risk[0], risk[1], POINTS)],
    )
