"""Indices of one's own, from a request to the history: through real services."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.history_service import Json, ServeApp, keep, keeping, labels, matrix

COST = "(5 * cells['cat', 'dog'] + cells['dog', 'cat']) / items"
OWN = {"cost": COST, "mix": "0.7 * macro_recall + 0.3 * precision['cat']"}
KEYS = ["accuracy", "custom.cost", "custom.mix"]


@pytest.fixture
def client(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


def own(seed: int = 1, wrong: float = 0.1, **members: Any) -> Json:
    return labels(seed, wrong, **{"custom": OWN, "indices": KEYS} | members)


def evaluated(client: httpx.Client, content: Json, status: int = 200) -> Json:
    response = client.post("/evaluate", json=content)
    assert response.status_code == status, response.text
    answer: Json = response.json()
    return answer


def test_a_report_its_renderings_and_its_pages_have_them(client: httpx.Client) -> None:
    report = keep(client, own(slices={"site": ["x", "y"] * 200}))
    assert report["options"]["custom"] == OWN
    assert list(report["overall"]) == KEYS
    value = report["overall"]["custom.cost"]
    assert value["interval"][0] < value["value"] < value["interval"][1]
    assert all("custom.cost" in part["overall"] for part in report["slices"])
    place = f"/v1/evaluations/{report['id']}"
    assert client.get(place).json()["overall"] == report["overall"]
    shown = {"md": "Cost", "csv": "custom.cost", "html": "Cost", "openmetrics.txt": "custom.cost"}
    for suffix, text in shown.items():
        assert text in client.get(f"{place}/report.{suffix}").text, suffix
    page = client.get(f"/ui/evaluations/{report['id']}")
    assert page.status_code == httpx.codes.OK
    assert "Cost: (5 * cells[" in page.text


def test_stored_sides_are_compared_in_them(client: httpx.Client) -> None:
    first = keep(client, own(1, 0.2, model="m", version="1", test_set={"id": "t"}))
    second = keep(client, own(2, 0.1, model="m", version="2", test_set={"id": "t"}))
    sides = {"candidate": {"evaluation": second["id"]}, "baseline": {"evaluation": first["id"]}}
    gate = {"rules": [{"index": "custom.cost", "max_gain": 0.5}]}
    compared = client.post("/v1/compare", json=sides).json()
    change = compared["comparison"]["overall"]["custom.cost"]
    before, after = (r["overall"]["custom.cost"]["value"] for r in (first, second))
    assert change["value"] == pytest.approx(after - before, abs=1e-12)
    judged = client.post("/v1/compare", json=sides | {"gates": gate, "options": {"custom": OWN}})
    assert judged.json()["gate"]["results"][0]["verdict"] == "pass", judged.text
    names = {side: content["evaluation"] for side, content in sides.items()}
    page = client.get("/ui/compare", params=names)
    assert page.status_code == httpx.codes.OK
    assert "Cost" in page.text


def test_a_trend_and_a_list_have_each_by_its_own_expression(client: httpx.Client) -> None:
    other = {"cost": "cells['cat', 'dog'] / support['cat']"}
    reports = [
        keep(client, content)
        for content in (
            matrix(5),
            matrix(5, custom=OWN, indices=["custom.cost"]),
            matrix(5, custom=other, indices=["custom.cost"]),
            labels(1, groups=[i // 4 for i in range(400)], custom=OWN, indices=["custom.cost"]),
        )
    ]
    trend = client.get("/v1/projects/pets/trend", params={"index": "custom.cost"}).json()
    assert [point["value"] for point in trend["items"]] == [
        None,
        *(report["overall"]["custom.cost"]["value"] for report in reports[1:]),
    ]
    assert [point.get("options") for point in trend["items"]] == [None, COST, other["cost"], COST]
    assert trend["items"][0]["reason"] == "no_expression"
    listed = client.get("/v1/projects/pets/evaluations", params={"index": "custom.cost"}).json()
    values = [item["values"]["custom.cost"]["value"] for item in reversed(listed["items"])]
    assert values == [point["value"] for point in trend["items"]]


def test_sides_of_other_classes_are_compared_by_the_names_of_these(client: httpx.Client) -> None:
    both = {"confusion_matrix": [[8, 2], [1, 9]], "labels": ["cat", "dog"]}
    table = [[8, 2, 0], [1, 9, 0], [0, 1, 9]]
    baseline = {"confusion_matrix": table, "labels": ["dog", "eel", "cat"]}
    for candidate, other in ((both, baseline), (baseline, both)):
        own = {"custom": OWN, "indices": KEYS}
        report = evaluated(client, {**candidate, "baseline": other} | own)
        alone = evaluated(client, other | own)["overall"]["custom.cost"]
        change = report["comparison"]["overall"]["custom.cost"]
        after = report["overall"]["custom.cost"]["value"]
        assert change["value"] == pytest.approx(after - alone["value"], abs=1e-12)
    named = {"custom": {"eel": "recall['eel']"}, "indices": ["custom.eel"]}
    report = evaluated(client, {**baseline, "baseline": both} | named)
    assert report["comparison"]["overall"]["custom.eel"]["value"] is None


@pytest.mark.parametrize(
    "evidence",
    [
        {"sample_weight": [1 + i % 3 for i in range(400)]},
        {"groups": [i // 4 for i in range(400)]},
        {"population": {"prevalence": "uniform"}},
        {"sampling": "fixed_rows"},
        {"undefined": "zero"},
        {"average_over": ["cat", "dog"]},
    ],
    ids=lambda evidence: next(iter(evidence)),
)
def test_they_hold_for_every_kind_of_evidence(client: httpx.Client, evidence: Json) -> None:
    content = own(1, 0.1, project=None, **evidence)
    content |= {"custom": {"f1": "1 * weighted_f1"}, "indices": ["weighted_f1", "custom.f1"]}
    content["baseline"] = {"y_pred": labels(2, 0.2)["y_pred"]}
    report = evaluated(client, content)
    values, changes = report["overall"], report["comparison"]["overall"]
    assert values["custom.f1"]["value"] == pytest.approx(values["weighted_f1"]["value"])
    assert values["custom.f1"]["interval"] == pytest.approx(
        values["weighted_f1"]["interval"], abs=1e-9 if "population" not in evidence else 0.01
    )
    assert changes["custom.f1"]["value"] == pytest.approx(changes["weighted_f1"]["value"])
    low, high = np.array(changes["custom.f1"]["interval"])
    assert low < changes["custom.f1"]["value"] < high


def test_a_wrong_expression_names_place_column_and_cure(client: httpx.Client) -> None:
    content = matrix(project=None, custom={"a": "kapa", "b": "recall['cap']", "c": "kappa +"})
    problem = evaluated(client, content, 422)
    assert [(error["pointer"], error["code"]) for error in problem["errors"]] == [
        ("/custom/a", "unknown_index"),
        ("/custom/b", "unknown_class"),
        ("/custom/c", "not_an_expression"),
    ]
    details = [error["detail"] for error in problem["errors"]]
    assert details[0] == "Column 1: The catalog has no such index. Did you mean `kappa`?"
    assert details[1] == "Column 1: There is no such class. Did you mean `cat`?"
    assert details[2].startswith("Column 8: ")


@pytest.mark.parametrize(
    ("members", "pointer", "code"),
    [
        ({"custom": {"A b": "kappa"}}, "/custom", "custom_name"),
        ({"custom": {"a": 3}}, "/custom", "string_type"),
        ({"custom": {f"a{i}": "kappa" for i in range(21)}}, "/custom", "too_long"),
        ({"custom": {"a": "kappa"}, "indices": ["custom.b"]}, "/indices/0", "unknown_index"),
        ({"indices": ["custom.b"]}, "/indices/0", "unknown_index"),
        (
            {"gates": {"rules": [{"index": "custom.b", "max_value": 1}]}},
            "/gates/rules/0/index",
            "unknown_index",
        ),
    ],
)
def test_what_declares_none_is_refused(
    client: httpx.Client, members: Json, pointer: str, code: str
) -> None:
    problem = evaluated(client, matrix(project=None, **members), 422)
    assert [(error["pointer"], error["code"]) for error in problem["errors"]] == [(pointer, code)]
