"""History: indices over the evaluations of a project, as trends, lines, boxes and a heat strip."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf

import numpy as np

from rprime.core.arrays import Array
from rprime.core.quantities import plural
from rprime.core.studies import Quartiles
from rprime.report.charts.axes import (
    LINE,
    Scale,
    apart,
    height_of,
    legend,
    names_across,
    room_of,
    shown_class,
    stroke_of,
    upright,
)
from rprime.report.charts.drawing import (
    NOTE,
    Drawing,
    Group,
    Marks,
    Paint,
    Path,
    Point,
    Shape,
    Text,
    fitted,
    moved,
    rectangle,
    widest,
    width_of,
)
from rprime.report.charts.sheet import Canvas, Picture, TooMuchToDrawError, draw
from rprime.report.history_charts import (
    MOST_BOXES,
    MOST_DOTS,
    MOST_MARKED,
    MOST_NAMED,
    ClassHistory,
    FigureStep,
    TrendChart,
)
from rprime.report.marks import Axis, union
from rprime.report.styles import VERDICT_STYLES, Series

HEIGHT = 220.0
"""Of the axes."""
MOST_COURSES = 7
MOST_STACKED = 6
"""Panels that stand one above the other; more have two columns."""
MOST_PANELS = 12
"""Classes that have a panel each: the R' paper shows ten."""
FEWEST_LETTERS = 5
"""Of a name that is cut: of fewer nobody knows what they mean."""
_END = 160.0
"""Width of the names of lines, at most."""
_BAND = Paint("ink-soft", opacity=0.14)
_MEDIAN = Paint(stroke="ink-soft", width=1.5)
_NEAR = 0.08
"""Part of an axis within which there is no room for a name."""
_FLAG = Paint(stroke="ink-soft", dash=(2, 2))
_RING = Paint(stroke="ink", width=1.5)


@dataclass(frozen=True, slots=True)
class Step:
    """What a page says of an evaluation beside what a file does."""

    tip: str = ""
    link: str = ""
    flag: str = ""
    """The aliases that point at it."""


@dataclass(frozen=True, eq=False)
class Frame:
    """Axes over evaluations: where each stands, and where values do."""

    places: list[float]
    scale: Scale
    left: float
    right: float
    shapes: list[Shape]
    bottom: float
    """Where the names below the axes end."""

    @classmethod
    def of(
        cls, steps: Sequence[FigureStep], axis: Axis, width: float, *, ends: float, top: float = 10
    ) -> "Frame":
        """Lay out axes with room for the names of the lines at their right ends."""
        scale = Scale.of(axis, top + HEIGHT, top)
        left, right = room_of(scale), width - ends - 8
        room = (right - left) / max(len(steps), 1)
        places = [left + room * (i + 0.5) for i in range(len(steps))]
        names = [shown_class(step.name) for step in steps]
        shapes = [*names_across(names, places, top + HEIGHT, room), *upright(scale, left, right)]
        return cls(places, scale, left, right, shapes, top + HEIGHT + height_of(names, room))

    def at(self, times: Sequence[float], steps: Sequence[FigureStep]) -> "Frame":
        """Place the steps at their times; names that have no room are left out."""
        scale = Scale(min(times), max(times), self.left + LINE, self.right - LINE)
        places, named_places, last = [scale(time) for time in times], list[int](), -inf
        for number, place in enumerate(places):
            if place - last >= LINE + 2:
                named_places.append(number)
                last = place
        names = [shown_class(steps[number].name) for number in named_places]
        end = self.scale.start
        texts = names_across(names, [places[i] for i in named_places], end, LINE)
        axis = upright(self.scale, self.left, self.right)
        bottom = end + height_of(names, LINE)
        return replace(self, places=places, shapes=[*texts, *axis], bottom=bottom)

    def points(self, places: Array, values: Array) -> list[Point]:
        """Place values at steps; those that are undefined are left out."""
        pairs = zip(places.tolist(), values.tolist(), strict=True)
        return [(self.places[int(p)], self.scale(v)) for p, v in pairs if np.isfinite(v)]

    def band(self, places: Array, low: Array, high: Array, paint: Paint) -> list[Path]:
        """Draw bands between two limits, one for each run of steps that have both."""
        if not low.size:
            return []
        has = np.isfinite(low) & np.isfinite(high)
        runs = np.split(np.arange(len(places)), np.flatnonzero(np.diff(has)) + 1)
        areas = []
        for run in (run for run in runs if run.size and has[run[0]]):
            upper, lower = (self.points(places[run], side[run]) for side in (high, low))
            areas.append(Path([[*upper, *reversed(lower)]], paint, closed=True, name="band"))
        return areas


