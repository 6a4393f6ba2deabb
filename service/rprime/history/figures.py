"""Draw figures of a stored evaluation, and of the evaluations of a project over time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import NamedTuple

import numpy as np
import orjson

from rprime.application.studies import FIGURES as PRINTED
from rprime.application.studies import discrimination_lines
from rprime.application.work import RemoteStore
from rprime.core.catalog import find
from rprime.core.index import Index
from rprime.core.quantities import plural
from rprime.core.slices.slices import Slice
from rprime.history.series import Measured, filters_of
from rprime.history.stored_report import NOTHING, StoredReport, stored_report
from rprime.history.stored_values import values_of_classes
from rprime.problems.problem import refuse
from rprime.report.charts import sheet
from rprime.report.charts.discrimination import draw_discrimination
from rprime.report.charts.evaluation import FIGURES as EVALUATION_FIGURES
from rprime.report.charts.evaluation import MIXED, shown_indices
from rprime.report.charts.history import MOST_PANELS, draw_boxes, draw_lines, draw_trend
from rprime.report.charts.sheet import Canvas, Form
from rprime.report.class_charts import default_indices
from rprime.report.history_charts import ClassHistory, FigureStep, TrendChart, course_of
from rprime.report.marks import union
from rprime.schemas.history import HistoryFigureQuery
from rprime.settings import Limits
from rprime.store import Filters, Store, StoredEvaluation, ids

_PLACE = "/query/index"
TREND, _, BOXES = FIGURES = ("trend", "lines", "boxes")
_NO_MODEL = "\N{EN DASH}"


def draw_or_refuse(draw: Callable[[], bytes]) -> bytes:
    """Draw; problem 422 if the data do not fit a figure."""
    try:
        return draw()
    except sheet.NothingToDrawError as error:
        raise refuse("", "no_scores", str(error)) from None
    except sheet.TooMuchToDrawError as error:
        raise refuse("", "too_much", str(error)) from None


LIBRARY = ("rprime.report.charts.evaluation", "resvg_py")
"""The modules that draw."""


def figure_of_stored(
    _body: bytes,
    store: RemoteStore,
    *,
    stored: StoredEvaluation,
    figure: tuple[str, tuple[str, ...]],
    slice_: Slice,
    canvas: Canvas,
) -> bytes:
    """Draw the figure of a name and indices of a stored evaluation, or of a slice of it."""
    # Listing options do not matter here.
    report = stored_report(stored, store.as_store, 0, slice_).with_baseline_name(store.as_store)
    return figure_of(figure[0], report, figure[1], canvas)


def figure_of_history(
    _body: bytes, store: RemoteStore, *, figure: "HistoryFigure", canvas: Canvas
) -> bytes:
    """Draw a figure of a history; see `HistoryFigure.draw`."""
    return figure.draw(store.as_store, canvas)


def figure_of_lines(body: bytes, _store: RemoteStore, *, limits: Limits, form: Form) -> bytes:
    """Draw the discrimination lines that a request asks for."""
    lines = discrimination_lines(body, limits)
    return draw_or_refuse(partial(draw_discrimination, lines, form=form))


def printed_figure(_body: bytes, _store: RemoteStore, *, number: int, form: Form) -> bytes:
    """Draw a figure of Labatut and Cherifi."""
    plan = PRINTED[number]
    lines = discrimination_lines(orjson.dumps(plan.request), Limits())
    draw = partial(draw_discrimination, title=plan.title, by=plan.by, columns=1, form=form)
    return draw_or_refuse(partial(draw, lines))


def figure_of(name: str, report: StoredReport, indices: tuple[str, ...], canvas: Canvas) -> bytes:
    """Draw a figure of a stored evaluation; no indices means the default ones. Blocks."""
    figure_indices(indices, mixed=name in MIXED)
    compared = report.stored.comparison not in {None, NOTHING}
    shown = indices or default_indices(name, compared=compared)
    subject = replace(report, indices=shown).subject
    return draw_or_refuse(lambda: EVALUATION_FIGURES[name](subject, canvas))


def figure_indices(keys: Sequence[str], *, mixed: bool) -> list[Index]:
    """Look up indices as `shown_indices`; problem 422 for what a stored table cannot have."""
    try:
        entries = shown_indices(keys, mixed=mixed)
    except ValueError as error:
        raise refuse(_PLACE, "unknown_index", str(error)) from None
    for entry in entries:
        if entry.scored and entry.scope == "class":
            detail = "The index reads scores, of which only overall indices are stored."
            raise refuse(_PLACE, "no_scores", detail)
        if entry.needs is not None:
            detail = f"The index needs the option `{entry.needs}`, which a figure does not take."
            raise refuse(_PLACE, "unknown_index", detail)
    return entries


@dataclass(frozen=True, eq=False)
class HistoryFigure:
    """A figure of a history: `trend`, `lines` or `boxes`."""

    name: str
    project: str
    query: HistoryFigureQuery

    @cached_property
    def indices(self) -> tuple[str, ...]:
        """The keys of the indices, each once."""
        return tuple(dict.fromkeys(self.query.index))

    @cached_property
    def filters(self) -> Filters:
        """The filters of the evaluations."""
        return filters_of(self.query)

    def draw(self, store: Store, canvas: Canvas) -> bytes:
        """Draw the figure; problem 404 or 422. Blocks."""
        if self.name == TREND:
            trend = self._trend(store)
            return draw_or_refuse(lambda: draw_trend(trend, canvas))
        histories, about = self._of_classes(store)
        draw = draw_boxes if self.name == BOXES else draw_lines
        return draw_or_refuse(lambda: draw(histories, about, canvas))

    @property
    def _by_class(self) -> bool:
        return self.query.by == "class"

    def _trend(self, store: Store) -> TrendChart:
        if self._by_class:
            raise refuse("/query/by", "misplaced", "A trend shows one class: name it in `class`.")
        label = self.query.class_
        labels = [label if find("class", key) else None for key in self.indices]
        if label is not None and not any(labels):
            labels = [label] * len(labels)
        measured = [Measured.of(key, of) for key, of in zip(self.indices, labels, strict=True)]
        series = []
        for measure in measured:
            line_points = measure.points(store, self.project, self.filters, self.query.limit)
            if not line_points:
                measure.refuse_unknown(store, self.project, self.filters)
            series.append(line_points)
        points = (point for line in series for point in line)
        steps = _Steps(_Found(p.evaluation, p.model, p.version, p.verdict) for p in points)
        drawn = product(zip(measured, series, strict=True), steps.models)
        courses, lone = [], len(measured) == len(steps.models) == 1
        for number, ((measure, line_points), model) in enumerate(drawn):
            model_points = [point for point in line_points if point.model == model]
            name = (
                measure.index.name if steps.lone else f"{model or 'no model'} {measure.index.name}"
            )
            places = np.array(
                [steps.place[point.evaluation] for point in model_points], dtype=np.intp
            )
            values = [(point.value, *(point.interval or (None, None))) for point in model_points]
            courses.append(course_of(name, number, places, values, lone=lone))
        about, within = self._about(store, steps), union(entry.index.range for entry in measured)
        return TrendChart(_title(measured), about, steps.named, tuple(courses), within)

    def _of_classes(self, store: Store) -> tuple[list[ClassHistory], str]:
        if self.query.class_ is not None:
            raise refuse("/query/class", "misplaced", "This figure shows all classes.")
        indices = figure_indices(self.indices, mixed=True)
        series = values_of_classes(
            store, self.project, self.filters, newest=self.query.limit, indices=indices
        )
        columns = ((s.ids, s.models, s.versions, s.verdicts) for s in series.stacks)
        steps = _Steps(_Found(*row) for names in columns for row in zip(*names, strict=True))
        place = series.selection.overall_place
        whole = {i.name: series.overall[place[i.key]] for i in indices if i.scope == "overall"}
        of_classes = [index for index in indices if index.scope == "class"]
        whose = "of the classes" if self.name == BOXES else "by class"
        within = union(entry.range for entry in indices)
        histories: list[ClassHistory] = []
        for index in of_classes:
            shown = (steps.named, series.labels, series.of_classes(index), whole)
            title, falling = f"{index.name} {whose}", index.higher_is_better is False
            histories.append(ClassHistory(title, *shown, falling=falling, within=within))
        about = self._about(store, steps)
        if self._by_class and steps.ordered:
            if self.name == BOXES:
                return [_boxes_of_classes(history) for history in histories], about
            names = [index.name for index in of_classes]
            panels = _panels_of_classes(histories, names)
            if len(panels) < len(series.labels):
                about = f"{about}; the {len(panels)} of {plural(len(series.labels), 'class')} that "
                about += f"are worst in the end by {names[0]}"
            return panels, about
        return histories, about

    def _about(self, store: Store, steps: "_Steps") -> str:
        slice_name = ", ".join(f"{column}={value}" for column, value in self.filters.slice)
        parts = (self.project, self.filters.model, self.filters.branch, slice_name)
        shown = len(steps.ordered)
        number = plural(shown, "evaluation")
        if shown == self.query.limit and (total := store.count(self.project, self.filters)) > shown:
            number = f"the newest {shown:,} of {plural(total, 'evaluation')}"
        return f"{', '.join(filter(None, parts))}: {number}"


def _title(measured: Sequence[Measured]) -> str:
    """Name indices of a class, and the overall ones beside them."""
    of_class = [measure for measure in measured if measure.label is not None]
    names = " and ".join(measure.index.name for measure in of_class or measured)
    if not of_class:
        return names
    overall = ", ".join(measure.index.name for measure in measured if measure.label is None)
    return f"{names} of {of_class[0].label}{overall and f' beside {overall}'}"


def _boxes_of_classes(history: ClassHistory) -> ClassHistory:
    """Exchange evaluations and classes; overall indices have boxes after those of the classes."""
    columns = np.column_stack((history.values, *history.overall.values()))
    title = history.title.replace("of the classes", "by class")
    steps = tuple(FigureStep(name) for name in (*history.labels, *history.overall))
    names = tuple(step.name for step in history.steps)
    return ClassHistory(title, steps, names, columns.T, within=history.within)


def _panels_of_classes(histories: list[ClassHistory], names: list[str]) -> list[ClassHistory]:
    """Return a panel for each class, with all indices; of many classes, for the worst ones."""
    first = histories[0]
    lines = (*names, *first.overall)
    panels: list[ClassHistory] = []
    for column in sorted(first.weakest[:MOST_PANELS]):
        columns = (history.values[:, column] for history in histories)
        values = np.column_stack((*columns, *first.overall.values()))
        label = first.labels[column]
        panels.append(ClassHistory(label, first.steps, lines, values, within=first.within))
    return panels


class _Found(NamedTuple):
    """The metadata of a stored evaluation."""

    id: str
    model: str | None
    version: str | None
    verdict: str | None


class _Steps:
    """Stored evaluations, oldest first."""

    def __init__(self, steps: Iterable[_Found]) -> None:
        self.ordered = sorted(set(steps))
        self.place = {step.id: place for place, step in enumerate(self.ordered)}
        self.models = tuple(dict.fromkeys(step.model for step in self.ordered))

    @property
    def lone(self) -> bool:
        """Whether all are of one model."""
        return len(self.models) <= 1

    @property
    def named(self) -> tuple[FigureStep, ...]:
        """The names of the steps: version or time, with the model if there are several."""
        return tuple(FigureStep(self._name(step), step.verdict) for step in self.ordered)

    def _name(self, step: _Found) -> str:
        version = step.version or f"{ids.created_at(step.id):%Y-%m-%d %H:%M}"
        return version if self.lone else f"{step.model or _NO_MODEL} {version}"
