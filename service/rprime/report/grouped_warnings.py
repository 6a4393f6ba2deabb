"""Grouped warnings: those of one kind are said once for all their classes."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from rprime.core.warnings import CHECKS, Warning  # noqa: A004 (its name)
from rprime.report.names import shown
from rprime.report.subject import ReportSubject

TEXTS = {check.code: check.text for check in CHECKS}
PLACE = "{label}"
MOST_NAMED = 12
"""Classes named for one warning; the others are counted."""


@dataclass(frozen=True, slots=True)
class GroupedWarning:
    """One thing to know before a value is believed: a sentence around a class, and its source.

    All that is said is fit to be shown.
    """

    code: str
    before: str
    label: str | None
    """None for a sentence about everything, which stands in `before`."""
    after: str
    others: tuple[str, ...]
    """Further classes that the same holds for, as far as they are named."""
    unnamed: int
    """How many more there are."""
    source: str


def grouped_warnings(subject: ReportSubject) -> list[GroupedWarning]:
    """Return the warnings that the sentence of the gate does not repeat, grouped by code."""
    said = "" if subject.gate is None else subject.gate.message
    warnings = [warning for warning in subject.evaluation.warnings if warning.detail not in said]
    grouped = groupby(warnings, key=lambda warning: warning.code)
    return [one for code, group in grouped for one in _group(code, list(group))]


def _group(code: str, warnings: list[Warning]) -> Iterable[GroupedWarning]:
    template = TEXTS.get(code, "")
    if PLACE not in template:
        return [GroupedWarning(code, shown(w.detail), None, "", (), 0, w.source) for w in warnings]
    before, after = template.split(PLACE, 1)
    found = (_named(w.detail, before, after) for w in warnings)
    labels = [shown(label) for label in found if label is not None]
    # A last warning without a name says how many more there are.
    more = sum(int("".join(filter(str.isdecimal, w.detail)) or 0) for w in warnings[len(labels) :])
    named, rest = labels[: MOST_NAMED + 1], labels[MOST_NAMED + 1 :]
    if not named:
        return []
    unnamed = len(rest) + more
    source = warnings[0].source
    return [GroupedWarning(code, before, named[0], after, tuple(named[1:]), unnamed, source)]


def _named(detail: str, before: str, after: str) -> str | None:
    """Take the class out of a sentence; None where it is not the sentence about one class."""
    if not (detail.startswith(before) and detail.endswith(after)):
        return None
    return detail[len(before) : len(detail) - len(after)]
