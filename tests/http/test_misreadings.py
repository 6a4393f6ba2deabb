"""Evidence that can be read and is most likely not what was meant: the report says so."""

from typing import Any

import httpx
import numpy as np
import pytest

Json = dict[str, Any]
SURE = {"labels": ["a", "b"], "confusion_matrix": [[50, 10], [5, 35]]}


def reported(client: httpx.Client, **request: Any) -> tuple[Json, dict[str, str]]:
    """Return the report, and the sentences of its warnings by code."""
    answer = client.post("/evaluate", json=request)
    assert answer.status_code == 200, answer.text
    report: Json = answer.json()
    return report, {warning["code"]: warning["detail"] for warning in report["warnings"]}


def refused(client: httpx.Client, **request: Any) -> Json:
    answer = client.post("/evaluate", json=request)
    assert answer.status_code == 422, answer.text
    first: Json = answer.json()["errors"][0]
    return first


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[50, 5], [10, 35]], "one matrix may be transposed"),
        ([[40, 5], [10, 35]], "Class `a` has 60 items in the candidate and 45 in the baseline."),
        ([[50, 10], [5, 35]], "Send a fingerprint or an identifier of the test set."),
    ],
)
def test_other_numbers_of_items_are_said_of_an_unknown_test_set(
    client: httpx.Client, matrix: list[list[int]], words: str
) -> None:
    _, details = reported(client, **SURE, baseline=SURE | {"confusion_matrix": matrix})
    assert words in details["test_set_unknown"]
    assert ("transposed" in details["test_set_unknown"]) == (matrix == [[50, 5], [10, 35]])
    same = {"test_set": {"id": "test"}}
    _, details = reported(
        client, **SURE, **same, baseline=SURE | same | {"confusion_matrix": matrix}
    )
    assert ("supports_differ" in details) == (matrix != SURE["confusion_matrix"])
    assert "test_set_unknown" not in details


def test_a_floor_of_an_error_rate_is_refused(client: httpx.Client) -> None:
    for rule in ({"index": "error_rate"}, {"confusion": ["a", "b"]}):
        error = refused(client, **SURE, gates={"rules": [rule | {"min_value": 0.05}]})
        assert (error["code"], error["pointer"]) == ("use_max_value", "/gates/rules/0/min_value")
    kept = {"rules": [{"confusion": ["a", "a"], "min_value": 0.5}]}
    assert reported(client, **SURE, gates=kept)[0]["gate"]["verdict"] == "pass"


@pytest.mark.parametrize("index", ["accuracy", "macro_f1", "r_prime", "kappa", "coverage"])
def test_an_index_of_no_items_is_undefined_for_a_gate(client: httpx.Client, index: str) -> None:
    gates = {"rules": [{"index": index, "min_value": 0.1}], "effects": {"undefined": "warn"}}
    empty = {"labels": ["a", "b"], "confusion_matrix": [[0, 0], [0, 0]]}
    gate = reported(client, **empty, gates=gates)[0]["gate"]
    (result,) = gate["results"]
    assert (gate["verdict"], result["verdict"]) == ("inconclusive", "undefined")
    same = {"test_set": {"id": "test"}}
    gates = {"rules": [{"index": index, "max_drop": 0.1}]}
    for candidate, baseline in ((empty, SURE), (SURE, empty)):
        report, _ = reported(client, **candidate, **same, baseline=baseline | same, gates=gates)
        assert report["comparison"]["comparability"] == "different"
        assert report["gate"]["verdict"] == "fail"
        assert report["gate"]["results"][0]["verdict"] == "not_comparable"


OMITTING = {"labels": ["a", "b"], "confusion_matrix": [[40, 5], [5, 40]], "unclassified": [50, 60]}


