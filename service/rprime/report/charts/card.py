"""Card: the verdict, what changed, and the classes that decide it, in one picture to hand on."""

from rprime.report.answer import answer
from rprime.report.charts.axes import shown_class
from rprime.report.charts.confusion import about
from rprime.report.charts.dots import key_of, panels_of, plot_dots, stacked
from rprime.report.charts.drawing import TEXT, Drawing, Shape, Text, moved
from rprime.report.charts.sheet import Canvas, Picture, draw, wrapped
from rprime.report.class_charts import ClassChart
from rprime.report.measures import Measures
from rprime.report.subject import ReportSubject
from rprime.report.text import decimal, span
from rprime.report.verdicts import headline

MOST_CLASSES = 6
_INDICES = ("recall", "precision", "f1")
_OVERALL = ("r_prime", "macro_f1", "kappa")
_LINE = 24.0


def draw_card(subject: ReportSubject, canvas: Canvas) -> bytes:
    """Draw the verdict as the title, then sentences, values, and the classes that decide it."""
    verdict = headline(subject.gate)
    measures = Measures(subject)
    indices = tuple(i for i in measures.class_indices if i.key in _INDICES)
    chart = ClassChart.of(measures, indices).as_in_table(subject)
    kept = chart.named(chart.labels[:MOST_CLASSES])
    number = f"{len(kept.labels)} of {kept.total:,} classes"

    def plot(width: float) -> Drawing:
        shapes, top = list[Shape](), 4.0
        for words in filter(None, (answer(subject.comparison), _values(measures))):
            for line in wrapped(words, width, TEXT):
                top += _LINE
                shapes.append(Text(0, top - 6, line, size=TEXT))
            top += 8
        names = [shown_class(label) for label in kept.labels]
        panels = panels_of(kept, subject)
        worse = any("bad" in panel.tones for panel in panels)
        baseline = shown_class(subject.baseline or "baseline") if kept.compared else ""
        key = key_of(
            subject.evaluation.options.confidence, intervals=True, baseline=baseline, worse=worse
        )
        dots = stacked([plot_dots(names, panels, width, [{}] * len(names))], key, width)
        return Drawing(width, top + 12 + dots.height, [*shapes, *moved(dots.shapes, 0, top + 12)])

    title = (
        f"{verdict.words}: {shown_class(subject.title)}"
        if subject.gate
        else shown_class(subject.title)
    )
    return draw(Picture(title, about(subject), plot, (f"{number}: {chart.order}",)), canvas)


def _values(measures: Measures) -> str:
    """Say the headline values with their intervals."""
    values = [measures.overall[key] for key in _OVERALL if key in measures.overall]
    return "; ".join(
        f"{m.index.name} {decimal(m.value)}{'' if m.low is None else f' {span(m.low, m.high)}'}"
        for m in values
        if m.value is not None
    )
