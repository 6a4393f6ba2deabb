"""Annotations: commands that say what failed, and hold no other command."""

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from rprime.report.annotations import Place, command, render_annotations
from rprime.report.subject import ReportSubject
from tests.report.report_subjects import (
    SUBJECTS,
    cifar,
    different,
    many,
    of_paper,
    passing_with_undecided,
    undecided,
)

COMMAND = re.compile(r"::(error|warning|notice) ((?:\w+=[^:,\n]*,)*)title=([^:,\n]*)::(.*)")


def commands(
    subject: ReportSubject, places: Mapping[str, Place] | None = None
) -> list[tuple[str, ...]]:
    """Kind, place, title and message of each command, still escaped."""
    lines = render_annotations(subject, places).splitlines()
    return [match.groups() for line in lines if (match := COMMAND.fullmatch(line))]


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_line_is_one_command(name: str) -> None:
    lines = render_annotations(SUBJECTS[name]()).splitlines()
    assert all(COMMAND.fullmatch(line) for line in lines)
    assert lines[-1].startswith("::notice ")


def test_what_fails_is_an_error_and_what_warns_a_warning() -> None:
    kinds = [line.split()[0] for line in render_annotations(cifar()).splitlines()]
    assert kinds == ["::error"] * 3 + ["::warning", "::notice"]
    assert "::error" not in render_annotations(undecided())
    assert len(render_annotations(of_paper()).splitlines()) == 1


def test_a_rule_has_one_annotation_with_a_sentence_for_each_result() -> None:
    subject = cifar()
    assert subject.gate is not None
    results = [result for result in subject.gate.results if result.rule == "recall.max_drop"]
    failing = [result for result in results if result.effect == "fail"]
    error = next(
        annotation for annotation in commands(subject) if annotation[2].startswith("recall")
    )
    assert error[2] == f"recall.max_drop%3A {len(failing)} results fail the gate"
    assert [sentence.split(" (")[0] for sentence in error[3].split("%0A")] == [
        result.message.split(" (")[0] for result in failing
    ]


def test_each_rule_stands_at_its_place() -> None:
    places: dict[str, Place] = {
        "recall.max_drop": {"file": "a,b:c/gates.yaml", "line": 3, "col": 5}
    }
    placed = [annotation for annotation in commands(cifar(), places) if annotation[1]]
    assert {annotation[2].partition("%3A")[0].partition("%2C")[0] for annotation in placed} == set(
        places
    )
    assert {annotation[1] for annotation in placed} == {"file=a%2Cb%3Ac/gates.yaml,line=3,col=5,"}


@pytest.mark.parametrize("verdict", ["undecided", "waived"])
def test_what_is_open_without_effect_is_a_notice_at_its_rule(verdict: str) -> None:
    subject = cifar()
    assert subject.gate is not None
    notice = replace(subject.gate.results[0], verdict=verdict, effect="pass")
    gate = subject.gate.model_copy(update={"results": [notice]})
    first, last = commands(replace(subject, gate=gate), {"recall.max_drop": {"line": 7}})
    assert first[:2] == ("notice", "line=7,")
    assert first[2].endswith(f"%3A {verdict}")
    assert last[:2] == ("notice", "")


def test_a_comparison_that_could_not_be_made_is_one_error() -> None:
    first, *others = render_annotations(different()).splitlines()
    assert first.startswith("::error")
    assert "The test sets differ" in first
    assert [line.split()[0] for line in others] == ["::notice"]


def test_a_pass_names_what_is_undecided() -> None:
    notice = render_annotations(passing_with_undecided()).splitlines()[-1]
    assert (
        "Gate passed, 1 result undecided. The gate passed; 1 result has too few items to" in notice
    )


def test_no_more_than_github_shows_and_the_rest_is_counted() -> None:
    subject = many()
    assert subject.gate is not None
    (result, *_) = (r for r in subject.gate.results if r.effect == "fail")
    results = [replace(result, rule=f"rule {n // 12}") for n in range(144)]
    gate = subject.gate.model_copy(update={"results": results})
    errors = [
        annotation
        for annotation in commands(replace(subject, gate=gate))
        if annotation[0] == "error"
    ]
    assert len(errors) == 10
    assert errors[0][3].endswith("%0A2 more; the report names them all.")
    assert errors[-1][2:] == ("and more", "3 rules more; the report names them all.")


def test_messages_are_escaped() -> None:
    assert command("error", "a:b,c%", "50 % of\nx") == ("::error title=a%3Ab%2Cc%25::50 %25 of%0Ax")