def draw_line(frame: Frame, series: Series, places: Array, name: str) -> list[Shape]:
    """Draw a line over the steps with its marks."""
    points = frame.points(places, series.values)
    if not points:
        return []
    style = series.style
    shapes: list[Shape] = [Path(_gapless(frame, series, places), stroke_of(style))]
    radius = 3.5 if len(places) <= MOST_MARKED else 0.0
    marks = Marks(points, Paint(style.colour), style.symbol, radius, name)
    return [*shapes, *([marks] if radius else [])]


def _gapless(frame: Frame, series: Series, places: Array) -> list[list[Point]]:
    """Return the runs of a line, which is open where a value is missing."""
    finite = np.isfinite(series.values)
    runs = np.split(np.arange(len(places)), np.flatnonzero(~finite))
    lines = [frame.points(places[run], series.values[run]) for run in runs]
    return [line for line in lines if line]


def ends_of(frame: Frame, lines: Iterable[tuple[Series, Array]], bottom: float) -> list[Shape]:
    """Name lines where they end, the names apart from each other, and lead to them."""
    ends: list[tuple[str, Point, str]] = []
    for series, places in lines:
        points = frame.points(places, series.values)
        if points and series.end:
            ends.append((shown_class(series.end), points[-1], series.style.colour))
    heights = apart([y for _, (_, y), _ in ends], LINE, bottom)
    left = frame.right + 14
    shapes: list[Shape] = []
    for (name, (x, y), colour), height in zip(ends, heights, strict=True):
        shapes.append(Path([[(x + 6, y), (left - 3, height)]], Paint(stroke=colour, width=0.8)))
        shapes.append(Text(left, height + 4, fitted(name, _END)))
    return shapes


def _room_for(series: Iterable[Series]) -> float:
    return min(widest(shown_class(course.end) for course in series), _END) + 14


def plot_trend(
    trend: TrendChart,
    width: float,
    steps: Sequence[Step] = (),
    times: Sequence[float] | None = None,
) -> Drawing:
    """Draw indices with their intervals; verdicts that did not pass are marked by shape, too."""
    flags = [step.flag for step in steps]
    rows = _flag_rows(flags)
    top = 10 + LINE * rows
    frame = Frame.of(trend.steps, trend.axis, width, ends=_room_for(trend.courses), top=top)
    if times is not None:
        frame = frame.at(times, trend.steps)
    shapes = list(frame.shapes)
    for number, course in enumerate(trend.courses, 1):
        area = Paint(course.style.colour, opacity=0.16)
        shapes += frame.band(course.places, course.low, course.high, area)
        shapes += draw_line(frame, course, course.places, f"course-{number}")
    lines = [(course, course.places) for course in trend.courses]
    shapes += [*_verdicts(frame, trend), *_flags(frame, trend, flags)]
    shapes += ends_of(frame, lines, top + HEIGHT)
    shapes += _columns(frame, steps, top)
    return Drawing(width, frame.bottom + 4, shapes, trend.title)


