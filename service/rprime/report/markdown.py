"""Markdown: for pull-request comments and job summaries, the verdict first."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import accumulate

from rich.cells import set_cell_size

from rprime.core.gates.results import Result
from rprime.core.quantities import plural
from rprime.report.changed_predictions import NameTable, changed_predictions
from rprime.report.class_selection import ClassSelection, ordered_classes
from rprime.report.grouped_warnings import GroupedWarning, grouped_warnings
from rprime.report.marks import Axis, Mark
from rprime.report.measures import Measure, Measures, counted_noun
from rprime.report.slices import shown_slice, slice_table
from rprime.report.subject import ReportSubject, population_text
from rprime.report.text import (
    ABSENT,
    JOINER,
    SECTIONS,
    address,
    count,
    cut_text,
    decimal,
    explained,
    isolated,
    percent,
    shortened,
    shown,
    signed,
    span,
)
from rprime.report.verdicts import (
    SIGNS,
    averaged,
    axes_of_rules,
    compared,
    finding,
    headline,
    judged,
    mark_of_result,
    separate,
    summary,
)
from rprime.schemas.gate import Gate

MOST_LINES = 12
WIDTH, NAMES = 40, 28
"""Characters of the axis, and of what stands before it."""


def text_chart(gate: Gate | None) -> str:
    """Draw the results that have a value as a block of code of Markdown; empty where none has.

    They stand by their rules; of many, those that decide are kept.
    """
    results = separate(gate)
    axes = axes_of_rules(results)
    marks = [(r, mark) for r in results if (mark := mark_of_result(r, axes[r.rule]))]
    if not marks:
        return ""
    kept = marks[:MOST_LINES]
    lines = []
    for rule, axis in axes.items():
        group = [_line(result, mark) for result, mark in kept if result.rule == rule]
        lines += [_head(rule, axis), *group] if group else []
    if left := len(marks) - len(kept):
        lines.append(f"… and {plural(left, 'result')} more")
    level = next((result.level for result, _ in kept if result.level is not None), None)
    limits = "" if level is None else f", ├─┤ its limits, each with {percent(level)} confidence"
    legend = f"● value or change{limits}, ┆ what the rule allows"
    return "\n".join(["```text", *lines, "", legend, "```"])


def _head(rule: str, axis: Axis) -> str:
    low, high = axis.ends
    return f"{_name(f'▸ {shown(rule)}')} {low}{high:>{WIDTH - len(low)}}"


def _line(result: Result, mark: Mark) -> str:
    # Something of ours begins each line, so that no name can end the block or command GitLab.
    name = _name(f"  {SIGNS[result.effect][0]} {judged(result) or 'overall'}")
    return f"{name} {_track(mark)}".rstrip()


def _name(text: str) -> str:
    text = shortened(text, NAMES)
    return isolated(set_cell_size(text, NAMES))


def _track(mark: Mark) -> str:
    cells = [" "] * WIDTH
    start, end, at = map(_position, (mark.start, mark.start + mark.width, mark.at))
    if mark.width:
        cells[start : end + 1] = "─" * (end + 1 - start)
        cells[start], cells[end] = "├", "┤"
    if mark.against is not None:
        limit = _position(mark.against)
        cells[limit] = "┆" if cells[limit] == " " else "┼"
    cells[at] = "●"
    return "".join(cells)


def _position(share: float) -> int:
    """Return the character at a place in percent of the axis."""
    return min(round(share / 100 * (WIDTH - 1)), WIDTH - 1)


MOST_CHARACTERS = 60_000
"""Of the whole text: a comment on GitHub holds 65 536."""
MOST_OF_RULES = 12_000
"""Of those that fail, and again of those that warn."""
MOST_OPEN = 5
"""Of the checks that warn: more are folded."""
MOST_OF_OVERALL = 8_000
MOST_OF_CLASSES = 16_000
MOST_OF_LIST = 3_000
MOST_OF_CAUTIONS = 5_000
MARKER = "rprime:report"

_PLAIN = re.compile(r"\w(?:[\w ./+(),-]*[\w)])?")
_SIGN = re.compile(r"[!-/:-@\[-`{-~]")
_SIGN_OF_TEXT = re.compile(r"[!\"#$&'*<>@\[\\\]^_`{|}~]|[.:](?=[^\s\d])")
_REFERENCE = re.compile(r"[@#!~%$&^:](?=[\w/\"'])|\.(?=[^\W\d])|\bGH-(?=\d)")
"""What GitHub or GitLab read as a mention, an issue, an emoji or an address."""

Cells = tuple[str, ...]


def render_markdown(subject: ReportSubject) -> str:
    """Render as Markdown of at most 60 000 characters; what was left out is said.

    Names may hold anything: none becomes a tag, a link, a mention or a reference.
    """
    measures = Measures(subject)
    about = population_text(subject.evaluation)
    blocks = [
        marker(subject),
        f"Only the items of {code(subject.slice)}." if subject.slice else "",
        f"The numbers are {prose(about)}." if about else "",
        *_verdict(subject),
        text_chart(subject.gate),
        # From here on in the order of `SECTIONS`.
        _results(subject),
        *map(_table_of_names, changed_predictions(subject.comparison)),
        _cautions(subject),
        _headlines(measures),
        _slices(subject),
        _classes(measures),
        _confusions(measures),
        _origin(subject),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def marker(subject: ReportSubject) -> str:
    """Return the hidden marker that finds an earlier comment on the same model."""
    names = [subject.origin.project or "", subject.origin.model or ""]
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:12]
    return f"<!-- {MARKER} {digest} -->"


def code(name: str) -> str:
    """Write any name as code.

    Notes
    -----
    A code span holds what has no meaning in a table or a link. All else goes into a `code` tag
    as character references, which no parser of Markdown takes for structure.
    """
    name = shown(name)
    if _PLAIN.fullmatch(name):
        return f"`{isolated(name)}`"
    return f"<code>{isolated(_escaped(name, _SIGN))}</code>"


def prose(text: str) -> str:
    """Write any foreign text as text, within a line."""
    return isolated(_escaped(cut_text(shown(text)), _SIGN_OF_TEXT))


def _escaped(text: str, signs: re.Pattern[str]) -> str:
    # References are looked for in the finished text, too, where a joiner still parts them.
    parted = _REFERENCE.sub(rf"\g<0>{JOINER}", text)
    return signs.sub(lambda sign: f"&#{ord(sign[0])};", parted)


def _verdict(subject: ReportSubject) -> Iterator[str]:
    opening = headline(subject.gate)
    yield f"## {opening.sign} {opening.words}"
    if subject.gate is not None:
        yield prose(summary(subject.gate))
    if subject.comparison is not None:
        baseline = "the baseline" if subject.baseline is None else code(subject.baseline)
        before, after = compared(subject.comparison)
        yield f"{before} {baseline}{after}."


def _results(subject: ReportSubject) -> str:
    """Show the checks that fail and those that warn, these folded where they are many."""
    results = separate(subject.gate)
    failed = [_result(result) for result in results if result.effect == "fail"]
    warned = [_result(result) for result in results if result.effect == "warn"]
    title = plural(len(warned), "check") + " with a warning"
    head = ("Rule", "Class", "Finding", "What was found")
    failing, warning = (
        draw_table(head, "llll", rows, MOST_OF_RULES, "result") for rows in (failed, warned)
    )
    blocks = [f"### Failing rules\n\n{failing}"] if failed else []
    if len(warned) > MOST_OPEN:
        blocks.append(_folded(title, warning))
    elif warned:
        blocks.append(f"### {title}\n\n{warning}")
    return "\n\n".join(blocks)


def _result(result: Result) -> Cells:
    """Return a row, in whose sentence the class is code."""
    label = result.class_
    about = [] if label is None else [code(label)]
    about += [code(shown_slice(result.slice))] if result.slice else []
    before, quoted, after = result.message.partition(f"`{label}`")
    message = prose(before)
    if quoted:
        message += prose(quoted) if label is None else code(label)
        message += prose(after)
    where = ", ".join(about) or prose(averaged(result)) or "overall"
    return code(result.rule), where, finding(result), message


def _headlines(measures: Measures) -> str:
    confidence = percent(measures.subject.evaluation.options.confidence)
    head: Cells = ("Index", "Value", f"{confidence} interval")
    if measures.compared:
        head = (*head, "Baseline", "Change", f"{confidence} interval of the change", "")
    rows = []
    for measure in measures.overall.values():
        value, change = f"**{decimal(measure.value)}**{measure.marks}", measure.change
        value = explained(measure.reason) if measure.value is None else value
        row = [measure.index.name, value, span(measure.low, measure.high)]
        if change is not None:
            row += [decimal(change.baseline), signed(change.value), span(change.low, change.high)]
            row += [explained(change.reason) if change.value is None else change.judged]
        elif measures.compared:
            row += [ABSENT, ABSENT, ABSENT, ""]
        rows.append(tuple(row))
    table = draw_table(head, "lrrrrrl", rows, MOST_OF_OVERALL, "index")
    return "\n\n".join(["### Overall", table, *measures.legend(code)])


def _classes(measures: Measures) -> str:
    lines, order = ordered_classes(measures, ClassSelection(size=len(measures.labels)))
    head = ("Class", measures.support_name, *measures.class_names)
    rows = []
    for line in lines:
        name = f"✗ {code(line.label)}" if line.failing else code(line.label)
        rows.append((name, count(line.support), *map(_cell, line.measures)))
    if measures.left_out:
        order = f"{order}, and {plural(measures.left_out, 'class')} not shown"
    about = "In brackets the change; bold where it is a clear difference.\n\n"
    note = about if measures.compared else ""
    table = draw_table(head, "l" + "r" * len(head), rows, MOST_OF_CLASSES, "class")
    return _folded(f"{plural(len(lines), 'class')}, {order}", f"{note}{table}")


def _slices(subject: ReportSubject) -> str:
    slices = slice_table(subject.evaluation)
    if slices is None:
        return ""
    name, *numbers = slices.columns
    rows = [((line.text,), line.numbers) for line in slices.weakest]
    table = NameTable(SECTIONS["slices"], slices.note, (name,), tuple(numbers), rows, noun="slice")
    return _table_of_names(table)


def _cell(measure: Measure) -> str:
    value, change = decimal(measure.value), measure.change
    if change is None or change.value is None:
        return value
    moved = signed(change.value)
    return f"{value} (**{moved}**)" if change.demonstrated else f"{value} ({moved})"


def _table_of_names(name_table: NameTable) -> str:
    align = "l" * len(name_table.names) + "r" * len(name_table.numbers)
    rows = (
        (*("unclassified" if label is None else code(label) for label in labels), *numbers)
        for labels, numbers in name_table.rows
    )
    head = (*name_table.names, *name_table.numbers)
    table = draw_table(head, align, rows, MOST_OF_LIST, name_table.noun) if name_table.rows else ""
    return _folded(name_table.title, "\n\n".join(filter(None, (name_table.note, table))))


def _confusions(measures: Measures) -> str:
    rows = [
        ((true, predicted), (count(number), decimal(share)))
        for true, predicted, number, share in measures.confusions()
    ]
    names, numbers = (
        ("True class", "Predicted as"),
        (counted_noun(measures.subject.evaluation.table), "Share of the class"),
    )
    name_table = NameTable("Largest confusions", "", names, numbers, rows, noun="confusion")
    return _table_of_names(name_table) if rows else ""


def _cautions(subject: ReportSubject) -> str:
    warnings = grouped_warnings(subject)
    if not warnings:
        return ""
    kept, note = _fitting(map(_caution, warnings), MOST_OF_CAUTIONS, "warning")
    title = f"{SECTIONS['warnings']}: {plural(len(warnings), 'warning')}"
    return _folded(title, "\n".join(kept + note))


def _caution(warning: GroupedWarning) -> str:
    more = f" and {warning.unnamed:,} more" if warning.unnamed else ""
    named = (
        f"{warning.lead} {', '.join(map(code, warning.labels))}{more}: " if warning.labels else ""
    )
    return f"* {named}{prose(warning.text)} <sub>`{warning.code}`</sub>"


def _origin(subject: ReportSubject) -> str:
    parts = [f"{name} {code(value)}" for name, value in subject.provenance.items()]
    parts.append(subject.size)
    parts.append(f"rprime {subject.engine_version}")
    links = {"report": address(subject.link), "run": address(subject.source)}
    parts += [f"[{name}](<{link}>)" for name, link in links.items() if link]
    return f"<sub>{' · '.join(parts)}</sub>"


def _folded(title: str, body: str) -> str:
    return f"<details>\n<summary>{title}</summary>\n\n{body}\n\n</details>"


def draw_table(head: Cells, align: str, rows: Iterable[Cells], most: int, noun: str) -> str:
    """Draw a table of at most so many characters; l and r align its columns."""
    rules = tuple({"l": ":--", "r": "--:"}[side] for side in align[: len(head)])
    opening, lines = (
        [f"| {' | '.join(cells)} |" for cells in part] for part in ((head, rules), rows)
    )
    kept, note = _fitting(lines, most, noun)
    return "\n".join([*opening, *kept, *([""] if note else []), *note])


def _fitting(lines: Iterable[str], most: int, noun: str) -> tuple[list[str], list[str]]:
    """Take lines from the front while they fit; and, if some do not, a line that says so."""
    every = list(lines)
    ends = accumulate(len(line) + 1 for line in every)
    kept = sum(1 for end in ends if end <= most)
    left_out = plural(len(every) - kept, noun)
    note = f"{left_out} more left out, for a comment holds only so much."
    return every[:kept], [note] if kept < len(every) else []
