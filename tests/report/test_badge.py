"""Badges: what they say stands in the picture, its title and its JSON."""

import json
from xml.etree import ElementTree as ET

import pytest

from rprime.core.catalog import CLASS_INDICES, OVERALL_INDICES
from rprime.report.badge import (
    COLOURS,
    LABEL_COLOUR,
    Badge,
    render_badge,
    render_endpoint,
    value_badge,
    verdict_badge,
)
from rprime.report.verdicts import HEADLINES
from tests.report.report_subjects import HOSTILE, SURROGATE

SVG = "{http://www.w3.org/2000/svg}"


def read(badge: Badge) -> ET.Element:
    return ET.fromstring(render_badge(badge))  # noqa: S314 (what we wrote ourselves)


@pytest.mark.parametrize("verdict", HEADLINES)
def test_a_verdict_is_said_in_words_for_everyone(verdict: str | None) -> None:
    badge = verdict_badge(verdict)  # type: ignore[arg-type]  # a key of HEADLINES
    root = read(badge)
    title = root.find(f"{SVG}title")
    assert title is not None
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == title.text == f"rprime: {badge.message}"
    assert [text.text for text in root.iter(f"{SVG}text")] == ["rprime", badge.message]


def test_a_value_has_four_decimals_and_no_colour_of_judgement() -> None:
    assert value_badge(OVERALL_INDICES["accuracy"], 0.98064) == Badge("Accuracy", "0.9806", "none")
    assert value_badge(CLASS_INDICES["recall"], None, "cat").message == "undefined"
    assert value_badge(CLASS_INDICES["recall"], 1.0, "cat").label == "Recall of cat"


@pytest.mark.parametrize("name", [*HOSTILE, SURROGATE])
def test_hostile_names_are_text(name: str) -> None:
    badge = value_badge(CLASS_INDICES["recall"], 0.5, name)
    assert {e.tag for e in read(badge).iter()} == {
        f"{SVG}{tag}" for tag in ("svg", "title", "clipPath", "rect", "g", "text")
    }
    assert len(json.loads(render_endpoint(badge))["label"]) <= 40


def test_the_endpoint_is_what_shields_reads() -> None:
    endpoint = json.loads(render_endpoint(verdict_badge("fail")))
    assert endpoint["schemaVersion"] == 1
    assert (endpoint["label"], endpoint["message"]) == ("rprime", "failed")
    assert endpoint["isError"] is True


@pytest.mark.parametrize("colour", [*COLOURS.values(), LABEL_COLOUR])
def test_white_on_every_colour_can_be_read(colour: str) -> None:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    assert 1.05 / (luminance + 0.05) >= 6
