"""Markdown: for pull-request comments and job summaries, the verdict first."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import accumulate

from rprime.core.gates.rules import Effect
from rprime.report.changed_predictions import changed_predictions
from rprime.report.class_selection import ClassSelection, ordered_classes
from rprime.report.decimals import ABSENT, count, decimal, percent, plural, signed, span
from rprime.report.grouped_warnings import GroupedWarning, grouped_warnings
from rprime.report.measures import ClassLine, Measure, Measures
from rprime.report.names import JOINER, address, clipped, isolated, shown
from rprime.report.population import population_text
from rprime.report.reasons import explained
from rprime.report.sections import SECTIONS, in_order
from rprime.report.slices import named, slice_table
from rprime.report.subject import ReportSubject
from rprime.report.text_chart import text_chart
from rprime.report.verdicts import compared, finding, headline, separate, summary
from rprime.schemas.gate import Result

MOST_CHARACTERS = 60_000
"""Of the whole text: a comment on GitHub holds 65 536."""
MOST_OF_RULES = 12_000
"""Of those that fail, and again of those that warn."""
MOST_OPEN = 5
"""Of the checks that warn: more are folded."""
MOST_OF_CLASSES = 20_000
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

    Parameters
    ----------
    subject
        Its names may hold anything: none becomes a tag, a link, a mention or a reference.
    """
    measures = Measures(subject)
    sections = {
        "gate": _results(subject),
        "changes": "\n\n".join(_movements(subject)),
        "warnings": _cautions(subject),
        "overall": _headlines(measures),
        "slices": _slices(subject),
        "classes": _classes(measures),
        "confusion": _confusions(measures),
    }
    about = population_text(subject.evaluation)
    first = f"The numbers are {prose(about)}." if about else ""
    only = f"Only the items of {code(subject.slice)}." if subject.slice else ""
    opening = [marker(subject), only, first, *_verdict(subject), text_chart(subject.gate)]
    blocks = [*opening, *in_order(sections), _origin(subject)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def marker(subject: ReportSubject) -> str:
    """Return the hidden marker that finds an earlier comment on the same model."""
    names = [subject.project or "", subject.model or ""]
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:12]
    return f"<!-- {MARKER} {digest} -->"


