"""The agreement between indices over stored evaluations."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from rprime.auth import keys
from tests.history_service import Json, ServeApp, keep, keeping, matrix

AGREEMENT = "/v1/studies/agreement"
INDICES = ["r_prime", "kappa", "macro_precision", "f1"]
OVERALL = ["r_prime", "kappa", "macro_precision"]


@pytest.fixture
def client(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


def fill(client: httpx.Client) -> list[Json]:
    """Keep five models over the same classes and one that knows others; the reports."""
    drawn = np.random.default_rng(0).integers(1, 40, (5, 3, 3)) + 40 * np.eye(3, dtype=int)
    contents: list[Json] = [
        matrix(confusion_matrix=table.tolist(), indices=INDICES, model=f"m{i}", version="1")
        for i, table in enumerate(drawn)
    ]
    other = {"confusion_matrix": [[9, 1], [2, 8]], "labels": ["cat", "fox"], "branch": "side"}
    return [keep(client, content) for content in [*contents, contents[0] | other]]


def study(client: httpx.Client, **options: Any) -> Json:
    answer = client.post(AGREEMENT, json={"project": "pets", "indices": INDICES} | options)
    assert answer.status_code == 200, answer.text
    report: Json = answer.json()
    return report


def by_names(rows: list[Json]) -> dict[frozenset[str], Json]:
    """Key rows by the two indices that they are about, whichever comes first."""
    keyed = {}
    for row in rows:
        content = {name: value for name, value in row.items() if name not in "ab"}
        if "models" in content:
            content["models"] = [sorted(pair) for pair in content["models"]]
        keyed[frozenset((row["a"], row["b"]))] = content
    return keyed


def test_it_is_what_the_values_of_the_reports_give(client: httpx.Client) -> None:
    reports = fill(client)
    agreement = study(client)
    assert [entry["evaluation"] for entry in agreement["evaluations"]] == [
        report["id"] for report in reports
    ]
    assert agreement["evaluations"][1]["model"] == "m1"
    posted: Json = {
        "values": {key: [report["overall"][key]["value"] for report in reports] for key in OVERALL},
        "per_class": {
            label: {
                key: [
                    report["per_class"][label]["indices"][key]["value"]
                    if label in report["per_class"]
                    else None
                    for report in reports
                ]
                for key in ("f1", "r_prime")
            }
            for label in ("cat", "dog", "eel", "fox")
        },
    }
    expected = client.post(AGREEMENT, json=posted).json()
    for part in ("pairs", "disagreements"):
        rows = by_names(expected[part])
        assert by_names(agreement[part]) == {
            names: {k: pytest.approx(v) if isinstance(v, float) else v for k, v in row.items()}
            for names, row in rows.items()
        }
    assert agreement["boxes"].keys() == expected["boxes"].keys()
    for label, boxes in expected["boxes"].items():
        for key, box in boxes.items():
            assert agreement["boxes"][label][key] == pytest.approx(box)
    assert agreement["boxes"]["fox"]["f1"]["n"] == 1


def test_filters_and_the_limit_choose_the_models(client: httpx.Client) -> None:
    reports = fill(client)
    assert len(study(client, version="1", limit=3)["evaluations"]) == 3
    newest = [entry["evaluation"] for entry in study(client, limit=2)["evaluations"]]
    assert newest == [report["id"] for report in reports[-2:]]
    later = study(client, since=reports[1]["created_at"])
    assert {entry["evaluation"] for entry in later["evaluations"]} >= {
        report["id"] for report in reports[1:]
    }


def test_a_class_does_not_take_the_place_of_the_whole(client: httpx.Client) -> None:
    for errors in (1, 2):
        keep(client, matrix(errors, labels=["overall", "dog", "eel"]))
    assert list(study(client, indices=["kappa"])["boxes"]) == ["overall"]
    answer = client.post(AGREEMENT, json={"project": "pets", "indices": INDICES})
    assert answer.json()["errors"][0]["code"] == "reserved_name"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"values": {}}, ("", "several_kinds")),
        ({"indices": None}, ("/indices", "required_null")),
        ({"indices": ["acuracy"]}, ("/indices/0", "unknown_index")),
        ({"indices": ["kappa", "log_loss"]}, ("/indices/1", "needs_scores")),
        ({"indices": ["weighted_kappa"]}, ("/indices/0", "option_missing")),
        ({"modell": "m1"}, ("", "unknown_field")),
        ({"limit": "5"}, ("/limit", "int_type")),
        ({"branch": "side"}, ("", "too_few")),
    ],
)
def test_what_is_wrong_is_named(
    client: httpx.Client, asked: Json, expected: tuple[str, str]
) -> None:
    fill(client)
    answer = client.post(AGREEMENT, json={"project": "pets", "indices": INDICES} | asked)
    assert answer.status_code == 422, answer.text
    assert [(error["pointer"], error["code"]) for error in answer.json()["errors"]] == [expected]


def test_a_project_that_is_not_there_is_not_found(client: httpx.Client) -> None:
    answer = client.post(AGREEMENT, json={"project": "none", "indices": INDICES})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_without_a_history_there_are_no_stored_models(serve_app: ServeApp, tmp_path: Path) -> None:
    with keeping(serve_app, tmp_path, store="none") as client:
        answer = client.post(AGREEMENT, json={"project": "pets", "indices": INDICES})
        assert (answer.status_code, answer.json()["code"]) == (409, "no_store")


def test_it_takes_a_key_that_may_read_the_project(serve_app: ServeApp, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    with keeping(serve_app, tmp_path, keys_file=path) as client:

        def status(scope: keys.Scope, project: str | None = None) -> int:
            _, token = keys.create(path, ["evaluate", scope], project=project)
            client.headers["Authorization"] = f"Bearer {token}"
            answer = client.post(AGREEMENT, json={"project": "pets", "indices": INDICES})
            return answer.status_code

        assert status("evaluate") == 403
        assert status("read", "mine") == 404
        assert status("admin") == 404
        fill(client)
        assert [status("read"), status("read", "pets")] == [200, 200]
