"""Annotations: commands that say what failed, and hold no other command."""

import re

import pytest

from rprime.report.annotations import command, render_annotations
from tests.report.report_subjects import (
    SUBJECTS,
    cifar,
    different,
    many,
    of_paper,
    passing_with_undecided,
    undecided,
)

COMMAND = re.compile(r"::(error|warning|notice) title=([^:,\n]*)::(.*)")


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_line_is_one_command(name: str) -> None:
    lines = render_annotations(SUBJECTS[name]()).splitlines()
    assert all(COMMAND.fullmatch(line) for line in lines)
    assert lines[-1].startswith("::notice ")


def test_what_fails_is_an_error_and_what_warns_a_warning() -> None:
    kinds = [line.split()[0] for line in render_annotations(cifar()).splitlines()]
    assert kinds == ["::error"] * 6 + ["::warning"] * 3 + ["::notice"]
    assert "::error" not in render_annotations(undecided())
    assert len(render_annotations(of_paper()).splitlines()) == 1


def test_a_comparison_that_could_not_be_made_is_one_error() -> None:
    first, *others = render_annotations(different()).splitlines()
    assert first.startswith("::error")
    assert "The test sets differ" in first
    assert [line.split()[0] for line in others] == ["::notice"]


def test_a_pass_names_what_is_undecided() -> None:
    notice = render_annotations(passing_with_undecided()).splitlines()[-1]
    assert "Gate passed, 1 result undecided. The gate passed, but undecided: recall" in notice


def test_no_more_than_github_shows_and_the_rest_is_counted() -> None:
    errors = [
        line for line in render_annotations(many()).splitlines() if line.startswith("::error")
    ]
    assert len(errors) <= 10


def test_messages_are_escaped() -> None:
    assert command("error", "a:b,c%", "50 % of\nx") == ("::error title=a%3Ab%2Cc%25::50 %25 of%0Ax")
