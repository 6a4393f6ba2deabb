"""Answers of the service: the JSON document, and a typed model of it."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from html import escape
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

import orjson
from pydantic import TypeAdapter

from rprime.client.values import Classes, ClassValues, Differences, Values
from rprime.core.gates.lint import LintReport
from rprime.core.gates.plan import PlanReport
from rprime.core.options import OptionsUsed
from rprime.core.quantities import plural
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.report.charts.sheet import Canvas, EvaluationFigure, form_of
from rprime.schemas import report as schema
from rprime.schemas.comparison import ChangedItems
from rprime.schemas.comparison import Comparison as ComparisonModel
from rprime.schemas.fields import members, repr_args
from rprime.schemas.slice_search import Detectable, FoundSlice, SliceSearchReport

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import ConsoleRenderable

    from rprime.application import EvaluationRequest
    from rprime.report.subject import ReportSubject
    from rprime.schemas.gate import Gate

Model = TypeVar("Model")
JudgedModel = TypeVar("JudgedModel", schema.Report, schema.CompareReport)


class Answer(Generic[Model]):
    """An answer as JSON, validated on first access.

    `request_id` is that of the request in the log of the service; None in-process.
    """

    kind: type[Model]

    def __init__(self, content: bytes, request_id: str | None = None) -> None:
        self.content = content
        self.request_id = request_id

    @classmethod
    def of(cls, content: bytes, headers: Mapping[str, str]) -> Self:
        """Read an answer."""
        return cls(content, headers.get("x-request-id"))

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value!r}" for name, value in repr_args(self.model))
        return f"<{type(self).__name__}: {facts}>"

    @cached_property
    def model(self) -> Model:
        """The whole answer as a model."""
        adapter: TypeAdapter[Model] = TypeAdapter(self.kind)
        return adapter.validate_json(self.content)

    def to_dict(self) -> dict[str, Any]:
        """Return the plain JSON document."""
        document: dict[str, Any] = orjson.loads(self.content)
        return document

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 (each member has its type)
        if name in members(self.kind):
            return getattr(self, name)
        raise KeyError(self._absent(name))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (each member has its type)
        if name in members(type(self).kind):
            return getattr(self.model, name)
        raise AttributeError(self._absent(name), name=name, obj=self)

    def _absent(self, name: str) -> str:
        """Say what may be meant by a name that is no member."""
        # Copying and unpickling read names with underscores before there is any content.
        near = [] if name.startswith("_") else self._near(name)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        return f"the {type(self).__name__} has no {name!r}{hint}"

    def _near(self, name: str) -> list[str]:
        return get_close_matches(name, dir(self), n=1)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *members(self.kind)})


class Judged(Answer[JudgedModel]):
    """An answer with an optional verdict."""

    gate: "Gate | None"
    changed_items: ChangedItems | None
    warnings: list[Warning]

    @property
    def verdict(self) -> str | None:
        """The verdict of the gate, such as pass or no_baseline; None without a gate."""
        gate = self.gate
        return None if gate is None else gate.verdict

    @property
    def judged(self) -> bool:
        """Whether the verdict rests on numbers; false without a gate."""
        return self.gate is not None and self.gate.judged

    @property
    def undecided(self) -> int:
        """The number of results that neither pass nor fail, nor are waived; 0 without a gate."""
        return 0 if self.gate is None else self.gate.undecided

    @cached_property
    def comparison(self) -> Differences | None:
        """The differences of the candidate from the baseline; None without a baseline."""
        comparison: ComparisonModel | None = self.model.comparison
        return None if comparison is None else Differences(comparison)


class Figure:
    """A figure: a notebook shows it, `save` writes it."""

    def __init__(self, draw: Callable[[Canvas], bytes], width: int) -> None:
        self._draw = draw
        self._width = width  # in pixels of CSS, 96 to an inch

    @cached_property
    def svg(self) -> str:
        """The figure as SVG."""
        return self._draw(Canvas("svg", self._width)).decode()

    def save(self, path: str | Path, *, scale: float = 2.0) -> None:
        """Write a file whose path ends in .svg, .png or .pdf.

        Parameters
        ----------
        scale
            Pixels of a PNG for each pixel of the width.
        """
        file = Path(path)
        file.write_bytes(self._draw(Canvas(form_of(file), self._width, scale)))

    def _repr_svg_(self) -> str:
        return self.svg


class Report(Judged[schema.Report]):
    """A report: `report.overall["r_prime"].value`, `report.per_class["cat"].recall.interval`."""

    kind = schema.Report
    report_version: int
    engine_version: str
    input_digest: str
    labels: list[str]
    counts: schema.Counts
    options: OptionsUsed
    top_confusions: list[schema.Confusion]
    notes: list[schema.Note]
    table: schema.Table | None
    id: str | None
    created_at: "datetime | None"
    links: dict[str, str] | None

    _evaluated: "EvaluationRequest | None" = None

    def keep(self, evaluation_request: "EvaluationRequest") -> None:
        """Keep what was evaluated, so that the report can be drawn without its table."""
        from rprime.application.report_subject import without_items  # noqa: PLC0415 - in-process

        self._evaluated = without_items(evaluation_request)

    @cached_property
    def overall(self) -> Values[schema.Value]:
        """The overall values by key, including averages."""
        return Values(self.model.overall.root)

    @cached_property
    def per_class(self) -> Classes[ClassValues]:
        """The values of each class, in the order of the labels."""
        classes = self.model.per_class.items()
        return Classes({label: ClassValues(values) for label, values in classes})

    def _near(self, name: str) -> list[str]:
        parts = {"overall": self.overall, "per_class[...]": next(iter(self.per_class.values()), ())}
        near = [f"{part}[{name!r}]" for part, values in parts.items() if name in values]
        return near or super()._near(name)

    def to_frame(
        self,
        library: Literal["pandas", "polars"] | ModuleType | None = None,
        *,
        of: Literal["per_class", "overall", "values"] = "per_class",
    ) -> Any:  # noqa: ANN401 (a data frame of a library that may not be here)
        """Return values as a data frame.

        Parameters
        ----------
        library
            Default: the imported library, else the installed one, pandas first.
        of
            "per_class": a row for each class and a column for each index; "overall": a row for
            each overall index, with its interval; "values": a row for each value of both.

        Raises
        ------
        ImportError
            If neither pandas nor polars is installed.
        """
        from rprime.client.values import frame  # noqa: PLC0415 - few reports become frames

        return frame(self.overall, self.per_class, library, of)

    def __repr__(self) -> str:
        classes = plural(len(self.labels), "class")
        verdict = f", {self.verdict}" if self.verdict else ""
        items = self.counts.items
        size = f"weight {self.counts.weight}" if items is None else plural(items, "item")
        return f"<Report: {classes}, {size}{verdict}>"

    def plot(
        self,
        figure: EvaluationFigure = "confusion",
        *,
        indices: Sequence[str] = (),
        width: int = 800,
    ) -> Figure:
        """Draw a figure, which a notebook shows and `save` writes.

        Parameters
        ----------
        figure
            What to draw; the last five are of scores.
        indices
            Keys of per-class indices to show; default: those that fit the figure.
        width
            In pixels of CSS, 96 to an inch.

        Raises
        ------
        ValueError
            If there is no such figure or index, or a service gave the report without its table.
        """
        from rprime.report.charts.evaluation import FIGURES, draw_figure  # noqa: PLC0415 - few reports are drawn

        if figure not in FIGURES:
            raise ValueError(f"there is no figure {figure!r}; there are {', '.join(FIGURES)}")
        compared = self.comparison is not None
        return Figure(draw_figure(figure, self.subject, tuple(indices), compared=compared), width)

    def subject(self, indices: tuple[str, ...] | None = None) -> "ReportSubject":
        """Return what the renderings of `rprime.report` show, with other indices by their keys.

        Raises
        ------
        ValueError
            If a service gave the report without its table.
        """
        from rprime.application import report_subject as made  # noqa: PLC0415 - few are drawn

        request = self._evaluated or made.request_of_report(self.model)
        return made.subject_of_report(self.model, made.evaluated(request, indices))

    def __rich__(self) -> "ConsoleRenderable":
        from rich.text import Text  # noqa: PLC0415 - rich takes a while

        from rprime.report.terminal import Terminal  # noqa: PLC0415 - as above

        try:
            return Terminal(self.subject())
        except ValueError as error:
            return Text(f"{self!r}: {error}")

    def _repr_html_(self) -> str:
        from rprime.report.html import render_frame  # noqa: PLC0415 - only for notebooks

        try:
            return render_frame(self.subject())
        except ValueError as error:
            return f"<p>{escape(repr(self))}: {error}</p>"


class Comparison(Judged[schema.CompareReport]):
    """A comparison: `report.comparison.overall["accuracy"].interval`, `report.verdict`."""

    kind = schema.CompareReport
    engine_version: str

    def __repr__(self) -> str:
        verdict = f", {self.verdict}" if self.verdict else ""
        if (changes := self.comparison) is None:
            return f"<Comparison: no baseline{verdict}>"
        return f"<Comparison: {changes.comparability}, {changes.pairing or 'not paired'}{verdict}>"


class GatePlanReport(Answer[PlanReport]):
    """How many items a gate needs: `plan.for_passing`, `plan.for_finding`."""

    kind = PlanReport
    items: int
    for_passing: int | None
    for_finding: int | None
    for_width: int | None
    advice: list[str]


class GateLintReport(Answer[LintReport]):
    """How a gate would judge an unchanged model: `lint.false_fail_rate`."""

    kind = LintReport
    false_fail_rate: float
    inconclusive_rate: float
    advice: list[str]


class SliceSearch(Answer[SliceSearchReport]):
    """Which slices are weak: `[one.slice for one in found.slices if one.weak]`."""

    kind = SliceSearchReport
    slices: list[FoundSlice]
    detectable: list[Detectable]
