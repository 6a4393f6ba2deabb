"""Terminal: readable in a log, without control sequences, whatever the names are."""

import io
import re
import unicodedata

import numpy as np
import pytest
from rich.console import Console

from rprime.core.gates.rules import Gate
from rprime.core.options import Options
from rprime.report.terminal import Terminal, render_terminal
from tests.core.comparison_sides import side_of
from tests.report.report_subjects import (
    SUBJECTS,
    cifar,
    different,
    hostile,
    judged,
    many,
    of_items,
    of_paper,
    passing_with_undecided,
)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("name", SUBJECTS)
def test_plain_text_has_no_control_sequence_and_stays_within_the_width(
    name: str, width: int
) -> None:
    text = render_terminal(SUBJECTS[name](), width)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    for line in text.splitlines():
        assert sum(unicodedata.category(c) not in {"Cf", "Mn"} for c in line) <= width


def test_no_line_is_a_command_of_a_ci_system() -> None:
    text = render_terminal(hostile())
    assert not re.search(r"^\s*::", text, re.MULTILINE)
    assert "##[" not in text
    assert "##vso[" not in text


def test_markup_in_names_is_text() -> None:
    assert "[bold]x[/bold]" in render_terminal(hostile(), 200)


def test_the_verdict_comes_first_and_values_follow() -> None:
    text = render_terminal(cifar())
    assert text.startswith(
        "✗ Gate failed, 4 results undecided  resnet18 2.0.0, 10,000 items, 10 classes\n"
    )
    assert re.search(r"Accuracy +0\.8334 +\[0\.8260, 0\.8406\] +0\.8756 +−0\.0422", text)
    assert text.index("✗ cat") < text.index("  automobile")


def test_changed_predictions_are_shown() -> None:
    text = render_terminal(of_items(("cat", "dog"), 400))
    assert re.search(r"\d+ items changed: \d+ from right to wrong, \d+ from wrong to right", text)
    assert re.search(r"True class +Before +Now +Items", text)
    assert re.search(r"cat +cat +dog +\d+$", text, re.MULTILINE)


def test_without_items_the_cells_that_changed_are_shown() -> None:
    assert re.search(
        r"Cells that changed most\n\n +True class +Predicted as", render_terminal(cifar())
    )


def test_a_table_is_cut_to_the_worst_classes_and_says_so() -> None:
    text = render_terminal(many())
    assert "... and 980 more" in text
    assert len(text.splitlines()) < 140


def test_a_console_with_colours_gets_colours() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, color_system="standard", width=100)
    console.print(Terminal(cifar()))
    assert "\x1b[1;31m✗ Gate failed" in stream.getvalue()
    assert "\x1b" not in render_terminal(of_paper())


def test_a_comparison_that_could_not_be_made_is_one_sentence() -> None:
    text = render_terminal(different())
    assert text.startswith("✗ Gate failed, but could not be judged")
    assert text.count("not comparable") == 0
    assert text.count("The test sets differ: both have") == 1


def test_a_pass_names_what_is_undecided() -> None:
    text = render_terminal(passing_with_undecided())
    assert text.startswith("✓ Gate passed, 1 result undecided")
    assert "1 result has too few items to pass alone: recall.max_drop of class `1`." in text


def test_classes_that_lost_nothing_are_not_said_to_have_lost() -> None:
    labels = ("a", "b")
    old = side_of(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0]), 2, labels=labels)
    new = side_of(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), 2, labels=labels)
    assert "Classes, smallest gain of F1 first" in render_terminal(judged(new, old, Gate(rules=())))
    assert "Classes, clearest loss of F1 first" in render_terminal(judged(old, new, Gate(rules=())))


def test_a_change_of_a_precision_that_counts_as_0_names_the_value() -> None:
    true = np.array([0] * 5 + [1] * 5)
    new, old = (side_of(true, predicted, 2, labels=("a", "b")) for predicted in (true * 0, true))
    assert "as 0 −1.0000" in render_terminal(judged(new, old, Gate(rules=())), 120)


def test_a_changed_share_of_errors_is_neither_better_nor_worse_and_has_no_interval() -> None:
    true = np.array([0] * 50 + [1] * 50 + [2] * 50)
    wrong = np.array([1] * 20 + [0] * 30)
    old, new = true.copy(), true.copy()
    old[:20], old[50:55], new[:5], new[50:100] = 1, 0, 1, wrong
    candidate, baseline = (side_of(true, one, 3, labels=("a", "b", "c")) for one in (new, old))
    subject = judged(candidate, baseline, Gate(rules=()), Options(indices=("share_of_errors",)))
    plain = render_terminal(subject)
    # No table of overall indices without any.
    assert "Overall" not in plain
    assert "[" not in plain.split("Classes,")[1]
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, color_system="standard", width=100)
    console.print(Terminal(subject))
    shares = stream.getvalue().split("Classes,")[1]
    for change in ("\x1b[2m−0.6571\x1b[0m", "\x1b[2m+0.6571\x1b[0m"):
        assert change in shares
