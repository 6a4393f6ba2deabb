"""Draw figures of the evaluations of a project over time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rprime.core.index import Index
from rprime.history.evaluation_figures import class_index, drawn
from rprime.history.series import Measured, Point, filters_of
from rprime.history.stored_values import values_of_classes
from rprime.problems.problem import refuse
from rprime.report.decimals import plural
from rprime.report.figures.history import OF_CLASSES, TREND
from rprime.report.figures.sheet import Canvas
from rprime.report.figures.steps import MOST_PANELS, ClassHistory, FigureStep
from rprime.report.figures.trend import Course, TrendLines, draw_trend
from rprime.schemas.figures import HistoryFigureQuery
from rprime.store import Filters, Store, ids

_NO_MODEL = "\N{EN DASH}"


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
        """Draw the figure. Blocks.

        Raises
        ------
        Problem
            404, 422 or 501.
        """
        if self.name == TREND:
            trend = self._trend(store)
            return drawn(lambda: draw_trend(trend, canvas))
        histories, about = self._of_classes(store)
        return drawn(lambda: OF_CLASSES[self.name](histories, about, canvas))

    def _trend(self, store: Store) -> TrendLines:
        measured = [Measured.of(key, self.query.class_) for key in self.indices]
        series = [
            one.points(store, self.project, self.filters, self.query.limit) for one in measured
        ]
        if not any(series):
            measured[0].refuse_unknown_class(store, self.project, self.filters)
        steps = _Steps(
            _Found(point.evaluation, point.model, point.version, point.verdict)
            for found in series
            for point in found
        )
        names = " and ".join(one.index.name for one in measured)
        return TrendLines(
            title=names if self.query.class_ is None else f"{names} of {self.query.class_}",
            about=self._about(store, steps),
            steps=steps.named,
            courses=tuple(
                _course(one.index, model, found, steps)
                for one, found in zip(measured, series, strict=True)
                for model in steps.models
            ),
        )

    def _of_classes(self, store: Store) -> tuple[list[ClassHistory], str]:
        if self.query.class_ is not None:
            raise refuse("/query/class", "misplaced", "This figure shows all classes.")
        if len(self.indices) > MOST_PANELS:
            detail = f"This figure has at most {MOST_PANELS} panels, one for each index."
            raise refuse("/query/index", "too_much", detail)
        indices = [class_index(key) for key in self.indices]
        series = values_of_classes(
            store, self.project, self.filters, newest=self.query.limit, indices=indices
        )
        steps = _Steps(
            _Found(*names)
            for s in series.stacks
            for names in zip(s.ids, s.models, s.versions, s.verdicts, strict=True)
        )
        histories = [
            ClassHistory(index, steps.named, series.labels, series.of_classes(index))
            for index in indices
        ]
        return histories, self._about(store, steps)

    def _about(self, store: Store, steps: "_Steps") -> str:
        """Describe the evaluations."""
        given = (self.project, self.filters.model, self.filters.branch)
        shown = len(steps.found)
        number = plural(shown, "evaluation")
        if shown == self.query.limit and (total := store.count(self.project, self.filters)) > shown:
            number = f"the newest {shown:,} of {plural(total, 'evaluation')}"
        return f"{', '.join(filter(None, given))}: {number}"


class _Found(NamedTuple):
    """The metadata of a stored evaluation."""

    id: str
    model: str | None
    version: str | None
    verdict: str | None


class _Steps:
    """Stored evaluations, oldest first."""

    def __init__(self, found: Iterable[_Found]) -> None:
        self.found = sorted(set(found))
        self.place = {one.id: place for place, one in enumerate(self.found)}
        self.models = tuple(dict.fromkeys(one.model for one in self.found))

    @property
    def named(self) -> tuple[FigureStep, ...]:
        """The names of the steps: version or time, with the model if there are several."""
        return tuple(FigureStep(self._name(one), one.verdict) for one in self.found)

    def _name(self, one: _Found) -> str:
        version = one.version or f"{ids.created_at(one.id):%Y-%m-%d %H:%M}"
        return f"{one.model or _NO_MODEL} {version}" if len(self.models) > 1 else version


def _course(index: Index, model: str | None, found: Sequence[Point], steps: _Steps) -> Course:
    """Return the line of an index for one model."""
    own = [point for point in found if point.model == model]
    ends = [point.interval or (None, None) for point in own]
    numbers = [[point.value for point in own], *([pair[i] for pair in ends] for i in (0, 1))]
    several = len(steps.models) > 1
    return Course(
        f"{model or 'no model'} {index.name}" if several else index.name,
        np.array([steps.place[point.evaluation] for point in own], dtype=np.intp),
        *(np.array(column, dtype=np.float64) for column in numbers),
    )
