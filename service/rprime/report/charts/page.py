"""Pages: charts as they stand in HTML, where they follow the theme and the width of their place."""

from collections.abc import Sequence

from markupsafe import Markup

from rprime.report.charts.confusion import HeatMap, Mode, map_of, plot_map, ramp
from rprime.report.charts.drawing import Drawing, Marks, Paint, Path, Shape, write_svg
from rprime.report.charts.scores import keys_of, plot_panel
from rprime.report.heat_map import ConfusionChart
from rprime.report.marks import Mark
from rprime.report.score_charts import Chart, Panel

Key = tuple[Sequence[Shape], str]
HEAT_WIDTH = 540.0
PANEL_WIDTH = 420.0
_SMALL = (340.0, 130.0)
"""Width of a small chart, and height of its axes."""
_SPARK = (168.0, 28.0)
"""Width and height of the line beside the name of a model."""


def figure(drawing: Drawing, title: str = "", css: str = "") -> Markup:
    """Write a drawing into a page; the title is for those who do not see it."""
    data = {**drawing.data}
    named = Drawing(drawing.width, drawing.height, drawing.shapes, title or drawing.title, data)
    return _ours(write_svg(named, themed=True, css=f"figure {css}".strip()))


def mark(placed: Mark, *, limit: bool = False) -> Markup:
    """Draw an interval as a line, its value as a dot and a baseline as a diamond, or a limit.

    It is as wide as its cell: places are percent, and strokes keep their width.
    """
    parts = []
    if placed.width:
        end = placed.start + placed.width
        parts.append(f'<path class="line" d="M{placed.start:g} 6H{end:g}"/>')
    if placed.against is not None:
        shape = "M{:g} 0v12" if limit else "M{:g} 1l3 5-3 5-3-5z"
        name = "limit" if limit else "base"
        parts.append(f'<path class="{name}" d="{shape.format(placed.against)}"/>')
    parts.append(f'<path class="dot" d="M{placed.at:g} 6h0"/>')
    return Markup(
        '<svg class="mark" viewBox="0 0 100 12" preserveAspectRatio="none" role="img" '
        'aria-label="{}">{}</svg>'
    ).format(placed.words, _ours("".join(parts)))


def mark_key(*, value: bool = True, baseline: bool = False, limit: bool = False) -> Markup:
    """Draw what `mark` does for a legend."""
    parts = '<path class="line" d="M10 6H90"/><path class="dot" d="M50 6h0"/>' if value else ""
    parts += '<path class="base" d="M50 1l14 5-14 5-14-5z"/>' if baseline else ""
    parts += '<path class="limit" d="M50 0v12"/>' if limit else ""
    return _ours(
        '<svg class="mark key" viewBox="0 0 100 12" preserveAspectRatio="none" '
        f'aria-hidden="true">{parts}</svg>'
    )


def heat(chart: ConfusionChart, mode: Mode = "count") -> Markup:
    """Draw a confusion table."""
    most = chart.counts.copy()
    most[range(len(chart.labels)), range(len(chart.labels))] = 0
    classes = len(chart.labels)
    wrong = (
        f"a weight of {most.sum():,.4g} is" if chart.weighted else f"{most.sum():,.0f} items are"
    )
    title = f"Heat map of {classes} classes by their predictions: {wrong} wrong"
    return figure(plot_map(map_of(chart, mode), HEAT_WIDTH), title, "heat")


def change_heat(heat_map: HeatMap, title: str) -> Markup:
    """Draw the difference of two confusion tables."""
    return figure(plot_map(heat_map, HEAT_WIDTH), title, "heat")


def ramp_keys(right: str, wrong: str) -> Markup:
    """Say what the shades of a heat map mean."""
    return keys(ramp(right, wrong))


def keys(entries: Sequence[Key]) -> Markup:
    """Say what marks mean, each beside its words."""
    items = [
        Markup("<li>{}<bdi>{}</bdi></li>").format(
            _ours(
                '<svg class="swatch" viewBox="0 -7 28 14" width="28" height="14" '
                f'aria-hidden="true">{_inside(shapes)}</svg>'
            ),
            words,
        )
        for shapes, words in entries
    ]
    return Markup('<ul class="keys small">{}</ul>').format(Markup("").join(items))


def panel(shown: Panel, title: str) -> Markup:
    """Draw a panel of a chart of scores."""
    words = f"{shown.title or title}: {shown.y_label} by {shown.x_label}"
    words = f"{words}; the table below has the numbers"
    return figure(plot_panel(shown, PANEL_WIDTH), words, "curves")


def moves(chart: Chart, words: str) -> Markup:
    """Draw a small chart of one panel, in words what it shows."""
    return figure(plot_panel(chart.panels[0], *_SMALL), words, "curves")


def score_keys(chart: Chart) -> Markup:
    """Say what the lines of a chart of scores mean; nothing of a single line."""
    entries = keys_of(chart)
    return keys(entries) if entries else Markup("")


def sparkline(places: Sequence[tuple[float, float, bool]], words: str) -> Markup:
    """Draw a small line through places in percent; those that failed are diamonds."""
    width, height = _SPARK
    points = [(4 + x / 100 * (width - 8), 4 + y / 100 * (height - 8)) for x, y, _ in places]
    failed = [point for point, (*_, fails) in zip(points, places, strict=True) if fails]
    shapes: list[Shape] = [Path([points], Paint(stroke="accent", width=1.5))]
    if points[-1] not in failed:
        shapes.append(Marks(points[-1:], Paint("accent"), radius=3))
    if failed:
        shapes.append(Marks(failed, Paint("bad", "surface"), "diamond", 3.6, "failed"))
    return figure(Drawing(width, height, shapes), words, "sparkline")


def _inside(shapes: Sequence[Shape]) -> str:
    whole = write_svg(Drawing(28, 14, shapes), themed=True)
    return whole[whole.index(">") + 1 : whole.rindex("</svg>")]


def _ours(svg: str) -> Markup:
    return Markup(svg)  # noqa: S704 (our own, in which every text is escaped)


FUNCTIONS = {
    "figure": figure,
    "mark": mark,
    "mark_key": mark_key,
    "heat": heat,
    "change_heat": change_heat,
    "ramp_keys": ramp_keys,
    "panel": panel,
    "moves": moves,
    "score_keys": score_keys,
    "sparkline": sparkline,
}
"""What templates call, as members of `charts`."""
