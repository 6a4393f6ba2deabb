"""Logistic recalibration of a class: how far its logits must be stretched and moved."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rprime.core.arrays import Array
from rprime.core.scores.calibration import LEAST

GRID = 1 << 12
"""More items than this are put into so many cells by their logits."""
ROUNDS = 100
CLOSE = 1e-12
"""Newton's method ends with a step this short."""
HALVINGS = 40


class Line(NamedTuple):
    """The logit of the true probability as a function of the logit of the predicted one."""

    intercept: float
    slope: float

    def moved(self, step: "Line", share: float = 1.0) -> "Line":
        """Return the line a share of a step away."""
        return Line(self.intercept + share * step.intercept, self.slope + share * step.slope)


IDENTITY = Line(0.0, 1.0)
NO_LINE = Line(np.nan, np.nan)


@dataclass(frozen=True, eq=False)
class LogitCells:
    """Items in cells of nearly equal logits, and how many of them are positive.

    Parameters
    ----------
    logits
        Shape (cells,), ascending for a grid: of the centres.
    items
        Shape (3, cells): sums of the weights, and of these times the distance from the centre and
        its square. What a cell holds counts as if every item were there, but for the third power.
    positive
        Shape (2, cells): sums over the positive items, of the weights and times the distance.
    """

    logits: Array
    items: Array
    positive: Array

    @classmethod
    def of(cls, logits: Array, positive: Array, weights: Array | None) -> "LogitCells":
        """Put items into cells, each item into one of its own where there are few."""
        mass = np.ones(len(logits)) if weights is None else weights
        if len(logits) <= GRID:
            there = mass > 0
            mass, positive, logits = mass[there], (mass * positive)[there], logits[there]
            nothing = np.zeros(len(mass))
            parts = np.array([mass, nothing, nothing]), np.array([positive, nothing])
            return cls(logits, *parts)
        low, high = float(logits.min()), float(logits.max())
        width = (high - low) / GRID or 1.0
        distances = (logits - low) / width
        places = np.minimum(distances, GRID - 1).astype(np.intp)
        distances -= places
        distances -= 0.5
        right = np.flatnonzero(positive)
        moments = [None, distances, distances * distances]
        inside = places[right]
        return cls(
            low + (np.arange(GRID) + 0.5) * width,
            _sums(places, moments, weights) * np.array([[1.0], [width], [width**2]]),
            _sums(inside, [None, distances[right]], None if weights is None else weights[right])
            * np.array([[1.0], [width]]),
        )

    @property
    def is_mixed(self) -> bool:
        """Whether cells show that no logit separates positive from negative items."""
        right = np.flatnonzero(self.positive[0] > 0)
        wrong = np.flatnonzero(self.items[0] - self.positive[0] > 0)
        if not (right.size and wrong.size):
            return False
        ends = [self.logits[places] for places in (right, wrong)]
        inside, outside = ([part.min(), part.max()] for part in ends)
        return bool(inside[0] < outside[1] and outside[0] < inside[1])

    def fit(self, *, slope: bool) -> Line:
        """Fit the line by maximum likelihood, or only its intercept at a slope of 1.

        NaN where no line is most likely.
        """
        line, total = IDENTITY, np.add.reduce(self.items[0])
        if not 0 < np.add.reduce(self.positive[0]) < total or (slope and not self.is_mixed):
            return NO_LINE
        for _ in range(ROUNDS):
            gradient, curvature = self._derivatives(line)
            step = _newton(gradient, curvature, slope=slope)
            size = max(map(abs, step))
            if not np.isfinite(size):
                return NO_LINE
            line = self._shortened(line, step) if size > 1 else line.moved(step)
            if size < CLOSE * max(1.0, *map(abs, line)):
                return line
        return NO_LINE

    def _shortened(self, line: Line, step: Line) -> Line:
        """Halve a long step until it makes the items more likely: a whole one may overshoot."""
        before = self._likelihood(line)
        nearer = (line.moved(step, 0.5**halvings) for halvings in range(HALVINGS))
        return next((new for new in nearer if self._likelihood(new) > before), line)

    def _likelihood(self, line: Line) -> float:
        moved = line.intercept + line.slope * self.logits
        return float(self.positive[0] @ moved - self.items[0] @ np.logaddexp(0.0, moved))

    def _derivatives(self, line: Line) -> tuple[Array, Array]:
        """Return the gradient (2,) of the log likelihood, and its curvature (2, 2)."""
        expected = expected_at(self.logits, line)
        spread = expected * (1 - expected)
        (mass, first, second), (right, of_right) = self.items, self.positive
        steeper = line.slope * spread
        rest = right - mass * expected - first * steeper
        rest -= second * (line.slope * steeper * (0.5 - expected))
        gradient = np.array(
            (
                np.add.reduce(rest),
                rest @ self.logits + np.add.reduce(of_right - first * expected - second * steeper),
            )
        )
        powers = np.array([np.ones(len(spread)), self.logits])
        return gradient, (powers * (mass * spread)) @ powers.T


def _sums(places: Array, moments: list[Array | None], weights: Array | None) -> Array:
    sums = []
    for moment in moments:
        both = moment if weights is None or moment is None else moment * weights
        sums.append(np.bincount(places, weights if moment is None else both, GRID))
    return np.array(sums, dtype=np.float64)


def _newton(gradient: Array, curvature: Array, *, slope: bool) -> Line:
    a, b = gradient.tolist()
    (first, mixed), (_, second) = curvature.tolist()
    with np.errstate(all="ignore"):
        if not slope:
            return Line(float(np.divide(a, first)), 0.0)
        determinant = first * second - mixed * mixed
        steps = np.array([second * a - mixed * b, first * b - mixed * a]) / determinant
    return Line(*steps.tolist())


def expected_at(logits: Array, line: Line) -> Array:
    """Return the probabilities of items at logits (n,)."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-line.intercept - line.slope * logits)))


def logits_of(probabilities: Array) -> Array:
    """Return the logits of probabilities, clipped to [1e-15, 1 - 1e-15]."""
    odds = np.clip(probabilities.astype(np.float64), LEAST, 1 - LEAST)
    odds /= 1 - odds
    return np.log(odds, out=odds)


def influences(logits: Array, positive: Array, weights: Array, line: Line, *, slope: bool) -> Array:
    """Compute the influence of every item on the slope, or on the intercept at a slope of 1, (n,).

    Notes
    -----
    The sum of squares is the sandwich estimate of the variance (Huber 1967) with each residual as
    if its item had taken no part in the fit (HC3, MacKinnon, White 1985).
    """
    expected = expected_at(logits, line)
    spread = expected * (1 - expected) * weights
    if slope:
        powers = np.array([np.ones(len(logits)), logits])
        inverse = np.linalg.inv((powers * spread) @ powers.T)
        on_intercept, change = inverse @ powers
        leverage = on_intercept + change * logits
    else:
        change = leverage = np.full(len(logits), 1 / np.add.reduce(spread))
    alone = np.maximum(1 - spread * leverage, 1 / len(logits))
    return np.asarray((positive - expected) * weights * change / alone)
