"""A kind of rule, a policy and a verdict are rows of a table, and nothing else is asked for."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import rprime
from rprime.core.comparison.alignment import Side
from rprime.core.gates import kinds
from rprime.core.gates.kinds import RULE_KINDS, VERDICTS, RuleKind, VerdictCode
from rprime.core.gates.results import Result
from rprime.core.gates.rules import Gate, Rule, check_gate, mistakes
from tests.core.gate_cases import gate_of, judged, tabled, waiver

LOSS = replace(RULE_KINDS["max_drop"], name="max_loss", at_zero="max_loss: 0 asks for a gain.")


@pytest.fixture
def with_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULE_KINDS, "max_loss", LOSS)


def loss(limit: float, index: str = "accuracy") -> Gate:
    return gate_of(Rule(kind="max_loss", limit=limit, index=index))


@pytest.mark.usefixtures("with_loss")
def test_a_row_decides_the_sign_of_waivers_and_the_sentence() -> None:
    before, after = (tabled([[right, 1000 - right], [50, 950]], "t") for right in (950, 850))
    rules = replace(loss(0.02), waivers=(waiver(rule="accuracy.max_loss", ceiling=0.2),))
    result = judged(rules, after, before)
    assert [r.verdict for r in result.results] == ["waived"]
    failed = judged(loss(0.02), after, before)
    assert failed.verdict == "fail"
    assert failed.results[0].message.endswith(", more than the 0.02 allowed.")


@pytest.mark.usefixtures("with_loss")
def test_a_row_decides_which_limits_are_mistakes() -> None:
    def codes(gate: Gate) -> list[str]:
        return [mistake.code for mistake in mistakes(gate)]

    check_gate(loss(0.02))
    assert codes(loss(0.02, index="error_rate")) == ["use_max_gain"]
    assert codes(loss(0.0)) == ["needs_superiority"]
    assert codes(loss(-0.1)) == codes(loss(1.0)) == ["out_of_range"]


def test_a_row_is_a_member_of_requests_and_of_the_contract() -> None:
    code = """
import json, sys
from dataclasses import replace
from rprime.core.gates import kinds
loss = replace(kinds.RULE_KINDS["max_drop"], name="max_loss")
kinds.RULE_KINDS["max_loss"] = loss
import rprime
from rprime.schemas.gate import Gates
schema = json.dumps(Gates.model_json_schema())
report = rprime.evaluate(
    confusion_matrix=[[80, 20], [10, 90]],
    baseline={"confusion_matrix": [[95, 5], [2, 98]]},
    gates={"rules": [{"index": "accuracy", "max_loss": 0.02}]},
)
print(json.dumps([report.verdict, report.gate.results[0].kind, "max_loss" in schema]))
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert json.loads(answer.stdout) == ["fail", "max_loss", True]


def test_a_row_without_a_column_is_an_error_at_import() -> None:
    columns = {field.name for field in fields(RuleKind)}
    assert all(field.default is field.default_factory for field in fields(RuleKind))
    for column in columns:
        members = {name: getattr(LOSS, name) for name in columns - {column}}
        with pytest.raises(TypeError, match=column):
            RuleKind(**members)


def test_every_verdict_has_its_row() -> None:
    assert set(VERDICTS) == set(VerdictCode) - {VerdictCode.by_test}
    assert set(kinds.EFFECT_CHOICES) == {
        "undecided",
        "no_baseline",
        "not_comparable",
        "undefined",
        "suspect",
    }


NAMES = {*RULE_KINDS, *kinds.POLICIES}
SOURCE = Path(rprime.__file__).parent


def test_no_other_module_asks_for_a_kind_by_its_name() -> None:
    """Comparisons with the name of a kind or a policy stand in the table alone."""
    places = []
    for path in SOURCE.rglob("*.py"):
        # Readers of what earlier versions stored are frozen.
        if path.name in {"kinds.py", "documents.py"} or "migrations" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                names = {
                    leaf.value
                    for part in (node.left, *node.comparators)
                    for leaf in ast.walk(part)
                    if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)
                }
                if names & NAMES:
                    places.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert places == []


def test_a_rule_that_suits_no_direction_is_turned_into_one_that_does() -> None:
    """`min_gain` of `error_rate` led to `max_drop`, and that one back."""
    for name, kind in RULE_KINDS.items():
        for direction, (target, _) in kind.turned_into.items():
            assert direction not in RULE_KINDS[target].turned_into, (name, target)


@pytest.mark.parametrize(
    ("rate", "verdict"), [(0.05, "pass"), (0.2, "fail"), (0.1, "inconclusive")]
)
def test_min_drop_demands_that_an_error_has_become_rarer(rate: float, verdict: str) -> None:
    def table(wrong: float) -> Side:
        items = round(1000 * wrong)
        return tabled([[1000 - items, items], [items, 1000 - items]], "t")

    rule = Rule(kind="min_drop", limit=0.0, index="error_rate")
    assert judged(gate_of(rule), table(rate), table(0.1)).verdict == verdict


ITEMS = 2000
Rates = tuple[float, float]
QUANTITIES: dict[str, Callable[[Rates, Rates], float]] = {
    "value": lambda now, _: sum(now) / 2,
    "drop": lambda now, before: (sum(before) - sum(now)) / 2,
    "gain": lambda now, before: (sum(now) - sum(before)) / 2,
    "gap": lambda now, _: max(now) - min(now),
    "change": lambda now, before: abs(sum(now) - sum(before)) / 2,
}
"""What a kind of rule bounds, by its name behind `min_` or `max_`; from rates of two slices."""
RATES: tuple[Rates, ...] = ((0.5, 0.5), (0.5, 0.7), (0.7, 0.7), (0.7, 0.9), (0.9, 0.9))


