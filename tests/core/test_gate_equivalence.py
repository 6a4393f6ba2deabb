"""`max_change`: a gate passes what is shown to be within a distance of the baseline, both ways."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

from rprime.core.arrays import Array
from rprime.core.comparison.difference import INFLUENCE, TANGO
from rprime.core.gates.evidence import Rows, evidence_of
from rprime.core.gates.kinds import VerdictCode
from rprime.core.gates.lint import lint
from rprime.core.gates.plan import plan_items
from rprime.core.gates.rules import Rule, mistakes
from rprime.core.gates.targets import index_differences
from rprime.core.gates.verdict import Decisions, Plan, RuleTests, decide
from rprime.core.options import Options
from tests.core.comparison_sides import names, sides_of
from tests.core.gate_cases import drop, gate_of, judged, predictions_of, tabled, waiver
from tests.core.test_gate_lint import even
from tests.core.test_gate_missing_items import ITEMS, TRUE, side
from tests.core.test_gate_missing_items import judged as judged_by_id

RIGHT = 0.9
"""The accuracy of the baseline."""


def change(limit: float, index: str = "accuracy", **fields: object) -> Rule:
    fields = {"classes": None} | fields
    return drop(limit, kind="max_change", index=index, **fields)


def joint(n: int, gains: Array | int, losses: Array | int) -> Array:
    """Joint tables of two equal classes, so many items of the first changed, (..., 2, 2, 2)."""
    gains, losses = np.broadcast_arrays(gains, losses)
    tables = np.zeros((*gains.shape, 2, 2, 2), dtype=np.int64)
    wrong = round(n / 2 * (1 - RIGHT))
    tables[..., 1, 1, 1], tables[..., 1, 0, 0] = n // 2 - wrong, wrong
    tables[..., 0, 1, 1], tables[..., 0, 1, 0] = wrong - gains, gains
    tables[..., 0, 0, 0], tables[..., 0, 0, 1] = n // 2 - wrong - losses, losses
    return tables


def drawn(n: int, churn: float, moved: float, size: int = 4000) -> Array:
    """Draws of two models of n items, of which the second is better by `moved`."""
    random = np.random.default_rng(7)
    shares = np.array([RIGHT - churn / 2, churn / 2, churn / 2, 1 - RIGHT - churn / 2])
    if moved > 0:
        shares += np.array([0, 0, moved, -moved])
    else:
        shares += np.array([moved, -moved, 0, 0])
    tables = np.zeros((size, 2, 2, 2), dtype=np.int64)
    for label in range(2):
        both, lost, gained, neither = random.multinomial(n // 2, shares, size).T
        tables[:, label, label, label], tables[:, label, label, 1 - label] = both, lost
        tables[:, label, 1 - label, label], tables[:, label, 1 - label, 1 - label] = gained, neither
    return tables


def decided(rule: Rule, tables: Array, method: int, *, paired: bool = True) -> Decisions:
    draws = predictions_of(tables.astype(float))
    options = Options(indices=(rule.index,))
    values = draws.compared(options, names(2), draws if paired else None)
    difference = index_differences(rule.target.entry, values)
    assert (difference.methods == method).all()
    rows = Rows.single(exists=True)
    draft = evidence_of(rule, rows, difference, difference.items, against="baseline")
    tests = RuleTests([draft], Plan(gate_of(rule), [draft]))
    return decide(tests, 0.05)


def rate(decisions: Decisions, code: VerdictCode) -> float:
    return float((decisions.verdicts == code).mean())


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("n", [1000, 4000])
def test_a_model_at_either_margin_passes_as_seldom_as_a_single_rule_says(n: int, sign: int) -> None:
    decisions = decided(change(0.03), drawn(n, 0.06, sign * 0.03), TANGO)
    assert 0.03 <= rate(decisions, VerdictCode.passed) <= 0.06
    assert rate(decisions, VerdictCode.fail) <= 0.065


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_same_holds_by_the_delta_method(sign: int) -> None:
    """The loss of both classes alike moves their mean F1 as much as the accuracy."""
    decisions = decided(change(0.03, "macro_f1"), drawn(2000, 0.06, sign * 0.03), INFLUENCE)
    assert 0.03 <= rate(decisions, VerdictCode.passed) <= 0.065


@pytest.mark.parametrize("limit", [0.0005, 0.005, 0.02])
def test_a_fail_in_two_directions_has_the_level_of_one(limit: float) -> None:
    """Each direction at the level alone would fail nearly twice as many at a small limit."""
    decisions = decided(change(limit), drawn(1000, 0.1, -limit, 8000), TANGO)
    assert 0.03 <= rate(decisions, VerdictCode.fail) <= 0.06


def constrained_z(gains: int, losses: int, n: int, difference: float) -> float:
    """Tango's statistic, with the probability of a loss found by maximizing the likelihood."""

    def cost(q: float) -> float:
        p = q + difference
        rest = 1 - p - q
        return -float(
            stats.multinomial.logpmf([gains, losses, n - gains - losses], n, [p, q, rest])
        )

    low, high = max(0.0, -difference), (1 - difference) / 2
    most = optimize.minimize_scalar(cost, bounds=(low, high), options={"xatol": 1e-13})
    spread = n * (2 * most.x + difference * (1 - difference))
    return float((gains - losses - n * difference) / np.sqrt(spread))