def _verdicts(frame: Frame, trend: TrendChart) -> list[Shape]:
    shapes: list[Shape] = []
    for verdict, style in VERDICT_STYLES.items():
        points = [
            point
            for course in trend.courses
            for place, value in zip(course.places, course.values, strict=True)
            if trend.steps[int(place)].mark is style
            for point in frame.points(np.array([place]), np.array([value]))
        ]
        if points:
            shapes.append(Marks(points, Paint(style.colour), style.symbol, 6, verdict))
    return shapes


def _flag_rows(flags: Sequence[str]) -> int:
    return min(sum(map(bool, flags)), 2)


def _flags(frame: Frame, trend: TrendChart, flags: Sequence[str]) -> list[Shape]:
    """Name the aliases above their versions, with rings around their values."""
    if not any(flags):
        return []
    (course, *_), shapes, rows = trend.courses, list[Shape](), [-1.0, -1.0]
    for place, value in zip(course.places.tolist(), course.values.tolist(), strict=True):
        flag = flags[int(place)]
        if not flag or not np.isfinite(value):
            continue
        x, y = frame.places[int(place)], frame.scale(value)
        half = width_of(flag) / 2
        middle = min(max(x, half), frame.right + _END - half)
        row = 0 if rows[0] < middle - half else 1
        rows[row] = middle + half + 6
        height = LINE * (row + 1) - 3
        shapes += [
            Path([[(x, height + 4), (x, y - 9)]], _FLAG),
            Marks([(x, y)], _RING, radius=8),
            Text(middle, height, flag, "middle"),
        ]
    return shapes


def _columns(frame: Frame, steps: Sequence[Step], top: float) -> list[Shape]:
    """Lay an invisible column over each step, which says its numbers and leads to it."""
    half = (frame.right - frame.left) / max(len(steps), 1) / 2
    glass = Paint("surface", opacity=0.0)
    return [
        Group(
            [Path([rectangle(x - half, top, 2 * half, HEIGHT)], glass, closed=True)],
            "step",
            tip=step.tip,
            link=step.link,
        )
        for x, step in zip(frame.places, steps, strict=False)
        if step.tip
    ]


def verdict_keys(trend: TrendChart) -> list[tuple[Sequence[Shape], str]]:
    """Say what the marks of verdicts mean, for `legend`."""
    there = {step.mark for step in trend.steps}
    return [
        ([Marks([(14, 0)], Paint(style.colour), style.symbol, 6)], style.words)
        for style in dict.fromkeys(VERDICT_STYLES.values())
        if style in there
    ]


def draw_trend(trend: TrendChart, canvas: Canvas) -> bytes:
    """Draw overall or per-class indices with their intervals.

    Raises
    ------
    TooMuchToDrawError
        If there are too many courses.
    """
    if len(trend.courses) > MOST_COURSES:
        raise TooMuchToDrawError(
            f"A trend shows at most {MOST_COURSES} lines, one for each index and model: name "
            "fewer indices, or one `model`."
        )
    if not trend.steps:
        return _draw_nothing(trend.title, trend.about, canvas)

    def plot(width: float) -> Drawing:
        drawing = plot_trend(trend, width)
        words, height = legend(verdict_keys(trend), 0, drawing.height, width)
        return Drawing(width, drawing.height + height, [*drawing.shapes, *words])

    banded = any(np.isfinite(course.low).any() for course in trend.courses)
    notes = ("Bands: the interval of each value by itself.",) if banded else ()
    return draw(Picture(trend.title, trend.about, plot, notes), canvas)


def plot_lines(
    history: ClassHistory, width: float, axis: Axis | None = None, *, named_ends: bool = True
) -> Drawing:
    """Draw a line for each class, of many for some of them over bands of all."""
    series = history.series
    ends = _room_for(series) if named_ends else 0.0
    frame = Frame.of(history.steps, axis or history.axis, width, ends=ends)
    places, shapes = np.arange(len(history.steps)), list(frame.shapes)
    if history.banded:
        shapes += _bands(frame, history.boxes)
    for number, course in enumerate(series, 1):
        drawn = draw_line(frame, course, places, f"line-{number}")
        shapes.append(Group(drawn, "line", {"class": course.name}, shown_class(course.name)))
    if named_ends:
        shapes += ends_of(frame, [(course, places) for course in series], 10 + HEIGHT)
    return Drawing(width, frame.bottom + 4, shapes, history.title)


