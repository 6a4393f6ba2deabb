"""A report on many classes shows a page of them, and says what it leaves out."""

import json
import time
from typing import Any

import httpx
import numpy as np
import orjson
import pytest

import rprime as library
from rprime.application import read_request
from rprime.problems.problem import Problem
from rprime.settings import Limits

FEW = {
    "labels": ["a", "b", "c", "d"],
    "cells": [[0, 0, 5], [0, 1, 5], [1, 1, 9], [1, 2, 1], [2, 2, 30]],
}


def report(**content: object) -> dict[str, Any]:
    evaluation_request = read_request(orjson.dumps(FEW | content), Limits())
    answer: dict[str, Any] = json.loads(evaluation_request.report(evaluation_request.evaluate()))
    return answer


def page(**options: object) -> list[str]:
    return list(report(classes=options)["per_class"])


def many(k: int) -> dict[str, Any]:
    """Make a table of k classes, every fifth prediction wrong, some classes never predicted."""
    rng = np.random.default_rng(0)
    true, drawn = rng.integers(0, k, (2, 2 * k))
    predicted = np.where(rng.random(2 * k) < 0.8, true, drawn) // 2 * 2
    codes, counts = np.unique(true * k + predicted, return_counts=True)
    cells = np.stack((codes // k, codes % k, counts), axis=-1).tolist()
    return {"labels": [f"class {i}" for i in range(k)], "cells": cells}


class TestPage:
    def test_all_classes_come_unasked_where_they_are_few(self) -> None:
        answer = report()
        assert list(answer["per_class"]) == answer["labels"]
        assert "classes" not in answer

    def test_classes_are_ordered_by_items_predictions_labels_or_worst_first(self) -> None:
        assert page() == ["c", "a", "b", "d"]
        assert page(order_by="predicted") == ["c", "b", "a", "d"]
        assert page(order_by="labels") == ["a", "b", "c", "d"]
        assert page(order_by="recall") == ["a", "b", "c", "d"]  # d has none
        assert page(order_by="false_negative_rate") == ["a", "b", "c", "d"]
        assert page(order_by="prevalence") == ["c", "a", "b", "d"]

    def test_an_index_that_is_not_reported_can_order(self) -> None:
        answer = report(indices=["accuracy", "f1"], classes={"order_by": "recall", "limit": 1})
        assert list(answer["per_class"]) == ["a"]
        assert "recall" not in answer["per_class"]["a"]

    def test_what_is_left_out_is_said(self) -> None:
        answer = report(classes={"limit": 1, "offset": 1})
        assert list(answer["per_class"]) == ["a"]
        assert answer["classes"] == {
            "total": 4,
            "left_out": 3,
            "limit": 1,
            "offset": 1,
            "order_by": "support",
        }
        assert len(answer["labels"]) == 4

    def test_the_values_are_those_of_the_whole_report(self) -> None:
        whole, part = report(), report(classes={"limit": 2, "order_by": "predicted"})
        assert part["overall"]["accuracy"] == whole["overall"]["accuracy"]
        assert part["per_class"] == {label: whole["per_class"][label] for label in ("c", "b")}

    def test_pages_together_are_the_whole_report(self) -> None:
        pages = [report(classes={"limit": 1, "offset": i})["per_class"] for i in range(5)]
        assert pages[4] == {}
        assert {label: v for part in pages for label, v in part.items()} == report()["per_class"]

    def test_averages_name_the_classes_of_the_page_that_they_leave_out(self) -> None:
        whole = report()["overall"]["macro_recall"]
        assert [exclusion["class"] for exclusion in whole["excluded"]] == ["d"]
        part = report(classes={"limit": 1})["overall"]["macro_recall"]
        assert part == whole | {"excluded": [], "excluded_elsewhere": 1}

    def test_confusions_are_as_many_as_asked_for(self) -> None:
        assert len(report(top_confusions=1)["top_confusions"]) == 1

    @pytest.mark.parametrize(
        "content",
        [
            {"classes": {"limit": 0}},
            {"classes": {"offset": -1}},
            {"classes": {"order_by": "accuracy"}},
            {"classes": {"order": "support"}},
            {"classes": None},
            {"top_confusions": 0},
        ],
    )
    def test_what_no_page_can_be_is_refused(self, content: dict[str, Any]) -> None:
        with pytest.raises(Problem):
            report(**content)

    def test_requests_that_wait_together_keep_their_own_pages(self, client: httpx.Client) -> None:
        bodies = [FEW | {"classes": {"limit": n}} for n in (1, 2, 3)]
        results = client.post("/v1/evaluate/batch", json={"requests": bodies}).json()["results"]
        assert [len(result["report"]["per_class"]) for result in results] == [1, 2, 3]


class TestRenderings:
    @pytest.mark.parametrize(
        ("media", "said"),
        [
            ("text/markdown", "2 classes, ordered by support, and 2 classes not shown"),
            ("text/html", "2 classes more: a request pages"),
            ("text/csv", "class,c,recall"),
        ],
    )
    def test_renderings_follow(self, client: httpx.Client, media: str, said: str) -> None:
        body = FEW | {"classes": {"limit": 2}}
        answer = client.post("/evaluate", json=body, headers={"Accept": media})
        assert said in answer.text
        assert "class,b,recall" not in answer.text


class TestManyClasses:
    def test_a_hundred_thousand_classes_are_bounded_in_time_and_size(
        self, client: httpx.Client
    ) -> None:
        body = orjson.dumps(many(100_000))
        start = time.perf_counter()
        answer = client.post(
            "/evaluate", content=body, headers={"Content-Type": "application/json"}
        )
        assert time.perf_counter() - start < 60
        content = answer.json()
        assert content["classes"]["left_out"] == 100_000 - len(content["per_class"]) > 0
        assert len(answer.content) < 16 * 2**20
        supports = [entry["support"] for entry in content["per_class"].values()]
        assert supports == sorted(supports, reverse=True)

    def test_labels_give_what_their_cells_give(self) -> None:
        k = 20_000
        true = [f"c{i:05}" for i in range(k)] * 2
        predicted = [f"c{i:05}" for i in range(k)] + [f"c{i // 2:05}" for i in range(k)]
        options: dict[str, Any] = {"indices": ["r_prime"], "classes": {"limit": 5}}
        whole = library.evaluate(true, predicted, **options).to_dict()
        cells = [[i, i, 1] for i in range(k)] + [[i, i // 2, 1] for i in range(k)]
        table = library.evaluate(cells=cells, labels=true[:k], **options).to_dict()
        assert whole["per_class"] == table["per_class"]
        assert whole["overall"] == table["overall"]

    def test_more_values_than_a_report_holds_are_refused(self) -> None:
        content = many(40_000) | {"classes": {"limit": 40_000}, "families": ["core"]}
        with pytest.raises(Problem) as refused:
            read_request(orjson.dumps(content), Limits())
        assert refused.value.errors[0].pointer == "/classes/limit"
        del content["families"]
        few = content | {"indices": ["recall", "accuracy"]}
        evaluation_request = read_request(orjson.dumps(few), Limits())
        assert (
            json.loads(evaluation_request.report(evaluation_request.evaluate()))["classes"][
                "left_out"
            ]
            == 0
        )


@pytest.mark.parametrize("path", ["/evaluate", "/v1/compare"])
def test_a_comparison_of_too_many_classes_is_refused(client: httpx.Client, path: str) -> None:
    names = list(range(10_001))
    table = {"cells": [[name, name, 1] for name in names], "labels": names}
    body = table if path == "/evaluate" else {"candidate": table}
    response = client.post(path, json={**body, "baseline": {"confusion_matrix": [[1]]}})
    assert response.status_code == 422
    assert [(e["pointer"], e["code"]) for e in response.json()["errors"]] == [
        ("/baseline", "too_many_classes")
    ]