@pytest.mark.parametrize(
    ("rule", "counted"),
    [
        ({"index": "r_prime", "min_value": 0.1}, False),
        ({"index": "kappa", "min_value": 0.1}, False),
        ({"index": "mcc", "min_value": 0.1}, False),
        ({"index": "precision", "classes": "all", "min_value": 0.1}, False),
        ({"confusion": ["a", "b"], "max_value": 0.9}, False),
        ({"index": "accuracy", "min_value": 0.1}, True),
        ({"index": "coverage", "min_value": 0.1}, True),
        ({"index": "macro_recall", "min_value": 0.1}, True),
        ({"index": "recall", "classes": "all", "min_value": 0.1}, True),
        ({"confusion": ["a", "a"], "min_value": 0.1}, True),
    ],
)
def test_a_gate_says_that_no_rule_counts_what_has_no_prediction(
    client: httpx.Client, rule: Json, counted: bool
) -> None:
    report, details = reported(client, **OMITTING, gates={"rules": [rule]})
    sentence = (
        "110 of 200 items have no prediction, and no rule counts these as wrong: add one about "
        "`coverage`."
    )
    assert details.get("omissions_not_judged") == (None if counted else sentence)
    more = "" if counted else f" {sentence}"
    assert report["gate"]["message"] == f"The gate passed.{more}"
    with_coverage = {"rules": [rule | {"id": "own"}, {"index": "coverage", "min_value": 0.2}]}
    assert "omissions_not_judged" not in reported(client, **OMITTING, gates=with_coverage)[1]


@pytest.mark.parametrize("mark", ["nan", "NaN", "<NA>", "null", "None", "n/a"])
def test_a_mark_of_a_missing_value_is_a_class_with_a_warning(
    client: httpx.Client, mark: str
) -> None:
    labels = {"y_true": ["a", mark, "b"] * 5, "y_pred": ["a", "b", mark] * 5}
    _, details = reported(client, **labels)
    assert details["label_is_missing_mark"].startswith(f"`{mark}` counts as a class.")
    assert "label_is_missing_mark" not in reported(client, **labels, labels=["a", "b", mark])[1]
    assert "label_is_missing_mark" not in reported(client, y_true=["a", "b"], y_pred=["a", "b"])[1]


@pytest.mark.parametrize("side", ["candidate", "baseline"])
def test_predictions_none_of_which_is_a_true_class_are_refused(
    client: httpx.Client, side: str
) -> None:
    truth, spelt = ["cat", "dog"] * 10, ["Cat", "Dog"] * 10
    request = {"y_true": truth, "y_pred": truth, "baseline": {"y_pred": truth}}
    place = request if side == "candidate" else request["baseline"]
    assert isinstance(place, dict)
    place["y_pred"] = spelt
    (error,) = client.post("/evaluate", json=request).json()["errors"]
    assert error["code"] == "no_true_class"
    assert error["pointer"] == ("/y_pred" if side == "candidate" else "/baseline/y_pred")
    assert "`cat`, `dog`; `y_pred` has `Cat`, `Dog`" in error["detail"]
    for more in ({"labels": ["cat", "dog", "Cat", "Dog"]}, {"aliases": {"Cat": "cat"}}):
        assert client.post("/evaluate", json=request | more).is_success
    few = {"y_true": truth[:19], "y_pred": spelt[:19]}
    assert client.post("/evaluate", json=few).is_success


def test_scores_as_labels_of_a_csv_are_noticed(client: httpx.Client) -> None:
    def codes(*predicted: str) -> set[str]:
        rows = [f"{i % 2},{text}" for i, text in enumerate(predicted)]
        answer = client.post(
            "/evaluate",
            content="\n".join(["y_true,y_pred", *rows]),
            headers={"content-type": "text/csv"},
        )
        assert answer.status_code == 200, answer.text
        return {warning["code"] for warning in answer.json()["warnings"]}

    assert "label_is_score" in codes("0.12", "0.97", "0.5", "1e-3", "2.5e-05")
    assert "label_is_score" not in codes("0.0", "1.0", "1.0", "0.0")
    assert "label_is_score" not in codes("0", "1", "a.b", "v1.2")


def test_predictions_against_the_scores_are_noticed(client: httpx.Client) -> None:
    scores = [[0.1, 0.9], [0.8, 0.2], [0.7, 0.3], [0.4, 0.6]]
    best, request = ["b", "a", "a", "b"], {"labels": ["a", "b"], "y_score": scores}
    _, details = reported(client, **request, y_true=best, y_pred=["a", "b", "b", "b"])
    assert details["predictions_contradict_scores"].startswith("Only 1 of 4 predictions are")
    for predicted in (best, ["b", "a", "b", "a"], ["b", None, None, None]):
        _, details = reported(client, **request, y_true=best, y_pred=predicted)
        assert "predictions_contradict_scores" not in details


