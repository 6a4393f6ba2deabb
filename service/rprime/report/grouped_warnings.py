"""Warnings as the renderings show them: names of classes apart from the sentence."""

from dataclasses import dataclass

from rprime.core.warnings import CHECKS, Warning, lead  # noqa: A004 (its name)
from rprime.report.subject import ReportSubject
from rprime.report.text import shown

TEXTS = {check.code: check.text for check in CHECKS if check.scope == "class"}


@dataclass(frozen=True, slots=True)
class GroupedWarning:
    """One thing to know before a value is believed. All of it is fit to be shown.

    Parameters
    ----------
    lead
        What stands before the names of classes; empty without any.
    labels, unnamed
        The classes that are named, and how many more there are.
    text
        What holds for them, or for everything.
    """

    code: str
    lead: str
    labels: tuple[str, ...]
    unnamed: int
    text: str
    docs: str


def grouped_warnings(subject: ReportSubject) -> list[GroupedWarning]:
    """Return the warnings that the sentence of the gate does not repeat."""
    message = "" if subject.gate is None else subject.gate.message
    return [
        _grouped(warning)
        for warning in subject.evaluation.warnings
        if warning.detail not in message
    ]


def _grouped(warning: Warning) -> GroupedWarning:
    code, text = warning.code, TEXTS.get(warning.code)
    if text is None or not warning.classes:
        return GroupedWarning(code, "", (), 0, shown(warning.detail), warning.docs)
    labels = tuple(map(shown, warning.classes))
    more = warning.more or 0
    opening = lead(len(labels) + more)
    return GroupedWarning(code, opening, labels, more, text, warning.docs)
