"""Ids of items in JSON do what a column of ids does."""

from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest

import rprime
from tests.history_service import Json
from tests.http.column_bodies import as_csv, send

if TYPE_CHECKING:
    from rprime.client.request import SideFields

N = 60
IDS = [f"i{i}" for i in range(N)]
TRUE = ["cat" if i % 3 else "dog" for i in range(N)]
OLD = [label if i % 5 else "cat" for i, label in enumerate(TRUE)]
NEW = [label if i % 7 else "dog" for i, label in enumerate(TRUE)]
REGION = ["EU" if i % 4 else "US" for i in range(N)]
SHUFFLED = np.random.default_rng(1).permutation(N).tolist()
CANDIDATE: Json = {"item_id": IDS, "y_true": TRUE, "y_pred": NEW}


def taken(content: Json, places: list[int]) -> Json:
    return {name: [values[i] for i in places] for name, values in content.items()}


OTHER = taken({"item_id": IDS, "y_true": TRUE, "y_pred": OLD}, SHUFFLED)


def evaluated(client: httpx.Client, body: Json) -> Json:
    response = client.post("/v1/evaluate", json=body)
    assert response.status_code == 200, response.text
    report: Json = response.json()
    return report


def test_a_baseline_in_another_order_is_matched_by_its_ids(client: httpx.Client) -> None:
    comparison = evaluated(client, CANDIDATE | {"baseline": OTHER})["comparison"]
    in_order = {"item_id": IDS, "y_true": TRUE, "y_pred": OLD}
    assert comparison == evaluated(client, CANDIDATE | {"baseline": in_order})["comparison"]
    assert (comparison["comparability"], comparison["pairing"]) == ("same_items", "paired")


def test_other_predictions_follow_the_order_of_the_candidate(client: httpx.Client) -> None:
    shuffled = taken(CANDIDATE, SHUFFLED)
    old = [OLD[i] for i in SHUFFLED]
    comparison = evaluated(client, shuffled | {"baseline": {"y_pred": old}})["comparison"]
    expected = evaluated(client, CANDIDATE | {"baseline": {"y_pred": OLD}})["comparison"]
    assert (comparison["overall"], comparison["flips"]) == (expected["overall"], expected["flips"])


def test_missing_relabelled_and_new_items_are_counted(client: httpx.Client) -> None:
    content = taken(CANDIDATE, SHUFFLED[2:])
    content["y_true"][0] = "dog" if content["y_true"][0] == "cat" else "cat"
    content = {
        name: [*values, value]
        for (name, values), value in zip(content.items(), ("new", "cat", "cat"), strict=True)
    }
    missing = evaluated(client, content | {"baseline": OTHER})["comparison"]["missing"]
    counts = missing["removed"], missing["relabelled"], missing["added"]
    assert counts == (2, 1, 1)


def test_json_and_csv_give_the_same_digest_and_report(client: httpx.Client) -> None:
    content = taken(CANDIDATE | {"slice:region": REGION}, SHUFFLED)
    columns = send(client, "csv", as_csv({n: np.array(v) for n, v in content.items()}))
    content["slices"] = {"region": content.pop("slice:region")}
    assert evaluated(client, content) == columns.json()


def test_scores_and_weights_stay_with_their_items(client: httpx.Client) -> None:
    scores = np.random.default_rng(2).dirichlet((1, 1), N).round(3).tolist()
    content: Json = {
        "item_id": list(range(N)), "y_true": TRUE, "y_score": scores,
        "sample_weight": [1 + i % 3 for i in range(N)],
    }  # fmt: skip
    more = {"labels": ["cat", "dog"], "indices": ["accuracy", "macro_roc_auc", "log_loss"]}
    ordered, shuffled = (
        evaluated(client, part | more)["overall"] for part in (content, taken(content, SHUFFLED))
    )
    for key, value in ordered.items():
        assert shuffled[key]["value"] == pytest.approx(value["value"], rel=1e-12)


def test_an_integer_is_the_id_of_its_digits(client: httpx.Client) -> None:
    digits = [str(i) for i in range(N)]
    content = CANDIDATE | {"item_id": list(range(N))}
    comparison = evaluated(
        client, content | {"baseline": OTHER | {"item_id": [digits[i] for i in SHUFFLED]}}
    )["comparison"]
    assert comparison["comparability"] == "same_items"


@pytest.mark.parametrize(
    ("ids", "place", "code"),
    [
        (["a", "b", "a"], "/item_id/2", "duplicate_id"),
        (["1", "b", 1], "/item_id/2", "duplicate_id"),
        (["a", None, "c"], "/item_id/1", "no_id"),
        (["a", True, "c"], "/item_id/1", "id_type"),
        (["a", "b", 1.5], "/item_id/2", "id_type"),
        (["a", "b"], "/item_id", "wrong_length"),
        ("abc", "/item_id", "not_an_array"),
    ],
)
@pytest.mark.parametrize("side", ["", "/baseline"])
def test_wrong_ids_are_refused_at_their_place(
    client: httpx.Client, ids: Any, place: str, code: str, side: str
) -> None:
    three = {"y_true": ["x", "y", "x"], "y_pred": ["x", "y", "y"]}
    body = three | {"item_id": ["a", "b", "c"], "baseline": three | {"item_id": ["a", "b", "c"]}}
    (body["baseline"] if side else body)["item_id"] = ids  # type: ignore[index] # a dictionary
    response = client.post("/v1/evaluate", json=body)
    assert response.status_code == 422
    faults = [(error["pointer"], error["code"]) for error in response.json()["errors"]]
    assert (f"{side}{place}", code) in faults


def test_ids_need_true_classes_and_no_table(client: httpx.Client) -> None:
    for body, place in (
        (CANDIDATE | {"baseline": {"item_id": IDS, "y_pred": OLD}}, "/baseline/item_id"),
        ({"confusion_matrix": [[3, 1], [1, 3]], "item_id": ["a"]}, "/item_id"),
    ):
        response = client.post("/v1/evaluate", json=body)
        assert [error["pointer"] for error in response.json()["errors"]] == [place]


def test_python_takes_ids_of_both_sides() -> None:
    baseline: SideFields = {
        "item_id": OTHER["item_id"],
        "y_true": OTHER["y_true"],
        "y_pred": OTHER["y_pred"],
    }
    report = rprime.evaluate(TRUE, NEW, item_id=np.array(IDS), baseline=baseline)
    assert report.to_dict()["comparison"]["comparability"] == "same_items"


def test_a_search_keeps_slices_with_their_items(client: httpx.Client) -> None:
    content = CANDIDATE | {"region": REGION}
    found = []
    for part in (content, taken(content, SHUFFLED)):
        slices = {"region": part.pop("region")}
        response = client.post(
            "/v1/studies/slices", json=part | {"slices": slices, "min_items": 16}
        )
        assert response.status_code == 200, response.text
        found.append(response.json())
    assert found[0] == found[1]