def test_the_assumed_order_of_score_columns_is_said(client: httpx.Client) -> None:
    labels = ["10", "2", "9"]
    content: Json = {"y_true": ["2", "10", "9"], "y_score": np.eye(3).tolist()}
    _, details = reported(client, **content)
    assert "the classes `10`, `2`, `9`, in this order" in details["columns_assumed"]
    assert "columns_assumed" not in reported(client, **content, labels=labels)[1]
    csv = "y_true,score:2,score:10\n2,.9,.1\n10,.2,.8\n"
    answer = client.post("/evaluate", content=csv, headers={"content-type": "text/csv"})
    assert "columns_assumed" not in {warning["code"] for warning in answer.json()["warnings"]}


def test_a_ceiling_of_gains_of_what_should_be_high_is_refused(client: httpx.Client) -> None:
    error = refused(client, **SURE, gates={"rules": [{"index": "accuracy", "max_gain": 0.05}]})
    assert error["code"] == "use_max_drop"
    assert error["detail"] == "accuracy is best at 1, so a gain is an improvement: use max_drop."


def test_the_class_minus_one_stays_a_number_in_csv(client: httpx.Client) -> None:
    content = {"labels": [-1, 0], "confusion_matrix": [[5, 1], [1, 5]]}
    text = client.post("/evaluate", json=content, headers={"accept": "text/csv"}).text
    assert ",-1," in text
    content = {"labels": ["-1+2", "=a"], "confusion_matrix": [[5, 1], [1, 5]]}
    text = client.post("/evaluate", json=content, headers={"accept": "text/csv"}).text
    assert (",'-1+2," in text, ",'=a," in text) == (True, True)


@pytest.mark.parametrize("rows", [[[1, 0], [0, 1]], [[1], [0]], [[0.2, 0.8], [0.7, 0.3]]])
def test_rows_as_labels_lead_to_what_is_needed(client: httpx.Client, rows: list[Json]) -> None:
    error = refused(client, y_true=[1, 0], y_pred=rows)
    assert (error["pointer"], error["code"]) == ("/y_pred/0", "mixed_labels")
    assert "probabilities as `y_score`" in error["detail"]


