"""OpenMetrics: the values as gauges, for a scraper or a pushed file."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import get_args

from rprime.core.gates.results import GateVerdict
from rprime.report.measures import Measure, MeasureColumns, Measures
from rprime.report.subject import ReportSubject
from rprime.report.text import fixed, shown

MOST_OF_CLASSES = 10_000
"""Values of classes: a thousand classes with the family `core` would be 32 000 series a version."""
PREFIX = "rprime_"
VERDICTS: tuple[GateVerdict, ...] = get_args(GateVerdict)
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})

Labels = Mapping[str, str]
Sample = tuple[str, float | None]
"""Its own labels and its value."""
Family = tuple[str, str, str, Iterable[Sample]]
"""Name, kind, explanation and samples."""


def render_openmetrics(subject: ReportSubject) -> str:
    """Render the values that exist; at most 10 000 of classes."""
    measures = Measures(subject)
    # Not the commit or the branch, which would begin a series anew at each run.
    labels = ("project", "model", "version", "slice")
    common = {name: value for name, value in subject.provenance.items() if name in labels}
    shared = _labelled(common)
    lines = [line for family in _families(measures, common) for line in _lines(shared, *family)]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _labelled(labels: Labels) -> str:
    texts = {name: shown(value).translate(_ESCAPES) for name, value in labels.items()}
    return ",".join(f'{name}="{text}"' for name, text in texts.items())


def _lines(
    shared: str, name: str, kind: str, explanation: str, samples: Iterable[Sample]
) -> Iterator[str]:
    """Write a family of samples; those without a value are left out."""
    lines = [(text, number) for text, number in samples if number is not None]
    if not lines:
        return
    yield f"# TYPE {PREFIX}{name} {kind}"
    yield f"# HELP {PREFIX}{name} {explanation}"
    suffix = "_info" if kind == "info" else ""
    for label, number in lines:
        labels = ",".join(part for part in (shared, label) if part)
        value = fixed(number) if kind == "gauge" else f"{number:.0f}"
        yield f"{PREFIX}{name}{suffix}{{{labels}}} {value}"


def _families(measures: Measures, common: Labels) -> Iterator[Family]:
    subject = measures.subject
    # Nothing, where only their weight is known.
    classes = measures.classes if subject.evaluation.table.is_numbered else ()
    items = [("", subject.items)] if subject.evaluation.table.is_numbered else []
    of_classes = [(_labelled({"class": line.label}), line.support) for line in classes]
    yield "items", "gauge", "Items evaluated.", items
    yield "class_items", "gauge", "Items of a class.", of_classes
    yield from _overall(measures)
    yield from _classes(measures)
    if subject.gate is not None:
        # A set of states, of which one holds.
        states = [
            (f'{PREFIX}verdict="{name}"', float(name == subject.gate.verdict)) for name in VERDICTS
        ]
        yield "verdict", "stateset", "Verdict of the gate.", states
        undecided = [("", subject.gate.undecided)]
        yield "undecided_results", "gauge", "Results that neither pass nor fail.", undecided
    provenance = {"engine_version": subject.engine_version, **subject.provenance}
    details = {name: value for name, value in provenance.items() if name not in common}
    yield "evaluation", "info", "Where the values come from.", [(_labelled(details), 1.0)]


def _overall(measures: Measures) -> Iterator[Family]:
    parts: dict[str, tuple[str, Callable[[Measure], float | None]]] = {
        "overall": ("Value of an overall index.", lambda m: m.value),
        "overall_low": ("Lower end of the interval of an overall index.", lambda m: m.low),
        "overall_high": ("Upper end of the interval of an overall index.", lambda m: m.high),
        "overall_change": (
            "Value of an overall index less that of the baseline.",
            lambda m: None if m.change is None else m.change.value,
        ),
    }
    for name, (explanation, read) in parts.items():
        samples = [(_labelled({"index": key}), read(m)) for key, m in measures.overall.items()]
        yield name, "gauge", explanation, samples
    classes = {
        "excluded": "Classes that an average leaves out.",
        "counted_as_zero": "Classes whose precision an average counts as 0.",
    }
    for kind, explanation in classes.items():
        remarks = ((key, r) for key, m in measures.overall.items() for r in m.remarks)
        numbers = [(_labelled({"index": key}), r.classes) for key, r in remarks if r.kind == kind]
        yield f"overall_{kind}_classes", "gauge", explanation, numbers


def _classes(measures: Measures) -> Iterator[Family]:
    labels = [_labelled({"class": label}) for label in measures.labels]
    fitting = MOST_OF_CLASSES // max(len(labels), 1)
    entries = measures.class_indices
    columns = measures.columns(entries[:fitting])
    yield "class", "gauge", "Value of an index of a class.", _values(columns, labels)
    left_out = max(len(entries) - fitting, 0) * len(labels) + len(entries) * measures.left_out
    text = "Values of classes that are left out here, for there are too many."
    yield "class_left_out", "gauge", text, [("", float(left_out))]


def _values(columns: MeasureColumns, labels: list[str]) -> Iterator[Sample]:
    for entry, values in zip(columns.indices, columns.values.tolist(), strict=True):
        suffix = f',index="{entry.key}"'
        for label, value in zip(labels, values, strict=True):
            yield label + suffix, None if value != value else value  # noqa: PLR0124 (NaN)
