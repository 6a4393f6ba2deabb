"""Charts of scores: one specification for the browser, the HTML report and the files."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rprime.core.arrays import Array
from rprime.core.evaluate import Evaluation
from rprime.core.intervals.proportions import quantile_of, wilson
from rprime.core.quantities import plural
from rprime.core.scores.curves import Detections, ScoreSummary, risk_coverage
from rprime.report.subject import ReportSubject
from rprime.report.text import count, decimal, percent, shown, span

MOST_CLASSES = 6
"""Classes in a chart: those with the smallest areas under their ROC curves."""
POOLED = "All classes, pooled"
NO_SCORES = (
    "There are no scores to draw: send `y_score`. A stored evaluation keeps what is drawn only if "
    "it was stored with `curves: true`."
)
_FALSE_POSITIVES = (0.01, 0.05, 0.1, 0.2)
_RECALLS = (0.5, 0.8, 0.9, 0.95)
_COVERAGES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)


@dataclass(frozen=True, eq=False)
class Line:
    """A line of a panel; x and y have shape (points,)."""

    name: str
    value: str
    """The number that the legend has of it, if any."""
    style: int | None
    """Position among the colours; None for the ink."""
    x: Array
    y: Array
    band: Array | None = None
    """Shape (2, points): lower and upper limits of y, if any."""
    filled: bool = False
    """Whether the area below is shaded."""
    dotted: bool = False
    """Whether the points are marked."""


@dataclass(frozen=True, eq=False)
class Panel:
    """Lines on the same axes, each of which has ends."""

    title: str
    """Empty of a single panel."""
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    ends: tuple[float, float] = (0.0, 1.0)
    top: float = 1.0
    bottom: float = 0.0
    diagonal: str = ""
    """What the line from corner to corner means, if anything."""

    @property
    def square(self) -> bool:
        """Whether both axes have the same unit and length."""
        return self.ends == (0.0, 1.0) and (self.bottom, self.top) == (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Chart:
    """Panels, in words what they show, and their numbers as a table."""

    title: str
    lead: str
    panels: tuple[Panel, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def lines(self) -> dict[str, Line]:
        """The lines of all panels by their names, each once."""
        return {line.name: line for panel in self.panels for line in panel.lines}

    @property
    def keys(self) -> dict[str, str]:
        """The names in the legend with their values; none for a single line."""
        legend = {name: line.value for name, line in self.lines.items()}
        diagonal = self.panels[0].diagonal
        legend |= {diagonal: ""} if diagonal else {}
        return legend if len(legend) > 1 else {}


@dataclass(frozen=True, eq=False)
class _Of:
    """What charts are of: a summary, and the classes among it that are drawn, by their names."""

    evaluation: Evaluation
    summary: ScoreSummary
    names: dict[int, str]
    note: str

    @classmethod
    def subject(cls, subject: ReportSubject, summary: ScoreSummary) -> "_Of":
        """Choose the classes to be drawn."""
        labels, k = subject.evaluation.labels, len(subject.evaluation.labels)
        mask = summary.classes < k
        places = np.flatnonzero(mask)
        places = np.sort(places[np.argsort(summary.areas[0, mask], kind="stable")[:MOST_CLASSES]])
        names = {i: shown(labels[summary.classes[i]]) for i in places.tolist()}
        less = np.count_nonzero(mask) > len(names)
        number = f"{len(names)} of {plural(k, 'class')}"
        note = f" The {number} with the smallest areas under ROC curves."
        if not mask.all():
            names[len(mask) - 1] = POOLED
        return cls(subject.evaluation, summary, names, note if less else "")

    def curves(self) -> list[tuple[int, str, int | None, Detections]]:
        """Return place, name, style and curve of each class that is drawn."""
        detections = [curve for _, curve in self.summary.detections()]
        return [
            (i, name, None if name is POOLED else style, detections[i])
            for style, (i, name) in enumerate(self.names.items())
        ]


def chart_of_scores(name: str, subject: ReportSubject) -> Chart | None:
    """Return a chart of `CHARTS`; None if there are no scores, or nothing to draw of them."""
    summary = subject.scores
    chart = None if summary is None else CHARTS[name](_Of.subject(subject, summary))
    return chart if chart is not None and chart.panels and chart.lines else None


def _roc(of: _Of) -> Chart:
    lines, rows = [], []
    for place, name, style, curve in of.curves():
        points, area = curve.roc(), decimal(of.summary.areas[0, place])
        rates, recall = points["false_positive_rate"], points["recall"]
        lines.append(Line(name, f"area {area}", style, rates, recall))
        at = np.interp(_FALSE_POSITIVES, rates, recall)
        rows.append((name, area, *map(decimal, at.tolist())))
    lead = f"Each class against the rest; the legend has the areas.{of.note}"
    panel = Panel("", "False-positive rate", "Recall", tuple(lines), diagonal="at random")
    columns = ("Class", "Area", *(f"Recall at rate {rate:g}" for rate in _FALSE_POSITIVES))
    return Chart("ROC curves", lead, (panel,), columns, tuple(rows))


def _precision_recall(of: _Of) -> Chart:
    lines, rows = [], []
    for place, name, style, curve in of.curves():
        points, area = curve.precision_recall(), decimal(of.summary.areas[1, place])
        recall, precision = points["recall"], points["precision"]
        lines.append(Line(name, f"average precision {area}", style, recall[1:], precision[1:]))
        at = precision[np.searchsorted(recall, np.array(_RECALLS) - 1e-12)]
        share = curve.tp[-1] / (curve.tp[-1] + curve.fp[-1])
        rows.append((name, area, decimal(share), *map(decimal, at.tolist())))
    lead = f"Each class against the rest; the legend has the average precision.{of.note}"
    panels = (Panel("", "Recall", "Precision", tuple(lines)),)
    titles = (f"Precision at recall {recall:g}" for recall in _RECALLS)
    columns = ("Class", "Average precision", "Share of items", *titles)
    return Chart("Precision-recall curves", lead, panels, columns, tuple(rows))


def _reliability(of: _Of) -> Chart | None:
    bins = of.summary.calibration
    if bins is None:
        return None
    filled = bins.items > 0
    items, right = bins.items[filled], bins.correct[filled]
    score, share = bins.confidence[filled] / items, right / items
    weighted, level = of.evaluation.table.weighted, of.evaluation.options.confidence
    band = None if weighted else wilson(right, items, quantile_of(level))
    limits = [None] * len(items) if band is None else band.T.tolist()
    interval = f"{percent(level)} interval"
    edges = zip(bins.edges[:-1][filled], bins.edges[1:][filled], strict=True)
    numbers = zip(edges, items.tolist(), score.tolist(), share.tolist(), limits, strict=True)
    about = "Weighted items have no band." if weighted else f"The band is Wilson's {interval}."
    lead = f"Share of right predictions by their score, in {len(bins.items)} bins. {about}"
    line = Line("Top score", "", 0, score, share, band, dotted=True)
    panel = Panel("", "Mean of the top score", "Share right", (line,), diagonal="calibrated")
    columns = ("Top score", "Items", "Mean score", "Share right", interval)
    rows = tuple(
        (span(*ends), count(n), decimal(mean), decimal(part), "" if at is None else span(*at))
        for ends, n, mean, part, at in numbers
    )
    return Chart("Reliability", lead, (panel,), columns, rows)


def _risk_coverage(of: _Of) -> Chart:
    points = risk_coverage(*of.summary.risk)
    coverage, risk = points["coverage"], points["risk"]
    places = np.searchsorted(coverage, np.array(_COVERAGES) - 1e-12)
    rows = np.stack([coverage, risk, points["threshold"]])[:, places].T.tolist()
    top = max(float(risk.max()), 1e-3)
    line = Line("Top score", "", 0, coverage, risk)
    panel = Panel("", "Coverage: share answered", "Risk: share wrong", (line,), top=top * 1.05)
    lead = "Share of wrong predictions among the items with the highest top scores."
    columns = ("Coverage", "Risk", "Top score at least")
    texts = tuple(tuple(map(decimal, row)) for row in rows)
    return Chart("Risk and coverage", lead, (panel,), columns, texts)


def _scores(of: _Of) -> Chart:
    edges, panels = of.summary.edges, []
    classes = {place: name for place, name in of.names.items() if name is not POOLED}
    counts = of.summary.bins[:2, list(classes)]
    shares = counts / counts.sum(-1, keepdims=True)
    x = np.repeat(edges, 2)
    for place, name in enumerate(classes.values()):
        lines = [
            Line(what, "", style, x, np.concatenate(([0], np.repeat(part, 2), [0])), filled=True)
            for style, (what, part) in enumerate(
                zip(("Items of the class", "Other items"), shares[:, place], strict=True)
            )
        ]
        ends = (float(edges[0]), float(edges[-1]))
        top = float(shares.max()) * 1.05
        axes = ("Score of the class", "Share of items")
        panels.append(Panel(name, *axes, tuple(lines), ends, top))
    numbers = counts.transpose(2, 1, 0).reshape(len(edges) - 1, -1)
    lead = f"How the scores of a class are spread over its items, and over all others.{of.note}"
    names = (f"{name}{what}" for name in classes.values() for what in ("", ", others"))
    rows = tuple(
        (span(low, high), *map(count, row))
        for low, high, row in zip(edges[:-1], edges[1:], numbers.tolist(), strict=True)
    )
    return Chart("Scores by class", lead, tuple(panels), ("Score", *names), rows)


CHARTS: dict[str, Callable[[_Of], Chart | None]] = {
    "roc": _roc,
    "precision_recall": _precision_recall,
    "reliability": _reliability,
    "risk_coverage": _risk_coverage,
    "scores": _scores,
}
"""The charts by their names, which are those of the figures."""


def plots(subject: ReportSubject) -> dict[str, Chart]:
    """Return all charts that an evaluation has, by their names; none without scores."""
    charts = {name: chart_of_scores(name, subject) for name in CHARTS}
    return {name: chart for name, chart in charts.items() if chart is not None}