def test_percents_as_shares_are_named(client: httpx.Client) -> None:
    error = refused(client, **SURE, population={"prevalence": {"a": 90, "b": 10}})
    assert error["detail"].endswith("is not a share from 0 to 1: divide percents by 100.")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"confusion_matrix": [[50, 10], [5, 35]]}', "looks like JSON: send it as such."),
        ("1,0\n1,1\n0,0\n", "A CSV begins with a line of column names."),
        ("a,b\nx,y\n", "say so in `columns`."),
    ],
)
def test_a_csv_without_names_says_what_it_may_be(
    client: httpx.Client, content: str, words: str
) -> None:
    answer = client.post("/evaluate", content=content, headers={"content-type": "text/csv"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["detail"].endswith(words)


@pytest.mark.parametrize(
    ("true", "padding"),
    [([0, 1, -100], "-100"), ([0, 1, 255], "255"), ([0, 1, 2], None), ([100, 1, 255], None)],
)
def test_a_label_of_padding_is_named(
    client: httpx.Client, true: list[int], padding: str | None
) -> None:
    said = reported(client, y_true=true, y_pred=[0, 1, 1])[1]
    assert ("label_is_padding" in said) == (padding is not None)
    assert padding is None or said["label_is_padding"].startswith(f"`{padding}` counts")
    assert (
        "label_is_padding"
        not in reported(client, y_true=true, y_pred=[0, 1, 1], labels=sorted({0, 1, *true}))[1]
    )


WORDS = {
    "y_true": ["low", "low", "medium", "medium", "high", "high"],
    "y_pred": ["low", "medium", "medium", "medium", "high", "low"],
}


@pytest.mark.parametrize(
    "request_",
    [
        {"indices": ["quadratic_weighted_kappa"]},
        {"gates": {"rules": [{"index": "linear_weighted_kappa", "min_value": 0.1}]}},
        {"kappa_weights": [[0, 1, 2], [1, 0, 1], [2, 1, 0]]},
    ],
)
def test_an_assumed_order_of_words_is_said_where_it_matters(
    client: httpx.Client, request_: Json
) -> None:
    _, details = reported(client, **WORDS, **request_)
    assert "order of their characters: `high`, `low`, `medium`" in details["order_assumed"]
    declared = {"labels": ["low", "medium", "high"]}
    assert "order_assumed" not in reported(client, **WORDS, **declared, **request_)[1]
    assert "order_assumed" not in reported(client, **WORDS)[1]
    numbers = {name: [len(label) for label in labels] for name, labels in WORDS.items()}
    assert "order_assumed" not in reported(client, **numbers, **request_)[1]


@pytest.mark.parametrize("gates", [{"rules": 5}, {"rules": [5]}, 5])
def test_malformed_gates_are_refused(client: httpx.Client, gates: object) -> None:
    assert refused(client, **WORDS, gates=gates)["pointer"].startswith("/gates")


@pytest.mark.parametrize(
    ("true", "predicted", "code"),
    [
        ([f"id{i}" for i in range(40)], [f"id{i}" for i in range(40)], "label_is_id"),
        (["a", "b"], [None, None], "nothing_classified"),
        (["a", "b", "a|b"], ["a", "b", "a|b"], "label_is_several"),
        (["['a', 'b']", "['a']"], ["['a']", "['a']"], "label_is_several"),
        (["1:a", "2:b"], ["1:a", "1:?"], "label_is_missing_mark"),
    ],
)
def test_labels_that_are_no_classes_are_said(
    client: httpx.Client, true: list[str], predicted: list[str | None], code: str
) -> None:
    assert code in reported(client, y_true=true, y_pred=predicted)[1]
    plain = {"y_true": ["a+", "a", "b-c"] * 9, "y_pred": ["a+", "a", "b-c"] * 9}
    assert code not in reported(client, **plain)[1]


def test_top_k_of_all_classes_is_said(client: httpx.Client) -> None:
    scores = {
        "y_true": ["a", "b", "c"],
        "y_score": [[0.2, 0.5, 0.3]] * 3,
        "labels": ["a", "b", "c"],
    }
    for k in (2, 3):
        _, details = reported(client, **scores, top_k=k, indices=["top_k_accuracy"])
        assert ("top_k_of_all" in details) == (k == 3)


def test_a_background_of_detections_is_said(client: httpx.Client) -> None:
    labels = ["a", "b", "background"]
    table = {"labels": labels, "confusion_matrix": [[5, 1, 3], [1, 4, 2], [2, 2, 0]]}
    assert "send these as `spurious`" in reported(client, **table)[1]["label_is_background"]
    table["confusion_matrix"] = [[5, 1, 3], [1, 4, 2], [2, 2, 9]]
    assert "label_is_background" not in reported(client, **table)[1]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"y_true,y_predcat,catdog,dog", "send it by `--data-binary`"),
        (b"\x1f\x8b\x08\x00", "say so by `Content-Encoding: gzip`"),
        (b"\x28\xb5\x2f\xfd\x00", "say so by `Content-Encoding: zstd`"),
        (b"y_true;score:a;score:b\na;0,7;0,3\n", "Write a point in place of the decimal comma"),
        (b"obs,pred\na,a\n", "as in `y_true=obs,y_pred=pred`"),
        (b"true_a,true_b,pred_a,pred_b\n1,0,1,0\n0,1,0,1\n", "into one column, as by `idxmax"),
        (b"id,y_true,y_pred\n1,a,a\n", "`id` may be `item_id`: rename it"),
        (b"weight,y_true,y_pred\n1,a,a\n", "`weight` may be `sample_weight`: rename it"),
    ],
)
def test_a_body_of_columns_that_is_told_with_its_cure(
    client: httpx.Client, body: bytes, said: str
) -> None:
    answer = client.post("/evaluate", content=body, headers={"Content-Type": "text/csv"})
    assert said in answer.text
