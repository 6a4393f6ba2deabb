"""A baseline that shares no class with the candidate: nothing is compared, and no gate passes."""

import httpx
import pytest

MATRIX = [[900, 10], [5, 450]]
RULES = {"rules": [{"index": "accuracy", "max_drop": 0.1}]}


@pytest.mark.parametrize(
    "baseline",
    [
        {"confusion_matrix": MATRIX, "labels": ["car", "bus"]},
        {"confusion_matrix": MATRIX},  # classes 0 and 1
        {"confusion_matrix": [[0, 0], [0, 0]], "labels": ["cat", "dog"]},
    ],
)
def test_a_gate_against_other_classes_or_no_items_cannot_be_judged(
    client: httpx.Client, baseline: dict[str, object]
) -> None:
    request = {"confusion_matrix": MATRIX, "labels": ["cat", "dog"], "gates": RULES}
    report = client.post("/evaluate", json=request | {"baseline": baseline}).json()
    assert report["comparison"]["comparability"] == "different"
    (result,) = report["gate"]["results"]
    assert (report["gate"]["verdict"], result["verdict"]) == ("fail", "not_comparable")
    (warning,) = [w for w in report["warnings"] if w["code"] == "different_test_sets"]
    assert "no class has items on both sides" in warning["detail"]
    assert warning["detail"].endswith("a baseline that was evaluated on this test set.")


def test_sides_that_share_a_class_are_compared_as_independent_samples(client: httpx.Client) -> None:
    baseline = {"confusion_matrix": MATRIX, "labels": ["cat", "bus"]}
    request = {"confusion_matrix": MATRIX, "labels": ["cat", "dog"], "baseline": baseline}
    report = client.post("/evaluate", json=request).json()
    assert report["comparison"]["comparability"] == "unknown"


def test_a_class_without_a_share_is_named(client: httpx.Client) -> None:
    request = {"confusion_matrix": MATRIX, "labels": ["cat", "dog"]}
    population = {"prevalence": {"cat": 0.9}}
    response = client.post("/evaluate", json=request | {"population": population})
    assert response.status_code == 422
    (error,) = response.json()["errors"]
    assert error["detail"] == "The shares sum to 0.9; they must sum to 1. Class `dog` has none."
