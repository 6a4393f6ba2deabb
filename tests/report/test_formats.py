"""Formats: every rendering is declared once, takes every subject, and is quick."""

import pickle
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import typer

from rprime.cli import app
from rprime.core.gates.rules import Gate, Rule
from rprime.core.options import Options
from rprime.history.pending_evaluation import links_of
from rprime.report.annotations import render_annotations
from rprime.report.formats import BY_MEDIA_TYPE, BY_NAME, BY_SUFFIX, FORMATS, Format
from rprime.report.subject import ReportSubject
from rprime.report.terminal import render_terminal
from tests.report.report_subjects import SUBJECTS, cifar, many, of_items, of_paper

RENDERINGS: dict[str, Callable[[ReportSubject], str | bytes]] = {
    **{entry.name: entry.render for entry in FORMATS},
    "terminal": render_terminal,
    "annotations": render_annotations,
}


def test_names_media_types_and_suffixes_are_unique() -> None:
    assert len(BY_NAME) == len(BY_MEDIA_TYPE) == len(BY_SUFFIX) == len(FORMATS)
    assert {"md", "html", "csv", "junit.xml", "openmetrics.txt"} == set(BY_SUFFIX)


@pytest.mark.parametrize("entry", FORMATS, ids=lambda entry: entry.name)
def test_every_format_can_be_sent_to_a_worker(entry: Format) -> None:
    sent = pickle.loads(pickle.dumps(entry))  # noqa: S301 (made here)
    assert sent == entry
    assert sent.render(of_paper())


@pytest.mark.parametrize("name", ["evaluate", "compare"])
def test_every_format_is_an_option(name: str) -> None:
    group: Any = typer.main.get_command(app)
    options = {option for parameter in group.commands[name].params for option in parameter.opts}
    assert {f"--{entry.name}" for entry in FORMATS} <= options


def test_every_format_is_linked_in_a_stored_report() -> None:
    links = links_of("0", judged=False)
    for entry in FORMATS:
        assert links[entry.name] == f"/v1/evaluations/0/report.{entry.suffix}"


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("name", RENDERINGS)
def test_every_rendering_is_text_and_the_same_each_time(name: str, subject: str) -> None:
    first, second = (RENDERINGS[name](SUBJECTS[subject]()) for _ in range(2))
    assert first == second
    assert isinstance(first, str) or first.decode("utf-8")


@pytest.mark.parametrize("name", RENDERINGS)
def test_a_thousand_classes_are_rendered_at_once(name: str) -> None:
    subject = many()
    durations = []
    for _ in range(5):
        start = time.process_time()
        RENDERINGS[name](subject)
        durations.append(time.process_time() - start)
    # A tenth of a second where it was written: this finds a rendering that squares the classes.
    assert min(durations) < 1.0


@pytest.mark.parametrize("name", RENDERINGS)
@pytest.mark.parametrize(
    "options",
    [
        Options(intervals=False),
        Options(indices=("kappa",)),
        Options(indices=("recall",)),
        Options(indices=("lift",), undefined="zero"),
    ],
)
def test_a_selection_of_indices_is_enough(name: str, options: Options) -> None:
    assert RENDERINGS[name](of_paper(options=options))


@pytest.mark.parametrize("name", RENDERINGS)
def test_a_comparison_without_a_gate_is_enough(name: str) -> None:
    assert RENDERINGS[name](replace(cifar(), gate=None))


def test_the_whole_content_type_is_declared() -> None:
    assert BY_NAME["markdown"].content_type == "text/markdown; charset=utf-8"
    assert "version=1.0.0" in BY_NAME["openmetrics"].content_type


@pytest.mark.parametrize("name", ["terminal", "annotations", "markdown", "html"])
def test_what_decides_stands_in_a_list_that_is_cut(name: str) -> None:
    rules = (
        Rule(index="recall", kind="max_drop", limit=0.05, classes="all"),
        Rule(index="accuracy", kind="max_drop", limit=0.05),
    )
    subject = of_items(tuple(f"class {i:03d}" for i in range(60)), 600, gate=Gate(rules=rules))
    assert subject.gate is not None
    *classes, overall = (
        replace(result, effect="warn", verdict="undecided", suspect=False)
        for result in subject.gate.results
    )
    suspect = replace(overall, suspect=True, message="accuracy decides.")
    gate = subject.gate.model_copy(update={"results": [*classes, suspect]})
    rendering = RENDERINGS[name](replace(subject, gate=gate))
    assert "accuracy decides." in str(rendering)
