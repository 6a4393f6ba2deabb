"""JUnit: valid, one case a rule and class, nothing that fails reads as green."""

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from rprime.report.junit import render_junit
from rprime.report.subject import ReportSubject
from rprime.schemas.gate import Gate
from tests.report.report_subjects import (
    HOSTILE,
    SUBJECTS,
    cifar,
    different,
    hostile,
    many,
    of_paper,
    passing_with_undecided,
    renamed,
    undecided,
)

SCHEMA = ET.fromstring(  # noqa: S314 (our own file)
    (Path(__file__).parents[1] / "reference" / "junit-10.xsd").read_text(encoding="utf-8")
)
XS = "{http://www.w3.org/2001/XMLSchema}"
ELEMENTS = {entry.attrib["name"]: entry for entry in SCHEMA.findall(f"{XS}element")}
PATTERNS = {
    entry.attrib["name"]: pattern.attrib["value"]
    for entry in SCHEMA.findall(f"{XS}simpleType")
    if (pattern := entry.find(f".//{XS}pattern")) is not None
}


def parsed(subject: ReportSubject) -> ET.Element:
    return ET.fromstring(render_junit(subject))  # noqa: S314 (what we wrote ourselves)


def assert_valid(element: ET.Element) -> None:
    """Hold an element against its declaration: attributes, their patterns, and children."""
    declared = ELEMENTS[element.tag]
    attributes = {entry.attrib["name"]: entry.attrib for entry in declared.iter(f"{XS}attribute")}
    children = {
        entry.attrib["ref"] for entry in declared.iter(f"{XS}element") if "ref" in entry.attrib
    }
    required = {name for name, entry in attributes.items() if entry.get("use") == "required"}
    assert required <= element.attrib.keys() <= attributes.keys()
    for name, value in element.attrib.items():
        assert re.fullmatch(PATTERNS.get(attributes[name]["type"], "(?s:.*)"), value)
    for child in element:
        assert child.tag in children
        assert_valid(child)


@pytest.mark.parametrize("name", SUBJECTS)
def test_it_is_valid(name: str) -> None:
    root = parsed(SUBJECTS[name]())
    assert root.tag == "testsuites"
    assert_valid(root)


@pytest.mark.parametrize("name", SUBJECTS)
def test_counts_are_those_of_the_cases_and_names_are_unique(name: str) -> None:
    suite = parsed(SUBJECTS[name]()).find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    assert int(suite.attrib["tests"]) == len(cases) > 0
    for kind, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.attrib[kind]) == sum(case.find(tag) is not None for case in cases)
    assert len({(c.attrib["classname"], c.attrib["name"]) for c in cases}) == len(cases)


def outcomes(subject: ReportSubject) -> list[tuple[str, str | None]]:
    """Tag and message of what each case ended with."""
    endings: list[tuple[str, str | None]] = []
    for case in parsed(subject).iter("testcase"):
        end = next((e for e in case if e.tag in {"failure", "error", "skipped"}), None)
        endings.append(("passed", None) if end is None else (end.tag, end.attrib["message"]))
    return endings


def test_a_case_ends_as_its_result_does() -> None:
    for subject in (cifar(), hostile(), renamed()):
        gate = subject.gate
        assert gate is not None
        for result, (end, message) in zip(gate.results, outcomes(subject), strict=True):
            unjudged = result.verdict in {"not_comparable", "undefined"}
            fails = "error" if unjudged else "failure"
            assert end == {"fail": fails, "warn": "skipped", "pass": "passed"}[result.effect]
            assert message is None or result.class_ is not None or result.message in message


def test_a_comparison_that_could_not_be_made_is_one_error() -> None:
    subject = different()
    assert subject.gate is not None
    (end, message), *others = outcomes(subject)
    assert (end, message) == ("error", subject.gate.message)
    assert [end for end, _ in others if end != "passed"] == ["skipped"] * 11
    assert [end for end, _ in outcomes(undecided())][:2] == ["skipped", "skipped"]


def test_a_pass_names_what_is_undecided() -> None:
    root = parsed(passing_with_undecided())
    checks = root.find(".//property[@name='checks']")
    assert checks is not None
    assert "has too few items to pass alone: recall.max_drop of class" in checks.attrib["value"]


def test_what_only_warns_is_seen_as_a_warning() -> None:
    assert any(m and m.startswith("Warning: undecided") for _, m in outcomes(cifar()))
    assert any(m and m.startswith("Warning: fails, warns only") for _, m in outcomes(undecided()))


def test_without_rules_nothing_passes() -> None:
    gate = Gate(
        verdict="no_rules",
        judged=False,
        message="The gate has no rules, so nothing was judged.",
        alpha=0.05,
        look=1,
        max_looks=None,
        results=[],
    )
    for subject in (of_paper(), replace(of_paper(), gate=gate)):
        (outcome,) = outcomes(subject)
        assert outcome[0] == "skipped"


def test_twins_by_name_are_numbered() -> None:
    subject = cifar()
    assert subject.gate is not None
    first = subject.gate.results[0]
    named = f"{first.rule} [{first.class_}]"
    twins = [
        first,
        replace(first, rule=named, class_=None),
        replace(first, rule=f"{named} (2)", class_=None),
    ]
    gate = subject.gate.model_copy(update={"results": twins})
    root = parsed(replace(subject, gate=gate))
    names = [case.attrib["name"] for case in root.iter("testcase")]
    assert len(set(names)) == 3


def test_hostile_names_come_back_as_text() -> None:
    names = " ".join(case.attrib["name"] for case in parsed(hostile()).iter("testcase"))
    for label in HOSTILE[:43]:
        assert label in names
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202e]", names)


def test_a_thousand_classes_are_a_thousand_cases() -> None:
    root = parsed(many())
    assert root.attrib["tests"] == "1003"
