"""Stored documents that name what is gone: they open, and say nothing else than before."""

from typing import Any

import orjson

from rprime.application.stored_sides import read_options
from rprime.core.selection import requested_keys
from rprime.schemas.gate import Gates
from rprime.store.documents import upgraded

Json = dict[str, Any]


def asked(options: Json, gates: Json | None = None) -> bytes:
    document = {"options": options} | ({} if gates is None else {"gates": gates})
    return upgraded("options", orjson.dumps(document), 2)


def keys(options: Json) -> frozenset[str]:
    return requested_keys(read_options(asked(options), 10))


def test_an_average_that_is_gone_is_left_out_of_the_indices() -> None:
    assert keys({"indices": ["macro_lift", "kappa"]}) == {"kappa"}
    assert keys({"indices": ["weighted_true_positives"]}) == keys({})


def test_families_that_came_besides_the_core_still_do() -> None:
    assert keys({"families": ["information"]}) == keys({"families": ["core", "information"]})
    assert "accuracy" in keys({"families": ["information"]})
    alone = keys({"indices": ["kappa"], "families": ["information"]})
    assert "kappa" in alone
    assert "accuracy" not in alone


def test_a_rule_on_an_average_that_is_gone_judges_no_more() -> None:
    rules = [
        {"index": "macro_lift", "min_value": 2.0},
        {"index": "macro_prevalence", "max_drop": 0.1, "slices": "region"},
        {"index": "accuracy", "min_value": 0.5},
    ]
    waiver = {"by": "ada", "expires": "2099-12-31", "reason": "known", "ceiling": 0.1}
    names = ("macro_lift.min_value", "macro_prevalence.max_drop.region", "accuracy.min_value")
    waivers = [{**waiver, "rule": name} for name in names]
    found = orjson.loads(asked({}, {"rules": rules, "waivers": waivers}))["gates"]
    assert [rule["index"] for rule in found["rules"]] == ["accuracy"]
    assert [one["rule"] for one in found["waivers"]] == ["accuracy.min_value"]
    assert len(Gates.model_validate_json(orjson.dumps(found)).core().rules) == 1
