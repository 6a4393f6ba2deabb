"""JUnit: one test case for each rule and class, for the test pages of CI systems."""

from collections import Counter
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from rprime.core.evaluate import Evaluation
from rprime.core.gates.results import Result
from rprime.report.grouped_warnings import grouped_warnings
from rprime.report.measures import remarks_of
from rprime.report.subject import ReportSubject
from rprime.report.text import shown
from rprime.report.verdicts import (
    COMMON_CAUSES,
    UNJUDGED_VERDICTS,
    finding,
    headline,
    judged,
    said,
    summary,
)
from rprime.schemas.gate import Gate

SUITE = "rprime.gate"


def render_junit(subject: ReportSubject) -> bytes:
    """Render the gate as JUnit XML; without rules, as one skipped case.

    Notes
    -----
    What fails the gate is a failure, or an error where it could not be judged, whatever was found:
    a report of an undefined value that reads as green would pass what the gate does not. What
    only warns, and what is open, is skipped, for that is all the format has between green and red.
    What a whole comparison lacks is said once, in a case of its own. The output of the suite has
    the warnings that are not about single classes.
    """
    gate = subject.gate
    if gate is not None and gate.results:
        cases = _unique([*_comparisons(gate), *map(_case, gate.results)])
    else:
        cases = [ET.Element("testcase", classname=SUITE, name="gate", time="0")]
        ET.SubElement(cases[0], "skipped", message=headline(gate).words)
    name = " ".join(filter(None, (SUITE, subject.origin.model, subject.origin.version)))
    tags = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    numbers = {"tests": str(len(cases))}
    for kind, tag in tags.items():
        numbers[kind] = str(sum(case.find(tag) is not None for case in cases))
    root = ET.Element("testsuites")
    suite = ET.SubElement(root, "testsuite", {"name": shown(name), **numbers, "time": "0"})
    del numbers["skipped"]
    root.attrib.update(numbers)
    if subject.created_at is not None:
        suite.set("timestamp", subject.created_at.isoformat(timespec="seconds"))
    suite.append(_properties(subject))
    suite.extend(cases)
    warnings = [warning for warning in grouped_warnings(subject) if not warning.labels]
    if warnings:
        lines = (f"Warning: {warning.text} [{warning.code}]" for warning in warnings)
        ET.SubElement(suite, "system-out").text = "\n".join(lines)
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _comparisons(gate: Gate) -> Iterator[ET.Element]:
    """Make a case for each comparison that could not be made; its results are skipped."""
    common = [result for result in gate.results if result.reason in COMMON_CAUSES]
    text = shown(gate.message)
    for against in dict.fromkeys(result.against for result in common):
        group = [result for result in common if result.against == against]
        case = ET.Element("testcase", classname=SUITE, name=f"comparison with {against}", time="0")
        if any(result.effect == "fail" for result in group):
            ET.SubElement(case, "error", type=group[0].verdict, message=text).text = text
        else:
            ET.SubElement(case, "skipped", message=f"Warning: {text}")
        yield case


def _case(result: Result) -> ET.Element:
    rule, of = shown(result.rule), judged(result)
    name = f"{rule} [{of}]" if of else rule
    case = ET.Element("testcase", classname=SUITE, name=name, time="0")
    message = said(result)
    if result.reason in COMMON_CAUSES:
        ET.SubElement(case, "skipped", message=f"{finding(result)}.")
        return case
    if result.effect == "fail":
        kind = "error" if result.verdict in UNJUDGED_VERDICTS else "failure"
        failure = ET.SubElement(case, kind, type=result.verdict, message=message)
        failure.text = f"{finding(result)}: {message}"
    elif result.effect == "warn" or result.verdict != "pass":
        prefix = "Warning: " if result.effect == "warn" else ""
        ET.SubElement(case, "skipped", message=f"{prefix}{finding(result)}. {message}")
    ET.SubElement(case, "system-out").text = message
    return case


def _unique(cases: list[ET.Element]) -> list[ET.Element]:
    """Tell apart by a number what has one name: a rule may be called like another and a class."""
    taken: Counter[str] = Counter(case.attrib["name"] for case in cases)
    seen: Counter[str] = Counter()
    for case in cases:
        name = case.attrib["name"]
        seen[name] += 1
        number = seen[name]
        while number > 1 and f"{name} ({number})" in taken:
            number += 1
        if number > 1:
            case.set("name", f"{name} ({number})")
            taken[case.attrib["name"]] += 1
            seen[name] = number
    return cases


def _universe(evaluation: Evaluation, keys: set[str | None]) -> dict[str, str]:
    """Say which indices of the rules are computed only on the classified items."""
    told = remarks_of(evaluation)
    texts = {
        entry.key: remark.text(shown)
        for entry in (*evaluation.selection.overall, *evaluation.selection.per_class)
        if entry.key in keys
        for remark in told(entry)
        if remark.kind == "classified"
    }
    return {"classified_only": f"{', '.join(texts)}: {min(texts.values())}"} if texts else {}


def _properties(subject: ReportSubject) -> ET.Element:
    properties = ET.Element("properties")
    values = {**subject.provenance, "engine_version": subject.engine_version}
    values["verdict"] = "no gate" if subject.gate is None else subject.gate.verdict
    if subject.gate is not None:
        values |= _universe(subject.evaluation, {result.index for result in subject.gate.results})
        values |= {"undecided": str(subject.gate.undecided), "checks": summary(subject.gate)}
    for name, value in values.items():
        ET.SubElement(properties, "property", name=name, value=shown(value))
    return properties