def test_the_verdicts_are_those_of_two_one_sided_tests_by_another_program() -> None:
    n, limit, z = 400, 0.04, stats.norm.ppf(0.95)
    gains, losses = (part.ravel() for part in np.mgrid[1:20:3, 1:28:3])
    decisions = decided(change(limit), joint(n, gains, losses), TANGO)
    seen = set()
    for i, (won, lost) in enumerate(zip(gains.tolist(), losses.tolist(), strict=True)):
        low, high = (constrained_z(won, lost, n, end) for end in (-limit, limit))
        expected = stats.norm.cdf(low) + stats.norm.cdf(high)
        if won > lost:
            expected = stats.norm.sf(low) + stats.norm.sf(high)
        assert decisions.p_value[i, 0] == pytest.approx(expected, rel=1e-4, abs=1e-7)
        passes = low > z and high < -z
        code = VerdictCode.passed if passes else VerdictCode.undecided
        code = VerdictCode.fail if expected < 0.05 else code
        assert decisions.verdicts[i, 0] == code
        seen.add(code)
    assert seen == {VerdictCode.passed, VerdictCode.undecided, VerdictCode.fail}


@pytest.mark.parametrize(
    ("gains", "losses", "verdict", "said"),
    [
        (30, 32, "pass", "dropped by 0.001 (limits: a drop of"),
        (30, 32, "pass", "a change of more than the 0.02 allowed is ruled out."),
        (10, 140, "fail", "dropped by 0.065 (limits 0.0557 and 0.0753"),
        (90, 0, "fail", "rose by 0.045"),
        (90, 0, "fail", ", more than the 0.02 allowed."),
        (70, 35, "inconclusive", "are too few to tell whether it changed by more than the 0.02"),
        (70, 35, "inconclusive", "a change of"),
    ],
)
def test_a_change_in_either_direction_fails(
    gains: int, losses: int, verdict: str, said: str
) -> None:
    result = judged(change(0.02), *sides_of(joint(2000, gains, losses)))
    assert result.verdict == verdict
    assert said in result.results[0].message


def test_nothing_passes_on_missing_evidence() -> None:
    few = sides_of(joint(60, 0, 0))
    assert judged(change(0.02), *few).verdict == "inconclusive"
    assert judged(change(0.02, test="none"), *few).verdict == "pass"
    assert judged(change(0.02), few[0], None).verdict == "no_baseline"
    other = replace(few[1], table=tabled([[20, 0], [0, 40]]).table, fingerprint="other")
    result = judged(change(0.02), few[0], replace(other, items=None))
    assert [r.verdict for r in result.results] == ["not_comparable"]
    lost = tabled([[30, 0], [0, 0]], "t"), tabled([[30, 0], [0, 8]], "t")
    of_class = change(0.02, "recall", classes=("1",))
    assert judged(of_class, *lost).results[0].verdict != "pass"


@pytest.mark.parametrize(
    ("rose", "with_all", "without"),
    [(99, "fail", "not_comparable"), (30, "undecided", "undecided"), (5, "pass", "pass")],
)
def test_leaving_out_what_rose_does_not_pass(rose: int, with_all: str, without: str) -> None:
    """The candidate is right for so many items more, and equals the baseline without these."""
    rows = np.flatnonzero(TRUE == 1)[:rose]
    old, kept = TRUE.copy(), np.ones(ITEMS, bool)
    old[rows], kept[rows] = 0, False
    for items, verdict in ((None, with_all), (kept, without)):
        (result,) = judged_by_id(gate_of(change(0.02)), side(TRUE, items), side(old)).results
        assert result.verdict == verdict


def test_opposite_changes_of_classes_do_not_cancel() -> None:
    before = tabled([[500, 500], [500, 500]], "t")
    after = tabled([[600, 400], [600, 400]], "t")
    rule = change(0.05, "recall", classes="all")
    assert rule.decides_by.name == "each"
    result = judged(rule, after, before)
    assert [r.verdict for r in result.results] == ["fail", "fail"]
    (mistake,) = mistakes(gate_of(replace(rule, policy="average")))
    assert str(mistake).startswith("Only max_drop and max_gain can be decided by an average")


def test_a_waiver_covers_both_directions() -> None:
    before = tabled([[900, 100], [100, 900]], "t")
    for moved in (-80, 80):
        after = tabled([[900 + moved, 100 - moved], [100 - moved, 900 + moved]], "t")
        for ceiling, verdict in ((0.09, "waived"), (0.07, "fail")):
            waivers = (waiver(rule="accuracy.max_change", ceiling=ceiling),)
            result = judged(gate_of(change(0.02), waivers=waivers), after, before)
            assert result.results[0].verdict == verdict


@pytest.mark.parametrize("limit", [0.003, 0.03])
def test_lint_knows_what_passes_and_what_it_sees(limit: float) -> None:
    rule, counts = change(limit), even(RIGHT, 500, k=2)
    line = lint(gate_of(rule), tabled(counts), replicates=200).rules[0]
    assert line.smallest_limit is not None
    assert line.detectable_drop is not None
    there = decided(change(line.smallest_limit), drawn(1000, 0.06, 0.0), TANGO)
    assert rate(there, VerdictCode.passed) == pytest.approx(0.8, abs=0.05)
    for sign in (-1, 1):
        tables = drawn(1000, 0.06, sign * line.detectable_drop)
        failed = rate(decided(rule, tables, TANGO), VerdictCode.fail)
        assert failed == pytest.approx(0.8, abs=0.05)


def test_the_planned_items_pass_an_unchanged_model_and_half_of_them_do_not() -> None:
    gate = gate_of(change(0.03))
    items = plan_items(gate, tabled(even(RIGHT, 200, k=2)), replicates=300).for_passing
    assert items is not None
    shares = [
        rate(decided(change(0.03), drawn(size, 0.06, 0.0), TANGO), VerdictCode.passed)
        for size in (round(1.1 * items), items // 2)
    ]
    assert shares[0] >= 0.9 > shares[1]