def index_of(kind: str) -> str:
    """Return an index whose best end suits a kind."""
    return "error_rate" if "high" in RULE_KINDS[kind].turned_into else "accuracy"


def predictions(rates: Rates, index: str) -> list[int]:
    """Predictions for true labels 0 that give the index that value in each slice."""
    inside, outside = (0, 1) if index == "accuracy" else (1, 0)
    return [inside if i < rate * ITEMS else outside for rate in rates for i in range(ITEMS)]


def only_result(kind: str, limit: float, now: Rates, before: Rates, **gate: object) -> Result:
    index = index_of(kind)
    rule: dict[str, object] = {"id": "r", "index": index, kind: limit}
    if RULE_KINDS[kind].between_slices:
        rule["slices"] = "region"
    report = rprime.evaluate(
        y_true=[0] * 2 * ITEMS,
        y_pred=predictions(now, index),
        labels=[0, 1],
        slices={"region": np.repeat(["a", "b"], ITEMS).tolist()},
        baseline={"y_pred": predictions(before, index)},
        gates={"rules": [rule], "results": "all", **gate},
    )
    assert report.gate is not None
    (result,) = report.gate.results
    return result


@pytest.mark.parametrize("kind", RULE_KINDS)
def test_a_row_decides_what_its_name_says(kind: str) -> None:
    """The verdict, the sentence and a waiver follow from the meaning of the name alone."""
    bound, quantity = kind.split("_")
    verdicts = set()
    for now, before in product(RATES, RATES):
        value = QUANTITIES[quantity](now, before)
        limit = 0.75 if quantity == "value" else 0.15
        holds = value > limit if bound == "min" else value < limit
        result = only_result(kind, limit, now, before)
        assert result.verdict == ("pass" if holds else "fail"), (now, before)
        check_sentence(result.message, kind, value, limit, (sum(now) - sum(before)) / 2)
        verdicts.add(result.verdict)
    assert verdicts == {"pass", "fail"}


def check_sentence(message: str, kind: str, value: float, limit: float, change: float) -> None:
    """Compare each claim of a sentence with the numbers that it is about."""
    claims = {
        r" dropped by": change < 0,
        r" rose by": change > 0,
        r" did not change": change == 0,
        rf"above the {limit} (required|allowed)": value > limit,
        rf"below the {limit} (required|allowed)": value < limit,
        rf", more than the {limit} allowed": value > limit,
        rf"a drop of more than the {limit} allowed is ruled out": change > -limit,
        rf"a rise of more than the {limit} allowed is ruled out": change < limit,
        rf"a change of more than the {limit} allowed is ruled out": abs(change) < limit,
        rf"a gain of more than {limit} is shown": change > limit,
        rf"a drop of more than {limit} is shown": change < -limit,
        rf"but a gain of more than {limit} is required": change < limit,
        rf"but a drop of more than {limit} is required": change > -limit,
    }
    made = [claim for claim in claims if re.search(claim, message)]
    assert len(made) == (2 if RULE_KINDS[kind].compares else 1), message
    assert all(claims[claim] for claim in made), message


@pytest.mark.parametrize("kind", RULE_KINDS)
def test_the_question_and_the_milder_limit_follow_from_the_name(kind: str) -> None:
    (bound, quantity), row = kind.split("_"), RULE_KINDS[kind]
    side, need = ("above", "required") if bound == "min" else ("below", "allowed")
    verb = {"drop": "dropped", "gain": "rose", "change": "changed"}.get(quantity)
    asks = f"{verb} by more than" if verb else f"is {side}"
    assert row.words.question == f"{asks} the {{limit}} {need}"
    assert row.words_at_zero is None or row.words_at_zero.question == verb
    sizes = ("lower", "higher") if quantity == "value" else ("smaller", "larger")
    assert row.milder == f"a {sizes[bound == 'max']} limit"


@pytest.mark.parametrize("kind", RULE_KINDS)
def test_a_waiver_covers_what_is_not_worse_than_its_ceiling(kind: str) -> None:
    bound, quantity = kind.split("_")
    limit = 0.75 if quantity == "value" else 0.15
    for now, before in product(RATES, RATES):
        value = QUANTITIES[quantity](now, before)
        if (value > limit) == (bound == "min") or (quantity != "value" and value < 0):
            continue
        for ceiling in (value - 0.02, value + 0.02):
            if not 0 <= ceiling < 1:
                continue
            waived = {"rule": "r", "ceiling": ceiling, "expires": "2999-01-01"}
            waivers = [waived | {"reason": "relabelled", "by": "ana"}]
            result = only_result(kind, limit, now, before, waivers=waivers)
            covered = ceiling <= value if bound == "min" else ceiling >= value
            assert result.verdict == ("waived" if covered else "fail"), (now, before, ceiling)


@pytest.mark.parametrize("kind", RULE_KINDS)
def test_a_row_names_the_direction_that_it_forbids(kind: str) -> None:
    """A rule forbids low numbers if it bounds them from below, or a drop of them from above.

    One about the size of a change forbids both.
    """
    bound, quantity = kind.split("_")
    row, size = RULE_KINDS[kind], quantity == "change"
    low = (bound == "min") != (quantity == "drop")
    assert row.guards_below is (low or size)
    assert row.guards_above is (not low or size)
    direction = "change" if size else "drop" if low else "rise"
    for words in (row.words, row.words_at_zero):
        assert words is None or words.direction == direction
    assert row.compares is (quantity in {"drop", "gain", "change"})
    assert row.between_slices is (quantity == "gap")
