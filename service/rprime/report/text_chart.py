"""Text chart: the results of a gate drawn with characters, where no picture can be shown."""

from rich.cells import set_cell_size

from rprime.core.gates.results import Result
from rprime.core.quantities import plural
from rprime.report.decimals import percent
from rprime.report.gate_results import SIGNS, axes_of_rules, mark_of_result
from rprime.report.marks import Axis, Mark
from rprime.report.names import isolated, shortened, shown
from rprime.report.verdicts import judged, separate
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
    start, end, at = map(_cell, (mark.start, mark.start + mark.width, mark.at))
    if mark.width:
        cells[start : end + 1] = "─" * (end + 1 - start)
        cells[start], cells[end] = "├", "┤"
    if mark.against is not None:
        limit = _cell(mark.against)
        cells[limit] = "┆" if cells[limit] == " " else "┼"
    cells[at] = "●"
    return "".join(cells)


def _cell(share: float) -> int:
    """Return the character at a place in percent of the axis."""
    return min(round(share / 100 * (WIDTH - 1)), WIDTH - 1)