def draw_lines(histories: Sequence[ClassHistory], about: str, canvas: Canvas) -> bytes:
    """Draw a panel for each index, or for each class (Zhang, Su, Dou 2021, figure 2)."""
    bands = f"Bands: the middle half and all of {plural(len(histories[0].labels), 'class')}"
    note = f"{bands}, with the median. Lines: the weakest in the end, and those that fell most."
    plot = partial(plot_lines, named_ends=len(histories) <= MOST_STACKED)
    return _draw_classes(histories, about, canvas, plot, note if histories[0].banded else "")


def plot_boxes(history: ClassHistory, width: float, axis: Axis | None = None) -> Drawing:
    """Draw quartiles as boxes, of many steps as bands, with the worst class of each named."""
    overall = history.series[len(history.drawn) :]
    frame = Frame.of(history.steps, axis or history.axis, width, ends=_room_for(overall))
    places, shapes = np.arange(len(history.steps)), list(frame.shapes)
    if len(history.steps) > MOST_BOXES:
        shapes += _bands(frame, history.boxes)
    else:
        shapes += _boxes(frame, history.boxes)
        shapes += _values(frame, history)
    for number, course in enumerate(overall, 1):
        shapes += draw_line(frame, course, places, f"line-{number}")
    shapes += ends_of(frame, [(course, places) for course in overall], 10 + HEIGHT)
    return Drawing(width, frame.bottom + 4, shapes, history.title)


def draw_boxes(histories: Sequence[ClassHistory], about: str, canvas: Canvas) -> bytes:
    """Draw quartiles over classes or over evaluations, a panel an index (R' paper, figure 3)."""
    steps, labels = len(histories[0].steps), len(histories[0].labels)
    dots = " Dots are values." if labels <= MOST_DOTS else ""
    names = " The worst is named." if steps <= MOST_NAMED else ""
    note = f"Boxes are quartiles, whiskers end at the lowest and the highest value.{dots}{names}"
    if steps > MOST_BOXES:
        note = "Bands: the middle half of the values, and all of them; the line is the median."
    return _draw_classes(histories, about, canvas, plot_boxes, note)


def _boxes(frame: Frame, boxes: Sequence[Quartiles | None]) -> list[Shape]:
    half = min((frame.right - frame.left) / max(len(boxes), 1) / 4, 20.0)
    bodies, whiskers, medians = list[list[Point]](), list[list[Point]](), list[list[Point]]()
    for x, box in zip(frame.places, boxes, strict=True):
        if box is None:
            continue
        at = frame.scale
        top, bottom = at(box.upper), at(box.lower)
        bodies.append(rectangle(x - half, top, 2 * half, bottom - top))
        medians.append([(x - half, at(box.median)), (x + half, at(box.median))])
        for end, edge in ((at(box.minimum), bottom), (at(box.maximum), top)):
            whiskers += [[(x, edge), (x, end)], [(x - half / 2, end), (x + half / 2, end)]]
    return [
        Path(whiskers, Paint(stroke="ink-soft"), name="whiskers"),
        Path(bodies, Paint("track", "ink-soft"), closed=True, name="boxes"),
        Path(medians, Paint(stroke="ink", width=2), name="medians"),
    ]


