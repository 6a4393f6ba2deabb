"""Markdown: the verdict first, whole within its limit, and no name that does anything."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from rprime.report.markdown import MOST_CHARACTERS, code, marker, prose, render_markdown
from rprime.schemas.gate import Gate
from tests.report.report_subjects import (
    HOSTILE,
    SUBJECTS,
    SURROGATE,
    cifar,
    different,
    hostile,
    many,
    of_items,
    of_paper,
    passing_with_undecided,
    undecided,
)

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
OUR_TAGS = re.compile(
    r"</?(details|code|sub)>|<summary>[\w ,:]+</summary>|<!-- rprime:report [0-9a-f]{12} -->"
)
OUR_LINKS = {"https://rprime.example/ui/evaluations/ev_123", "https://ci.example/runs/42"}


def tokens(text: str) -> list[Token]:
    blocks = PARSER.parse(text)
    return [t for block in blocks for t in (block, *(block.children or []))]


def texts_outside_code(stream: list[Token]) -> str:
    """The text in which a site would look for mentions, references and addresses."""
    parts, within = [], False
    for token in stream:
        if token.type == "html_inline":
            within = token.content == "<code>" or (within and token.content != "</code>")
        elif token.type == "text" and not within:
            parts.append(token.content)
    return "\n".join(parts)


@pytest.mark.parametrize("name", SUBJECTS)
def test_nothing_but_our_own_tags_and_links_comes_out(name: str) -> None:
    stream = tokens(render_markdown(SUBJECTS[name]()))
    for token in stream:
        if token.type in {"html_inline", "html_block"}:
            assert OUR_TAGS.sub("", token.content).strip() == ""
        assert token.type != "image"
        if token.type == "link_open":
            assert token.attrs["href"] in OUR_LINKS
        assert token.type not in {"code_block", "blockquote_open", "s_open"}
    fences = [token for token in stream if token.type == "fence"]
    assert len(fences) <= 1
    for line in [line for fence in fences for line in fence.content.splitlines()]:
        assert not line or line.startswith(("▸ ", "  ✗ ", "  ? ", "  ✓ ", "… and ", "● value")), (
            line
        )


@pytest.mark.parametrize("name", SUBJECTS)
def test_nobody_is_mentioned_and_nothing_is_referred_to(name: str) -> None:
    text = texts_outside_code(tokens(render_markdown(SUBJECTS[name]())))
    assert not re.search(r"[@#!~$&^]\w|%\d|GH-\d|\w@\w|://|www\.\w|:\w+:", text)


def tables(stream: list[Token]) -> list[list[list[str]]]:
    """Tables as rows of the texts of their cells."""
    result: list[list[list[str]]] = []
    for token, following in pairwise(stream):
        if token.type == "table_open":
            result.append([])
        elif token.type == "tr_open":
            result[-1].append([])
        elif token.type in {"td_open", "th_open"}:
            result[-1][-1].append(following.content)
    return result


def test_no_name_breaks_out_of_its_cell() -> None:
    # A parser drops cells beyond those of the head, so the numbers must be where they belong.
    classes = next(
        table for table in tables(tokens(render_markdown(hostile()))) if table[0][1] == "Items"
    )
    assert len(classes) == len(HOSTILE) + 1
    for _, items, *values in classes[1:]:
        assert re.fullmatch(r"\d+", items)
        assert all(re.match(r"[\d.]{6} \(", value) for value in values)
        assert len(values) == 6


@pytest.mark.parametrize("name", [*HOSTILE, SURROGATE])
def test_a_name_is_one_piece_of_code_in_whatever_row(name: str) -> None:
    for text in (f"x {code(name)} y", f"| a | b |\n|--|--|\n| {code(name)} | 1 |"):
        html = PARSER.render(text)
        assert html.count("<code>") == html.count("</code>") == 1
        assert not re.search(r"<(?!/?(code|p|table|thead|tbody|tr|th|td)\b)", html)


@pytest.mark.parametrize("name", [*HOSTILE, SURROGATE])
def test_a_sentence_stays_a_sentence(name: str) -> None:
    html = PARSER.render(f"Said: {prose(name)}")
    assert re.fullmatch(r"<p>[^<]*</p>\n", html)


def test_right_to_left_names_are_isolated_and_others_are_not() -> None:
    assert code("שלום") == "`\u2068שלום\u2069`"
    assert code("ship") == "`ship`"


def test_the_verdict_comes_first_in_words() -> None:
    lines = render_markdown(cifar()).splitlines()
    assert lines[0].startswith("<!-- rprime:report ")
    assert lines[2] == "## ✗ Gate failed, 4 results undecided"
    assert lines[4].startswith("6 of 13 checks failed, 4 gave a warning, 3 passed.")
    assert "Gate not judged: no baseline" in render_markdown(undecided())
    assert "No gate was set" in render_markdown(of_paper())


def test_failing_rules_and_worst_classes_lead() -> None:
    text = render_markdown(cifar())
    titles = [
        "### Failing rules",
        "### 4 checks with a warning",
        "<summary>Cells that changed most",
        "<summary>Before you trust these numbers",
        "### Overall",
        "<summary>10 classes",
        "<summary>Largest confusions",
    ]
    assert [text.index(t) for t in titles] == sorted(text.index(t) for t in titles)
    classes = text[text.index("<summary>10 classes") :]
    assert classes.index("✗ `cat`") < classes.index("`bird`") < classes.index("`automobile`")
    assert "| R' | **0.8334** | [0.8260, 0.8406] | 0.8756 | −0.0422 |" in text


def test_without_a_baseline_classes_keep_their_order() -> None:
    text = render_markdown(of_paper())
    assert "in the order of the labels" in text
    assert [text.index(f"\n| `{i}` |") for i in range(10)] == sorted(
        text.index(f"\n| `{i}` |") for i in range(10)
    )


def test_a_thousand_long_names_stay_within_the_limit_and_it_says_what_is_left_out() -> None:
    names = tuple(f"{'<' * 120}{i:04d}" for i in range(1_000))
    text = render_markdown(of_items(names, 200_000))
    assert len(text) <= MOST_CHARACTERS
    assert re.search(r"\d+ classes more left out", text)
    assert re.search(r"[\d,]+ results more left out", text)
    assert text.rstrip().endswith("</sub>")
    assert text.count("<details>") == text.count("</details>")
    assert len(render_markdown(many())) <= MOST_CHARACTERS


def test_the_marker_is_that_of_the_model_whatever_the_version() -> None:
    subject = of_paper()
    later = subject.origin.model_copy(update={"version": "2"})
    other = subject.origin.model_copy(update={"model": "other"})
    assert marker(subject) == marker(replace(subject, origin=later))
    assert marker(subject) != marker(replace(subject, origin=other))
    assert re.fullmatch(r"<!-- rprime:report [0-9a-f]{12} -->", marker(hostile()))


def test_a_gate_without_rules_does_not_read_as_a_pass() -> None:
    gate = Gate(
        verdict="no_rules",
        judged=False,
        message="The gate has no rules, so nothing was judged.",
        alpha=0.05,
        look=1,
        max_looks=None,
        results=[],
    )
    text = render_markdown(replace(of_paper(), gate=gate))
    assert "Gate without rules: nothing was judged" in text
    assert "passed" not in text


def test_a_pass_names_what_is_undecided() -> None:
    text = render_markdown(passing_with_undecided())
    assert "## ✓ Gate passed, 1 result undecided" in text
    assert "has too few items to pass alone: recall" in text


def test_what_was_not_compared_says_so() -> None:
    text = render_markdown(different())
    assert "Not compared with `main (1.9.3)`: the test sets differ." in text
    assert "## ✗ Gate failed, but could not be judged" in text
    assert text.count("The test sets differ: both have") == 1
    assert "### Failing rules" not in text
    assert "Compared with `main (1.9.3)`, as two tables." in render_markdown(cifar())
