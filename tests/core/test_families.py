"""A report has the family `core`, and other families on request."""

from typing import get_args

import pytest

import rprime
from rprime.application.stored_options import read_options, write_options
from rprime.core.catalog import FAMILY_OF, INDICES
from rprime.core.index import Family
from rprime.core.options import Options
from rprime.core.selection import select

TRUE, PREDICTED = [0, 0, 1, 1, 2, 2], [0, 1, 1, 1, 2, 0]


def families_of(options: Options, *, scored: bool = False) -> set[str]:
    chosen = select(options, scored=scored)
    return {entry.family for entry in (*chosen.per_class, *chosen.overall)}


def test_a_key_has_one_family_and_every_family_has_indices() -> None:
    assert all(FAMILY_OF[entry.key] == entry.family for entry in INDICES)
    assert set(FAMILY_OF.values()) == set(get_args(Family))


@pytest.mark.parametrize("family", get_args(Family))
def test_a_report_has_the_families_that_are_named_besides_the_core(family: Family) -> None:
    assert families_of(Options()) == {"core"}
    assert families_of(Options(families=(family,)), scored=True) == {"core", family}
    assert families_of(Options(indices=("accuracy",), families=(family,)), scored=True) == {
        "core",
        family,
    }
    assert families_of(Options(families=("all",)), scored=True) == set(get_args(Family))


def test_without_scores_families_have_no_indices_of_scores() -> None:
    chosen = select(Options(families=("all",)))
    assert not any(entry.scored for entry in (*chosen.per_class, *chosen.overall))


def test_a_request_names_families() -> None:
    plain, more = (rprime.evaluate(TRUE, PREDICTED, families=f) for f in ([], ["classic"]))
    assert "true_positives" not in plain.per_class["0"]
    assert more.per_class["0"]["true_positives"].value == 1
    assert "bangdiwala_b" not in more.overall


def test_a_gate_may_name_an_index_of_any_family() -> None:
    rules = [{"index": "bangdiwala_b", "min_value": 0.9, "test": "none"}]
    found = rprime.evaluate(TRUE, PREDICTED, gates={"rules": rules})
    assert found.gate is not None
    assert found.gate.verdict == "fail"


def test_families_are_stored_with_the_options() -> None:
    kept = read_options(write_options(Options(families=("classic", "agreement")), None), 10)
    assert kept.families == ("classic", "agreement")