def _values(frame: Frame, history: ClassHistory) -> list[Shape]:
    """Draw the values beside their boxes, and name the worst of each, where there is room."""
    steps, labels, shapes = len(history.steps), len(history.labels), list[Shape]()
    if labels <= MOST_DOTS:
        places = np.repeat(np.arange(steps), labels)
        dots = frame.points(places, history.values.ravel())
        shapes.append(Marks(dots, Paint("ink", opacity=0.45), radius=2, name="classes"))
    if steps > MOST_NAMED:
        return shapes
    room = (frame.right - frame.left) / steps - 6
    scale = frame.scale
    for x, worst, row in zip(frame.places, history.worst, history.values, strict=True):
        if worst is None:
            continue
        value = float(row[worst])
        label = shown_class(history.labels[worst])
        name = fitted(label, room)
        if len(name) < min(len(label), FEWEST_LETTERS):
            continue
        near = min(value - scale.low, scale.high - value) < _NEAR * (scale.high - scale.low)
        y = scale(value) + (4 if near else -6 if history.falling else LINE)
        across = x + 5 if near else x
        fits = not near or across + width_of(name) < x + room / 2 + 6
        if fits:
            shapes.append(Text(across, y, name, "start" if near else "middle", colour="ink-soft"))
    return shapes


def _bands(frame: Frame, boxes: Sequence[Quartiles | None]) -> list[Shape]:
    """Draw the quartiles as bands: all values, the middle half, the median."""
    nothing = Quartiles(0, *[np.nan] * 5)
    padded, places = [box or nothing for box in boxes], np.arange(len(boxes))
    parts = {name: np.array([getattr(b, name) for b in padded]) for name in Quartiles.__slots__}
    shapes: list[Shape] = []
    for low, high in (("minimum", "maximum"), ("lower", "upper")):
        shapes += frame.band(places, parts[low], parts[high], _BAND)
    return [*shapes, Path([frame.points(places, parts["median"])], _MEDIAN, name="median")]


def _draw_nothing(title: str, about: str, canvas: Canvas) -> bytes:
    def plot(width: float) -> Drawing:
        words = Text(width / 2, 30, "No evaluation fits.", "middle", colour="ink-soft")
        return Drawing(width, 50, [words])

    return draw(Picture(title, about, plot), canvas)


def _draw_classes(
    histories: Sequence[ClassHistory],
    about: str,
    canvas: Canvas,
    plot: Callable[[ClassHistory, float, Axis | None], Drawing],
    note: str,
) -> bytes:
    """Draw several panels over the same steps, one above the other, or beside each other."""
    titles = [history.title for history in histories]
    title = titles[0] if len(titles) == 1 else "Indices by class"
    if not histories[0].steps:
        return _draw_nothing(title, about, canvas)
    columns = 1 if len(titles) <= MOST_STACKED else 2
    # Panels beside each other have one axis.
    axis = Axis(*union((h.axis.low, h.axis.high) for h in histories)) if columns > 1 else None

    def plot_all(width: float) -> Drawing:
        drawings = [plot(history, width / columns - 8, axis) for history in histories]
        shapes, top = list[Shape](), 0.0
        for start in range(0, len(drawings), columns):
            row = drawings[start : start + columns]
            for number, drawing in enumerate(row):
                left = width / columns * number
                if len(titles) > 1:
                    name = shown_class(titles[start + number])
                    shapes.append(Text(left, top + 14, name, size=NOTE, bold=True))
                shapes += moved(drawing.shapes, left, top + (18 if len(titles) > 1 else 0))
            top += max(drawing.height for drawing in row) + 24
        keys = _line_keys(histories[0]) if columns > 1 else []
        words, height = legend(keys, 0, top, width)
        return Drawing(width, top + height, [*shapes, *words])

    return draw(Picture(title, about, plot_all, (note,) if note else ()), canvas)


def _line_keys(history: ClassHistory) -> list[tuple[Sequence[Shape], str]]:
    return [
        (
            [
                Path([[(0, 0), (28, 0)]], stroke_of(course.style)),
                Marks([(14, 0)], Paint(course.style.colour), course.style.symbol, 3.5),
            ],
            shown_class(course.name),
        )
        for course in history.series
    ]
