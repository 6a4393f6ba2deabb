"""Subjects of renderings: real evaluations, plain ones and such with hostile names."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cache

import numpy as np
import orjson

from rprime.core.comparison.alignment import Side
from rprime.core.comparison.compare import compare
from rprime.core.evaluate import evaluate
from rprime.core.gates.gate import run_gate
from rprime.core.gates.rules import Gate, Rule, Waiver
from rprime.core.options import Options
from rprime.core.selection import requested_keys
from rprime.core.table import ConfusionTable
from rprime.report.comparison import cells_document, comparison_document, render_gate
from rprime.report.subject import ReportSubject, read_comparison, read_gate
from rprime.schemas.provenance import OriginShown
from tests.core.comparison_sides import paper_side, side_of

TODAY = date(2026, 1, 1)
GATE = Gate(
    rules=(
        Rule(index="recall", kind="max_drop", limit=0.02, classes="all"),
        Rule(index="accuracy", kind="min_value", limit=0.86),
        Rule(index="macro_f1", kind="max_drop", limit=0.01),
    )
)
HOSTILE = (
    "<script>alert(1)</script>",
    "</style></svg></details><h1>x",
    "<img src=x onerror=alert(1)>",
    "<!-- c -->",
    "]]>",
    "a|b",
    "a\\",
    "a\\|b",
    "`x` ``y``",
    "**bold** _it_ ~~s~~",
    "[link](https://evil.example)",
    "![img](https://evil.example/x.png)",
    "https://evil.example/x",
    "www.evil.example",
    "user@example.com",
    "@octocat",
    "@org/team",
    "#123",
    "GH-12",
    "!7 %3 ~bug $1 &2",
    ":tada:",
    "=cmd()",
    "+1+1",
    "-1+1",
    "@SUM(1)",
    " =1",
    "::error::x",
    "##[add-mask]0",
    "##vso[task.setvariable]x",
    "%0A::set-output name=x::y",
    "{{7*7}}{% raw %}",
    "${x} $(x)",
    "[bold]x[/bold]",
    "\"quoted\" & 'single', comma; semicolon",
    "&lt;b&gt; &#64;x",
    "שלום עולם",
    "العربية abc 123",
    "日本語",
    "é́",
    "# heading",
    "- item",
    "1. item",
    "x" * 128,
    # What the service refuses, but a library call could hold:
    "tab\tand\nline\r\n::warning::x",
    "\x1b[31mred\x1b[0m",
    "nul\x00\x7f",
    "\u202eoverride\u2066\u200b",
    "\ufdd0",
    "\ufffe",
)
SURROGATE = "\ud800"
"""No JSON has it, so no class of a comparison is called so."""


def of_paper(name: str = "table4_mnist_lenet5", options: Options | None = None) -> ReportSubject:
    side = paper_side(name)
    return ReportSubject(
        evaluation=evaluate(side.table, side.labels, options or Options()),
        engine_version="0.1.0",
        origin=OriginShown(project="digits", model="lenet5", version="1.4.0"),
    )


def judged(
    candidate: Side, baseline: Side, gate: Gate = GATE, options: Options | None = None
) -> ReportSubject:
    options = options or Options()
    # A gate may judge more than the report shows.
    compared = options if options.indices else Options(families=("core",))
    comparison = compare(candidate, baseline, compared)
    verdict = run_gate(gate, candidate, comparison, compared, today=TODAY)
    evaluation = evaluate(candidate.table, candidate.labels, options)
    warnings = evaluation.warnings + comparison.warnings + verdict.warnings
    source = {"requested": {"version": "1.9.3"}, "resolved": "ev_122", "why": "As named."}
    return ReportSubject(
        evaluation=replace(evaluation, warnings=warnings),
        comparison=read_comparison(
            orjson.dumps(
                comparison_document(comparison, source, reported=requested_keys(options))
                | cells_document(comparison)
            )
        ),
        gate=read_gate(render_gate(verdict, {})),
        engine_version="0.1.0",
        baseline="main (1.9.3)",
        origin=OriginShown(project="cifar10", model="resnet18", version="2.0.0"),
        id="ev_123",
        created_at=datetime(2026, 1, 1, 12, tzinfo=UTC),
        link="https://rprime.example/ui/evaluations/ev_123",
        source="https://ci.example/runs/42",
    )


def cifar(gate: Gate = GATE) -> ReportSubject:
    """The paper's comparison the wrong way round, so that classes got worse."""
    before, after = (
        replace(paper_side(f"table8_cifar10_{when}"), test_set="t") for when in ("before", "after")
    )
    return judged(before, after, gate)


def of_items(labels: tuple[str, ...], n: int, *, gate: Gate = GATE) -> ReportSubject:
    """A candidate that is worse than its baseline on the same items."""
    k, rng = len(labels), np.random.default_rng(3)
    true = rng.integers(0, k, n)
    old = np.where(rng.random(n) < 0.8, true, rng.integers(0, k + 1, n))
    new = np.where(rng.random(n) < 0.8, old, rng.integers(0, k + 1, n))
    return judged(side_of(true, new, k, labels=labels), side_of(true, old, k, labels=labels), gate)


