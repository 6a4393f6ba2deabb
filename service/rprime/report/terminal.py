"""Terminal: the report as rich renderables, and as plain text where it is piped."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from itertools import pairwise

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderResult
from rich.table import Table
from rich.text import Text

from rprime.core.quantities import plural
from rprime.report.changed_predictions import changed_predictions
from rprime.report.class_selection import ClassSelection, ordered_classes
from rprime.report.grouped_warnings import grouped_warnings
from rprime.report.measures import Change, ClassLine, Measure, Measures
from rprime.report.slices import slice_table
from rprime.report.subject import ReportSubject
from rprime.report.text import (
    JOINER,
    SECTIONS,
    bound,
    count,
    cut_text,
    decimal,
    explained,
    isolated,
    percent,
    shown,
    signed,
    span,
)
from rprime.report.verdicts import SIGNS, Tone, finding, headline, said, separate, summary

MOST_CLASSES = 20
MOST_RESULTS = 20
"""Rows of the tables, after which the others are counted."""
WIDTH = 120
"""Of plain text."""
WIDE = 115
"""From here on the table of overall values has all its columns."""
MOST_OF_A_NAME = 34
"""Characters of a column of names; longer ones are cut."""
GAP = 3
"""Between two columns."""
WIDTH_OF_ITEMS = 18
"""Of the sign and the number of items beside the name of a class, with the edges of the table."""
STYLES: dict[Tone, str] = {
    "good": "bold green",
    "bad": "bold red",
    "open": "bold yellow",
    "none": "bold",
}
_COMMAND = re.compile(r":(?=:)|#(?=#)")


@dataclass(frozen=True, eq=False)
class Terminal:
    """What a rich console prints, as wide as the console is.

    Names are shown as text, whatever markup or control characters they hold.
    """

    subject: ReportSubject

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Return the parts in their order."""
        measures = Measures(self.subject)
        yield from _verdict(self.subject)
        # From here on in the order of `SECTIONS`.
        yield from _results(self.subject)
        yield from _changed(self.subject)
        yield from _cautions(self.subject)
        yield from _headlines(measures, options.max_width)
        yield from _legend(measures)
        yield from _slices(self.subject)
        yield from _classes(measures, options.max_width)


def render_terminal(subject: ReportSubject, width: int = WIDTH) -> str:
    """Render as plain text, without any control sequence."""
    stream = StringIO()
    console = Console(
        file=stream, width=width, color_system=None, force_terminal=False, legacy_windows=False
    )
    console.print(Terminal(subject))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def _text(text: str, style: str = "") -> Text:
    """Show foreign text; a log of GitHub or Azure must not find a command of theirs in it."""
    harmless = _COMMAND.sub(rf"\g<0>{JOINER}", cut_text(shown(text)))
    return Text(isolated(harmless), style=style)


def _verdict(subject: ReportSubject) -> Iterator[Text]:
    heading = headline(subject.gate)
    classes = plural(len(subject.evaluation.labels), "class")
    opening = Text(f"{heading.sign} {heading.words}", style=STYLES[heading.tone])
    yield opening.append(f"  {subject.title}, {subject.size}, {classes}", style="not bold default")
    if subject.gate is not None:
        yield _text(summary(subject.gate), style="dim")


def _table(*columns: str, left: int = 1) -> Table:
    """Open a table whose first columns hold words and whose others hold numbers."""
    table = Table(box=SIMPLE_HEAD)
    for place, name in enumerate(columns):
        # Where there is little room names give way, never a digit of a number.
        if place < left:
            table.add_column(name, overflow="ellipsis", max_width=MOST_OF_A_NAME)
        else:
            table.add_column(name, overflow="ellipsis", justify="right", no_wrap=True)
    return table


def _results(subject: ReportSubject) -> Iterator[ConsoleRenderable]:
    """Show what does not pass, each result with its sentence below."""
    results = [result for result in separate(subject.gate) if result.effect != "pass"]
    if not results:
        return
    yield Text()
    for result in results[:MOST_RESULTS]:
        sign, tone = SIGNS[result.effect]
        line = Text(f"{sign} {finding(result)}: ", style=STYLES[tone])
        yield line.append_text(Text("", style="not bold default").append_text(_text(said(result))))
    yield from _more(len(results) - MOST_RESULTS)


