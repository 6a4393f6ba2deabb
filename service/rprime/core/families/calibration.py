"""Family `calibration`: whether predicted probabilities occur as often as they say."""

from collections.abc import Callable
from functools import partial

import numpy as np

from rprime.core.arrays import Array
from rprime.core.index import from_scores
from rprime.core.scores.calibration import Binning, Reliability
from rprime.core.scores.recalibration import Line, LogitCells, influences, logits_of
from rprime.core.scores.scores import PROBABILITIES, Scores

BINNED = {"undefined": PROBABILITIES, "resampled": True, "takes": "calibration"}
ERROR = BINNED | {"best": 0.0}
KUMAR = "Kumar, Liang, Ma 2019"
MURPHY = "Murphy 1973; Stephenson, Coelho, Jolliffe 2008"
REAL = (-np.inf, np.inf)


@from_scores(
    "overall",
    symbol="RMSCE",
    tex=r"\sqrt{\sum_b \frac{w_b}{w} (acc_b - conf_b)^2}",
    source="Hendrycks, Mazeika, Dietterich 2019; norm l2 in TorchMetrics",
    **ERROR,
)
def root_mean_square_calibration_error(s: Scores, binning: Binning | None) -> float:
    """Root of the mean squared distance between the top score and the accuracy of a bin."""
    return float(np.sqrt(s.reliability(binning).square_error))


@from_scores(
    "overall",
    symbol="MCE",
    tex=r"\max_b |acc_b - conf_b|",
    source="Naeini, Cooper, Hauskrecht 2015",
    **ERROR | {"resampled": False},
)
def maximum_calibration_error(s: Scores, binning: Binning | None) -> float:
    """Largest distance between the top score and the accuracy of a bin, however few its items. It
    has no interval, because a bin of few items decides it.
    """
    return s.reliability(binning).largest_error


@from_scores(
    "overall",
    symbol="dCE",
    tex=r"\sqrt{\max(0, \sum_b \frac{w_b}{w} [(acc_b - conf_b)^2 - "
    r"\frac{acc_b (1 - acc_b)}{w_b - 1}])}",
    source=KUMAR,
    **ERROR,
)
def debiased_calibration_error(s: Scores, binning: Binning | None) -> float:
    """Root of the mean squared distance between the top score and the accuracy of a bin, less what
    chance adds to it; 0 where chance adds more.
    """
    return _root(s.reliability(binning).debiased_square_error)


@from_scores(
    "overall",
    symbol="REL",
    tex=r"\sum_i \sum_b \frac{w_{ib}}{w} (acc_{ib} - conf_{ib})^2",
    source=MURPHY,
    **ERROR | {"range": (0.0, 2.0)},
)
def brier_reliability(s: Scores, binning: Binning | None) -> float:
    """Part of the Brier score that miscalibration adds, over the bins of all classes."""
    return _reliability(s, binning)


@from_scores(
    "overall",
    symbol="RES",
    tex=r"REL + UNC - BS",
    source=MURPHY,
    **BINNED | {"range": (-2.0, 2.0), "best": None},
)
def brier_resolution(s: Scores, binning: Binning | None) -> float:
    """Part of the Brier score that probabilities which differ take away: reliability - resolution
    + uncertainty is the Brier score. It includes what probabilities differ within a bin.
    """
    return _reliability(s, binning) + _uncertainty(s) - s.mean(s.brier_scores)


@from_scores(
    "overall",
    symbol="UNC",
    tex=r"1 - \sum_i \mu_i^2",
    source=MURPHY,
    undefined=PROBABILITIES,
    resampled=True,
    best=None,
)
def brier_uncertainty(s: Scores) -> float:
    """Brier score of predicting the shares of the classes for every item."""
    return _uncertainty(s)


@from_scores(
    "class",
    symbol="CE_i",
    name="Calibration error of the class",
    tex=r"\sum_b \frac{w_{ib}}{w} |acc_{ib} - conf_{ib}|",
    source="Kull et al. 2019; Nixon et al. 2019",
    **ERROR,
)
def class_calibration_error(s: Scores, binning: Binning | None) -> Array:
    """Mean distance between the probability of the class and its share of the items of a bin. The
    macro average is the classwise calibration error.
    """
    return _of_classes(s, binning, lambda bins: bins.error)


@from_scores(
    "class",
    symbol="dCE_i",
    name="Debiased calibration error of the class",
    tex=r"\sqrt{\max(0, \sum_b \frac{w_{ib}}{w} [(acc_{ib} - conf_{ib})^2 - "
    r"\frac{acc_{ib} (1 - acc_{ib})}{w_{ib} - 1}])}",
    source=KUMAR,
    **ERROR,
)
def class_debiased_calibration_error(s: Scores, binning: Binning | None) -> Array:
    """Root of the mean squared distance between the probability of the class and its share of the
    items of a bin, less what chance adds to it; 0 where chance adds more.
    """
    return _of_classes(s, binning, lambda bins: _root(bins.debiased_square_error))


def _influence(s: Scores, label: int, *, slope: bool) -> Array:
    parts = logits_of(s.values[:, label]), s.true == label, s.item_weights
    return influences(*parts, _line(s, label, slope=slope), slope=slope)


RECALIBRATION = {
    "undefined": (*PROBABILITIES, "no_true_samples", "not_identifiable"),
    "interval": "recalibration",
    "range": REAL,
    "best": None,
}


@from_scores(
    "class",
    symbol="b_i",
    tex=r"\hat b: \mathrm{logit} P(t(x) = i) = a + b\, \mathrm{logit}\, p_i(x)",
    source="Cox 1958; Van Calster et al. 2016",
    item_influence=partial(_influence, slope=True),
    **RECALIBRATION,
)
def calibration_slope(s: Scores) -> Array:
    """Slope of a logistic regression of the class on the logit of its probability: 1 if calibrated,
    below 1 where probabilities are too extreme, above 1 where they are not extreme enough.
    """
    return np.array([_line(s, label, slope=True).slope for label in range(s.k)])


@from_scores(
    "class",
    symbol="a_i",
    tex=r"\hat a: \mathrm{logit} P(t(x) = i) = a + \mathrm{logit}\, p_i(x)",
    source="Cox 1958; Van Calster et al. 2016",
    item_influence=partial(_influence, slope=False),
    **RECALIBRATION,
)
def calibration_intercept(s: Scores) -> Array:
    """What the logits of the class must be moved by, at a slope of 1, so that its mean probability
    is its share: 0 if calibrated, below 0 where its probabilities are too high.
    """
    return np.array([_line(s, label, slope=False).intercept for label in range(s.k)])


def _root(square: float) -> float:
    return float(np.sqrt(max(square, 0.0)))


def _of_classes(
    s: Scores, binning: Binning | None, measure: Callable[[Reliability], float]
) -> Array:
    return np.array([measure(bins) for bins in s.class_reliability(binning)])


def _reliability(s: Scores, binning: Binning | None) -> float:
    return sum(bins.square_error for bins in s.class_reliability(binning))


def _uncertainty(s: Scores) -> float:
    return float(1 - np.sum((s.support / np.add.reduce(s.support)) ** 2))


def _line(s: Scores, label: int, *, slope: bool) -> Line:
    """Fit the line of a class, once; NaN where no line is most likely."""
    return s.once(("line", label, slope), lambda: _cells(s, label).fit(slope=slope))


def _cells(s: Scores, label: int) -> LogitCells:
    parts = s.true == label, s.weights
    key = ("logits", label)
    return s.once(key, lambda: LogitCells.of(logits_of(s.values[:, label]), *parts))