def code(name: str) -> str:
    """Write a name as code, whatever it holds.

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
    """Write foreign text as text, within a line, whatever it holds."""
    return isolated(_escaped(clipped(shown(text)), _SIGN_OF_TEXT))


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
    failed, warned = _with_effect(subject, "fail"), _with_effect(subject, "warn")
    title = plural(len(warned), "check") + " with a warning"
    blocks = [f"### Failing rules\n\n{_found(failed)}"] if failed else []
    if len(warned) > MOST_OPEN:
        blocks.append(_folded(title, _found(warned)))
    elif warned:
        blocks.append(f"### {title}\n\n{_found(warned)}")
    return "\n\n".join(blocks)


def _with_effect(subject: ReportSubject, effect: Effect) -> list[Cells]:
    results = () if subject.gate is None else subject.gate.results
    return [
        (code(r.rule), _about(r), finding(r), _message(r.message, r.class_))
        for r in separate(results)
        if r.effect == effect
    ]


def _about(result: Result) -> str:
    parts = [] if result.class_ is None else [code(result.class_)]
    parts += [code(named(result.slice))] if result.slice else []
    return ", ".join(parts) or "overall"


def _found(rows: list[Cells]) -> str:
    head = ("Rule", "Class", "Finding", "What was found")
    return draw_table(head, "llll", rows, MOST_OF_RULES, "result")


def _message(message: str, label: str | None) -> str:
    """Write a sentence, the class in it as code."""
    before, named, after = message.partition(f"`{label}`")
    if label is None or not named:
        return prose(message)
    return f"{prose(before)}{code(label)}{prose(after)}"


def _headlines(measures: Measures) -> str:
    confidence = percent(measures.subject.evaluation.options.confidence)
    head: Cells = ("Index", "Value", f"{confidence} interval")
    if measures.changes is not None:
        head = (*head, "Baseline", "Change", f"{confidence} interval of the change", "")
    compared = measures.changes is not None
    rows = (_headline(measure, compared=compared) for measure in measures.headlines)
    table = draw_table(head, "lrrrrrl", rows, MOST_OF_LIST, "index")
    return "\n\n".join(["### Overall", table, *measures.legend(code)])


def _headline(measure: Measure, *, compared: bool) -> Cells:
    row: Cells = (measure.index.name, _value(measure), span(measure.low, measure.high))
    if not compared:
        return row
    change = measure.change
    if change is None:
        return (*row, ABSENT, ABSENT, ABSENT, "")
    moved = (decimal(change.baseline), signed(change.value), span(change.low, change.high))
    return (*row, *moved, change.judged if change.value is not None else explained(change.reason))


def _value(measure: Measure) -> str:
    return (
        f"**{decimal(measure.value)}**{measure.marks}"
        if measure.value is not None
        else explained(measure.reason)
    )


def _classes(measures: Measures) -> str:
    lines, order = ordered_classes(measures, ClassSelection(size=len(measures.labels)))
    compared = measures.changes is not None
    head = ("Class", "Items", *measures.class_names)
    rows = map(_class_row, lines)
    if measures.left_out:
        order = f"{order}, and {plural(measures.left_out, 'class')} not shown"
    note = "In brackets the change; bold where it is a clear difference.\n\n" if compared else ""
    table = draw_table(head, "l" + "r" * len(head), rows, MOST_OF_CLASSES, "class")
    return _folded(f"{plural(len(lines), 'class')}, {order}", f"{note}{table}")


def _slices(subject: ReportSubject) -> str:
    found = slice_table(subject.evaluation)
    if found is None:
        return ""
    rows = ((code(line.text), *line.numbers) for line in found.weakest)
    table = draw_table(found.columns, "lrrrrrr", rows, MOST_OF_LIST, "slice")
    return _folded(SECTIONS["slices"], f"{found.note}\n\n{table}")


def _class_row(line: ClassLine) -> Cells:
    name = f"✗ {code(line.label)}" if line.failing else code(line.label)
    return (name, count(line.support), *(_cell(measure) for measure in line.measures))


def _cell(measure: Measure) -> str:
    value, change = decimal(measure.value), measure.change
    if change is None or change.value is None:
        return value
    moved = signed(change.value)
    return f"{value} (**{moved}**)" if change.demonstrated else f"{value} ({moved})"


def _movements(subject: ReportSubject) -> Iterator[str]:
    for found in changed_predictions(subject.comparison):
        head = (*found.names, *found.numbers)
        align = "l" * len(found.names) + "r" * len(found.numbers)
        rows = ((*map(_named, labels), *numbers) for labels, numbers in found.rows)
        table = draw_table(head, align, rows, MOST_OF_LIST, "row") if found.rows else ""
        yield _folded(found.title, "\n\n".join(filter(None, (found.note, table))))


def _named(label: str | None, otherwise: str = "unclassified") -> str:
    return otherwise if label is None else code(label)


def _confusions(measures: Measures) -> str:
    confusions = list(measures.confusions())
    if not confusions:
        return ""
    head = ("True class", "Predicted as", "Items", "Share of the class")
    rows = (
        (code(one.true), code(one.predicted), count(one.items), decimal(one.share))
        for one in confusions
    )
    return _folded("Largest confusions", draw_table(head, "llrr", rows, MOST_OF_LIST, "confusion"))


def _cautions(subject: ReportSubject) -> str:
    found = grouped_warnings(subject)
    if not found:
        return ""
    kept, left_out = _fitting(
        [_caution(grouped_warning) for grouped_warning in found], MOST_OF_CAUTIONS
    )
    kept += _left_out(left_out, "warning")
    title = f"{SECTIONS['warnings']}: {plural(len(found), 'warning')}"
    return _folded(title, "\n".join(kept))


def _caution(grouped_warning: GroupedWarning) -> str:
    named = "" if grouped_warning.label is None else code(grouped_warning.label)
    after = "" if grouped_warning.label is None else prose(grouped_warning.after)
    others = ", ".join(code(label) for label in grouped_warning.others)
    more = f" and {grouped_warning.unnamed:,} more" if grouped_warning.unnamed else ""
    same = f" The same holds for {others}{more}." if others or more else ""
    sentence = f"{prose(grouped_warning.before)}{named}{after}{same}"
    return f"* {sentence} <sub>`{grouped_warning.code}`</sub>"


def _origin(subject: ReportSubject) -> str:
    parts = [f"{name} {code(value)}" for name, value in subject.provenance.items()]
    parts.append(f"{count(subject.items)} items")
    parts.append(f"rprime {subject.engine_version}")
    links = {"report": address(subject.link), "run": address(subject.source)}
    parts += [f"[{name}](<{link}>)" for name, link in links.items() if link]
    return f"<sub>{' · '.join(parts)}</sub>"


def _folded(title: str, body: str) -> str:
    return f"<details>\n<summary>{title}</summary>\n\n{body}\n\n</details>"


def draw_table(head: Cells, align: str, rows: Iterable[Cells], most: int, noun: str) -> str:
    """Draw a table of at most so many characters; l and r align its columns."""
    rules = {"l": ":--", "r": "--:"}
    opening = [_row(head), _row(tuple(rules[side] for side in align[: len(head)]))]
    kept, left_out = _fitting([_row(cells) for cells in rows], most)
    note = _left_out(left_out, noun)
    return "\n".join([*opening, *kept, *([""] if note else []), *note])


def _row(cells: Cells) -> str:
    return f"| {' | '.join(cells)} |"


def _fitting(lines: list[str], most: int) -> tuple[list[str], int]:
    """Take lines from the front while they fit; and how many do not."""
    ends = accumulate(len(line) + 1 for line in lines)
    kept = sum(1 for end in ends if end <= most)
    return lines[:kept], len(lines) - kept


def _left_out(number: int, noun: str) -> list[str]:
    if not number:
        return []
    return [f"{plural(number, noun)} more left out, for a comment holds only so much."]