def _headlines(measures: Measures, width: int) -> Iterator[ConsoleRenderable]:
    """Show the overall values; where there is little room, without what the change repeats."""
    if not measures.overall:
        return
    compared, wide = measures.compared, width >= WIDE
    confidence = percent(measures.subject.evaluation.options.confidence)
    marked = any(measure.marks for measure in measures.overall.values())
    columns = ["Index", "Value", *([""] if marked else [])]
    columns += [f"{confidence} interval"] if wide or not compared else []
    columns += ["Baseline"] if wide and compared else []
    columns += ["Change", f"{confidence} interval", ""] if compared else []
    table = _table(*columns)
    for measure in measures.overall.values():
        value = explained(measure.reason) if measure.value is None else decimal(measure.value)
        row: list[str | Text] = [measure.index.name, value, *([measure.marks] if marked else [])]
        row += [span(measure.low, measure.high)] if wide or not compared else []
        if (change := measure.change) is not None:
            row += [decimal(change.baseline)] if wide else []
            row += [signed(change.value), span(change.low, change.high)]
            row.append(Text(change.judged, style=_style(change)))
        table.add_row(*row)
    yield Text("\nOverall", style="bold")
    yield table


def _legend(measures: Measures) -> Iterator[Text]:
    """Explain the marks of overall values and of those of classes."""
    if legend := measures.legend(lambda label: _text(label).plain):
        yield Text("".join(f"  {line}\n" for line in legend), style="dim")


def _style(change: Change) -> str:
    return {"worse": STYLES["bad"], "better": STYLES["good"]}.get(change.judged, "dim")


def _classes(measures: Measures, width: int) -> Iterator[ConsoleRenderable]:
    """Show the classes: all in their order where they fit, else the worst ones.

    Indices that do not fit beside each other stand in further tables.
    """
    lines, order = ordered_classes(measures, ClassSelection(size=MOST_CLASSES))
    yield Text(f"Classes, {order}", style="bold")
    for part in _fitting(measures, lines[:MOST_CLASSES], width):
        table = _table("Class", measures.support_name, *measures.class_names[part])
        for line in lines[:MOST_CLASSES]:
            name = _text(line.label, STYLES["bad"] if line.failing else "")
            sign = Text("✗ " if line.failing else "  ", style=STYLES["bad"])
            cells = map(_cell, line.measures[part])
            table.add_row(sign.append_text(name), count(line.support), *cells)
        yield table
    yield from _more(max(len(lines) - MOST_CLASSES, 0) + measures.left_out)


def _fitting(measures: Measures, lines: list[ClassLine], width: int) -> list[slice]:
    """Divide the per-class indices into groups that fit beside the names of the classes."""
    values = 15 if measures.compared else 6
    labels = max((cell_len(line.label) for line in lines), default=0)
    room = width - min(labels, MOST_OF_A_NAME) - WIDTH_OF_ITEMS
    starts, used = [0], 0
    for place, name in enumerate(measures.class_names):
        used += max(cell_len(name), values) + GAP
        if used > room and place > starts[-1]:
            starts.append(place)
            used = max(cell_len(name), values) + GAP
    return [slice(*ends) for ends in pairwise([*starts, len(measures.class_names)])]


def _more(number: int) -> Iterator[Text]:
    if number > 0:
        yield Text(f"  ... and {number:,} more", style="dim")


def _slices(subject: ReportSubject) -> Iterator[ConsoleRenderable]:
    slices = slice_table(subject.evaluation)
    if slices is None:
        return
    table = _table(*slices.columns)
    for line in slices.weakest:
        table.add_row(_text(line.text), *line.numbers)
    yield Text(f"{SECTIONS['slices']}. {slices.note}", style="bold")
    yield table


def _cell(measure: Measure) -> Text:
    change = measure.change
    if change is None or change.value is None:
        return Text(decimal(measure.value))
    value = decimal(measure.value)
    if measure.value is None and change.baseline is not None:
        value = f"as {bound(change.baseline + change.value)}"
    return Text(f"{value} ").append(signed(change.value), style=_style(change))


def _changed(subject: ReportSubject) -> Iterator[ConsoleRenderable]:
    for name_table in changed_predictions(subject.comparison):
        table = _table(*name_table.names, *name_table.numbers, left=len(name_table.names))
        for labels, numbers in name_table.rows[:MOST_RESULTS]:
            table.add_row(*(_text(label or "unclassified") for label in labels), *numbers)
        yield Text(f"\n{name_table.title}", style="bold")
        if name_table.note:
            yield Text(name_table.note)
        if name_table.rows:
            yield table
        yield from _more(len(name_table.rows) - MOST_RESULTS)


def _cautions(subject: ReportSubject) -> Iterator[Text]:
    warnings = grouped_warnings(subject)
    if warnings:
        yield Text(f"\n{SECTIONS['warnings']}", style="bold")
    for warning in warnings:
        text = Text("", style="not bold default")
        if warning.labels:
            text.append(f"{warning.lead} ").append_text(Text(", ").join(map(_text, warning.labels)))
            text.append(f" and {warning.unnamed:,} more: " if warning.unnamed else ": ")
        text.append_text(_text(warning.text))
        line = Text("! ", style=STYLES["open"]).append_text(text)
        yield line.append(f"  [{warning.code}]", style="dim")
