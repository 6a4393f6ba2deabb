"""What is stored and drawn of scores: thinned curves, bins and areas, in bounded size."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from rprime.core.arrays import Array
from rprime.core.scores.calibration import BINS, EDGES, Reliability
from rprime.core.scores.curves import Detections, errors, thinned
from rprime.core.scores.scores import Scores

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
        Shape (bins + 1,): of the bins; those of the reliability diagram for probabilities.
    bins
        Shape (3, c, bins): items of the class, other items, and the sum of the scores of both.
    reliability
        Shape (3, bins): items, right ones, sum of the top scores; (3, 0) if not probabilities.
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
    def of(cls, scores: Scores) -> "ScoreSummary":
        """Summarise scores, once."""
        summary: ScoreSummary = scores.once("summary", lambda: _summarised(scores))
        return summary

    def detections(self) -> Iterator[tuple[int, Detections]]:
        """Yield each class, or k, with its curve."""
        ends = np.cumsum(self.sizes)
        parts = (np.split(part, ends) for part in (self.threshold, self.tp, self.fp))
        for label, *columns in zip(self.classes.tolist(), *parts, strict=False):
            yield label, Detections(*columns)

    @property
    def calibration(self) -> Reliability | None:
        """The bins of the top score, if the scores are probabilities."""
        return Reliability(*self.reliability) if self.reliability.size else None

    def check(self, k: int) -> None:
        """Raise a ValueError for arrays that do not fit each other, or k classes."""
        c, points = len(self.classes), int(self.sizes.sum())
        shapes = [(c,), (2, c), (c,), *[(points,)] * 3, (BINS + 1,), (3, c, BINS)]
        actual = [getattr(self, field.name).shape for field in fields(self)]
        fits = actual[:-2] == shapes and self.reliability.shape in {(3, 0), (3, BINS)}
        if not fits or self.risk.ndim != 2 or (self.classes > k).any():
            raise ValueError("the arrays of the curves do not fit")


def _summarised(scores: Scores) -> ScoreSummary:
    edges = EDGES
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
    reliability = scores.reliability if scores.are_probabilities else None
    parts = () if reliability is None else vars(reliability).values()
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
        reliability=np.array([*parts]).reshape(3, -1),
        risk=risk[:, thinned(risk[0], risk[1], POINTS)],
    )
