"""What is said of names that a request may not have."""

from typing import Any

import httpx
import pytest

CANARY = "zzcanary"
TABLE = {"confusion_matrix": [[1]]}


def detail_of(client: httpx.Client, content: dict[str, Any], path: str = "/evaluate") -> str:
    errors = client.post(path, json=content).json()["errors"]
    detail: str = next(
        e["detail"] for e in errors if e["code"] in {"unknown_field", "unknown_index"}
    )
    return detail


@pytest.mark.parametrize(
    ("members", "meant"),
    [
        ({"index": ["accuracy"]}, "indices"),
        ({"metrics": ["accuracy"]}, "indices"),
        ({"y_proba": [[1]]}, "y_score"),
        ({"y_prob": [[1]]}, "y_score"),
        ({"target_names": ["a"]}, "labels"),
        ({"gates": {"rule": []}}, "rules"),
        ({"gates": {"rules": [{"index": "recall", "min": 0.9}]}}, "min_value"),
        ({"gates": {"rules": [{"index": "recall", "maxdrop": 0.1}]}}, "max_drop"),
        ({"gates": {"rules": [{"index": "recall", "minimum": 0.9}]}}, "min_value"),
        ({"gates": {"rules": [{"index": "recall", "max_regression": 0.1}]}}, "max_drop"),
        ({"baseline": {"confusion_matrx": [[1]]}}, "confusion_matrix"),
        ({"labels_true": ["a"]}, "y_true"),
        ({"y_hat": ["a"]}, "y_pred"),
        ({"rules": []}, "gates"),
    ],
)
def test_a_suggestion_fits_the_object(
    client: httpx.Client, members: dict[str, Any], meant: str
) -> None:
    assert f"Did you mean `{meant}`?" in detail_of(client, TABLE | members)


def test_where_nothing_is_near_the_members_are_listed(client: httpx.Client) -> None:
    rule = {"index": "recall", "min_value": 0.5, CANARY: 1}
    detail = detail_of(client, TABLE | {"gates": {"rules": [rule]}})
    assert "Member 3" in detail
    assert "`max_drop`" in detail
    assert detail.startswith(f"'{CANARY}': ")


def test_a_suggestion_is_a_member_of_the_other_requests_too(client: httpx.Client) -> None:
    sides = {"candidate": TABLE, "baseline": TABLE}
    assert "`gates`" in detail_of(client, sides | {"gate": {}}, "/v1/compare")
    wrong = {"candidate": TABLE | {"label": ["a"]}, "baseline": TABLE}
    assert "`labels`" in detail_of(client, wrong, "/v1/compare")
    assert "`discordance`" in detail_of(client, TABLE | {"discord": 1}, "/v1/gates/lint")
    study: dict[str, Any] = {"indices": ["f1"], "resoluton": 5}
    assert "`resolution`" in detail_of(client, study, "/v1/studies/discrimination")


def test_an_index_of_another_library_is_explained(client: httpx.Client) -> None:
    assert "`macro_roc_auc` or `roc_auc`" in detail_of(
        client, TABLE | {"indices": ["roc_auc_score"]}
    )


def test_a_member_among_the_query_parameters_is_sent_to_its_place(client: httpx.Client) -> None:
    misspelt = client.post("/evaluate?inclde=table", json=TABLE).json()["errors"]
    assert [error["pointer"] for error in misspelt] == ["/query/inclde"]
    assert "Did you mean `include`?" in misspelt[0]["detail"]
    answer = client.post("/evaluate?project=a", json=TABLE).json()
    assert "member of the body" in answer["errors"][0]["detail"]
    csv = {"Content-Type": "text/csv"}
    answer = client.post("/evaluate?project=a", content=b"y_true\na\n", headers=csv).json()
    assert "`request`, a JSON object" in answer["errors"][0]["detail"]