def hostile() -> ReportSubject:
    """Hostile names wherever a name can stand."""
    rule, label = HOSTILE[0], HOSTILE[1]
    waiver = Waiver(
        rule=rule, class_=label, ceiling=0.99, reason=HOSTILE[10], by="@octocat", expires=TODAY
    )
    strange = Rule(id=rule, index="precision", kind="max_drop", limit=0.02, classes="all")
    gate = Gate(rules=(*GATE.rules, strange), waivers=(waiver,))
    return replace(
        of_items(HOSTILE, 6_000, gate=gate),
        origin=OriginShown(
            project=HOSTILE[0],
            model=HOSTILE[5],
            version=HOSTILE[8],
            branch=HOSTILE[15],
            commit=HOSTILE[25],
        ),
        baseline=HOSTILE[11],
        id=SURROGATE,
        link="javascript:alert(1)",
        source="https://ci.example/'\"><script>",
    )


@cache
def many(k: int = 1_000) -> ReportSubject:
    """Many classes, made once for all tests: it takes seconds."""
    return of_items(tuple(f"class {i:04d}" for i in range(k)), 200 * k)


def empty() -> ReportSubject:
    """No items at all, and of the indices none that a report shows first."""
    options = Options(indices=("csi", "lift"))
    table = ConfusionTable.dense(np.zeros((2, 2)))
    return ReportSubject(evaluation=evaluate(table, ("a", "b"), options), engine_version="0.1.0")


def partial(labels: tuple[str, ...] = HOSTILE[:4], keys: tuple[str, ...] = ()) -> ReportSubject:
    """Unclassified items, and a last class without items and predictions; rules on kappa."""
    k = len(labels)
    counts = 50 * np.eye(k) + 5 * np.eye(k, k=1) + 5 * np.eye(k, k=-1)
    counts[:, -1] = counts[-1] = 0
    omitted = np.array([12.0] * (k - 1) + [0])
    table = ConfusionTable.dense(counts, omitted)
    options = Options(indices=keys or None)
    rules = (
        Rule(index="kappa", kind="min_value", limit=0.5),
        Rule(index="accuracy", kind="min_value", limit=0.5),
    )
    side = Side(labels=labels, table=table)
    verdict = run_gate(Gate(rules=rules), side, None, options, today=TODAY)
    return ReportSubject(
        evaluation=evaluate(table, labels, options),
        engine_version="0.1.0",
        gate=read_gate(render_gate(verdict, {})),
    )


def undecided() -> ReportSubject:
    """A gate that can neither pass nor fail, some of whose rules find nothing to compare."""
    side = paper_side("table4_mnist_lenet5")
    options = Options(families=("core",))
    rules = (
        Rule(index="accuracy", kind="max_drop", limit=0.01),
        Rule(index="recall", kind="min_value", limit=0.97, classes="all"),
        Rule(index="weighted_false_negative_rate", kind="max_value", limit=0.001, severity="warn"),
    )
    verdict = run_gate(Gate(rules=rules), side, None, options, today=TODAY)
    subject = of_paper()
    warnings = subject.evaluation.warnings + verdict.warnings
    evaluation = replace(subject.evaluation, warnings=warnings)
    return replace(subject, evaluation=evaluation, gate=read_gate(render_gate(verdict, {})))


def different() -> ReportSubject:
    """Two test sets that nobody may compare."""
    before, after = (paper_side(f"table8_cifar10_{when}") for when in ("before", "after"))
    drops = Gate(rules=tuple(rule for rule in GATE.rules if rule.traits.compares))
    return judged(replace(before, test_set="a"), replace(after, test_set="b"), drops)


def passing_with_undecided() -> ReportSubject:
    """A gate that passes although one class is undecided."""
    true = np.repeat([0, 1, 2, 3], [2_000, 40, 2_000, 2_000])
    worse = true.copy()
    worse[2_000] = 0
    rule = Rule(index="recall", kind="max_drop", limit=0.03, classes="all")
    return judged(side_of(true, worse, 4), side_of(true, true, 4), Gate(rules=(rule,)))


def renamed() -> ReportSubject:
    """One class has another name in the baseline, so some indices cannot be compared."""
    before, after = (paper_side(f"table8_cifar10_{when}") for when in ("before", "after"))
    labels = (*after.labels[:-1], "lorry")
    return judged(replace(before, test_set="t"), replace(after, labels=labels, test_set="t"))


SUBJECTS: dict[str, Callable[[], ReportSubject]] = {
    "paper": of_paper,
    "cifar": cifar,
    "hostile": hostile,
    "empty": empty,
    "undecided": undecided,
    "different": different,
    "renamed": renamed,
    "partial": partial,
    "passing_with_undecided": passing_with_undecided,
}
