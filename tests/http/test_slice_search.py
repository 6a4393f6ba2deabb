"""The search for weak slices over HTTP: JSON and columns, what is refused, what is computed."""

import json
from typing import Any

import httpx
import numpy as np
import orjson
import pytest
from jsonschema import Draft202012Validator

from rprime.core.slices.search import SearchOptions, search_slices
from rprime.core.slices.slices import SliceColumn
from rprime.schemas.published import components
from tests.http.column_bodies import MEDIA_TYPES, WRITERS, fault

Json = dict[str, Any]
PATH = "/v1/studies/slices"
DRAW = np.random.default_rng(3)
SIZE = 1200
TRUE = DRAW.integers(3, size=SIZE)
REGION = np.array(["Asia", "EU", "US"])[DRAW.integers(3, size=SIZE)]
AGE = DRAW.integers(18, 90, size=SIZE)
LIGHT = DRAW.exponential(size=SIZE).round(3)
WEAK = (REGION == "US") & (AGE >= 60)
PREDICTED = np.where(DRAW.random(SIZE) < np.where(WEAK, 0.5, 0.9), TRUE, (TRUE + 1) % 3)
SLICES = {"region": REGION, "age": AGE, "light": LIGHT}
CUTS = {"age": [30, 60], "light": 3}
ITEMS = {"y_true": TRUE, "y_pred": PREDICTED}


def packed(members: Json) -> bytes:
    # Arrays of strings are lists.
    return orjson.dumps(members, np.ndarray.tolist, option=orjson.OPT_SERIALIZE_NUMPY)


def asked(client: httpx.Client, **members: object) -> httpx.Response:
    body = packed(members)
    return client.post(PATH, content=body, headers={"Content-Type": "application/json"})


def found(client: httpx.Client, **members: object) -> Json:
    answer = asked(client, **{**ITEMS, "slices": SLICES, "slice_cuts": CUTS, **members})
    assert answer.status_code == 200, answer.text
    content: Json = answer.json()
    return content


def refused(client: httpx.Client, **members: object) -> tuple[int, str, str]:
    return fault(asked(client, **{**ITEMS, "slices": SLICES, **members}))


def cut(values: np.ndarray, edges: list[float]) -> np.ndarray:
    return np.array([sum(value >= edge for edge in edges) for value in values])


def test_the_answer_is_that_of_the_core(client: httpx.Client) -> None:
    answer = found(client, seed=5, candidates=8, confidence=0.9)
    thirds = np.quantile(LIGHT, [1 / 3, 2 / 3], method="higher").tolist()
    low, high = (f"{edge:g}" for edge in thirds)
    names = {
        "region": ["Asia", "EU", "US"],
        "age": ["< 30", "[30, 60)", ">= 60"],
        "light": [f"< {low}", f"[{low}, {high})", f">= {high}"],
    }
    assert answer["columns"] == [{"name": n, "values": v} for n, v in names.items()]
    codes = {
        "region": np.searchsorted(names["region"], REGION),
        "age": cut(AGE, [30, 60]),
        "light": cut(LIGHT, thirds),
    }
    columns = {name: SliceColumn(tuple(names[name]), codes[name]) for name in names}
    options = SearchOptions(seed=5, candidates=8, confidence=0.9)
    expected, plan = search_slices(columns, (TRUE != PREDICTED).astype(float), options)
    assert [entry["slice"] for entry in answer["slices"]] == list(expected.names)
    for i, part in enumerate(answer["slices"]):
        assert part["items"] == expected.items[i]
        assert part["value"] == pytest.approx(1 - expected.losses[i])
        assert part["rest"] == pytest.approx(1 - expected.rests[i])
        assert part["difference"] == pytest.approx(part["value"] - part["rest"])
        assert part["interval"] == pytest.approx([-expected.upper[i], -expected.lower[i]])
        assert part["p_adjusted"] == pytest.approx(expected.p_adjusted[i])
        assert part["shrunken"] == pytest.approx(1 - expected.shrunken[i])
        assert part["weak"] == (part["p_adjusted"] <= 0.1)
    assert answer["slices"][0]["slice"] == {"region": "US", "age": ">= 60"}
    assert answer["slices"][0]["weak"]
    assert (answer["found_on"], answer["tested_on"], answer["seed"]) == (600, 600, 5)
    assert [(d["items"], -d["difference"]) for d in answer["detectable"]] == plan.detectable
    schema = {"$ref": "#/components/schemas/SliceSearchReport"}
    Draft202012Validator({**schema, "components": {"schemas": components()}}).validate(answer)


@pytest.mark.parametrize("kind", MEDIA_TYPES)
def test_columns_give_the_answer_of_json(client: httpx.Client, kind: str) -> None:
    expected = asked(client, **ITEMS, slices=SLICES, slice_cuts={"light": 3})
    body = WRITERS[kind]({**ITEMS, **{f"slice:{name}": v for name, v in SLICES.items()}})
    query = {"request": json.dumps({"slice_cuts": {"light": 3}})}
    headers = {"Content-Type": MEDIA_TYPES[kind]}
    answer = client.post(PATH, content=body, params=query, headers=headers)
    assert answer.content == expected.content, answer.text
    # Ages are cut at their quartiles without being asked for.
    assert len(answer.json()["columns"][1]["values"]) == 4


def test_large_json_gives_the_same_answer(client: httpx.Client) -> None:
    members = {**ITEMS, "slices": SLICES}
    padded = packed(members) + b" " * 300_000
    answer = client.post(PATH, content=padded, headers={"Content-Type": "application/json"})
    assert answer.content == asked(client, **members).content


PROBABILITIES = DRAW.dirichlet([1, 1, 1], size=SIZE)


@pytest.mark.parametrize(
    "index",
    [
        *("accuracy", "error_rate", "coverage", "accuracy_on_answered", "expected_cost"),
        *("log_loss", "brier_score", "top_k_accuracy", "hinge_loss"),
        "mean_absolute_probability_error",
    ],
)
def test_the_value_is_that_of_the_report(client: httpx.Client, index: str) -> None:
    missing = DRAW.random(SIZE) < 0.1
    predicted = [None if m else p for m, p in zip(missing, PREDICTED.tolist(), strict=True)]
    items = {"y_true": TRUE, "y_pred": predicted, "y_score": PROBABILITIES}
    more: Json = {"cost": [[0, 1, 2], [3, 0, 1], [-1, 1, 0]]} if index == "expected_cost" else {}
    more |= {"top_k": 2} if index == "top_k_accuracy" else {}
    answer = found(client, **items, **more, index=index)
    body = orjson.dumps({**items, **more, "indices": [index]}, option=orjson.OPT_SERIALIZE_NUMPY)
    headers = {"Content-Type": "application/json"}
    report = client.post("/v1/evaluate", content=body, headers=headers).json()
    assert answer["value"] == pytest.approx(report["overall"][index]["value"])
    assert {type(part["value"]) for part in answer["slices"]} == {float}


@pytest.mark.parametrize("index", ["recall", "precision"])
def test_a_class_is_searched_alone(client: httpx.Client, index: str) -> None:
    answer = found(client, index=index, **{"class": "1"})
    inside = (TRUE if index == "recall" else PREDICTED) == 1
    assert answer["items"] == inside.sum()
    assert answer["value"] == pytest.approx((TRUE == PREDICTED)[inside].mean())
    assert answer["class"] == "1"


IDS = [f"id{i}" for i in range(SIZE)]


@pytest.mark.parametrize(
    ("members", "place", "code"),
    [
        ({"slices": {"region": ["EU"] * SIZE}}, "/slices/region", "constant"),
        (
            {"slices": {"light": [1.5] * SIZE}, "slice_cuts": {"light": 4}},
            "/slices/light",
            "constant",
        ),
        ({"slices": {"id": IDS}}, "/slices/id", "all_distinct"),
        ({"slices": {str(i): REGION for i in range(21)}}, "/slices", "too_many_columns"),
        ({"slices": {"region": REGION[1:]}}, "/slices/region", "wrong_length"),
        ({"slices": {"region": [*REGION[1:], 1.5]}}, "/slices/region", "mixed_labels"),
        ({"slices": None}, "/slices", "null"),
        ({"slice_cuts": {"region": 4}}, "/slices/region", "not_a_number"),
        ({"slice_cuts": {"age": [60, 30]}}, "/slice_cuts/age", "not_ascending"),
        ({"slice_cuts": {"country": 4}}, "/slice_cuts", "unknown_slices"),
        ({"sample_weight": np.ones(SIZE)}, "/slices", "not_with_slices"),
        ({"groups": IDS}, "/slices", "not_with_slices"),
        ({"index": "recall"}, "/index", "needs_class"),
        ({"index": "kappa"}, "/index", "no_mean"),
        ({"index": "f1"}, "/index", "no_mean"),
        ({"index": "expected_cost"}, "/index", "option_missing"),
        ({"index": "log_loss"}, "/index", "no_scores"),
        ({"index": "recall", "class": "9"}, "/class", "undeclared_label"),
        ({"index": "accuracy", "class": "1"}, "/class", "no_class"),
        ({"min_items": 800}, "/y_true", "too_few_items"),
        ({"crossed": 4}, "/crossed", "less_than_equal"),
        ({"slice_crossings": [["region", "age"]]}, "/slice_crossings", "not_with_search"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    client: httpx.Client, members: Json, place: str, code: str
) -> None:
    assert refused(client, **members) == (422, place, code)


def test_a_search_needs_items_and_columns(client: httpx.Client) -> None:
    assert fault(asked(client, **ITEMS)) == (422, "/slices", "required")
    table = {"confusion_matrix": [[9, 1], [1, 9]], "slices": {"a": {"b": {"confusion_matrix": []}}}}
    assert fault(asked(client, **table)) == (422, "/slices", "required")


def test_scores_that_are_no_probabilities_have_no_log_loss(client: httpx.Client) -> None:
    answer = refused(client, y_score=PROBABILITIES * 2, index="log_loss")
    assert answer == (422, "/index", "not_probabilities")


def test_a_cut_column_of_csv_with_a_text_names_its_line(client: httpx.Client) -> None:
    body = "y_true,y_pred,slice:age\n1,1,20\n1,2,old\n"
    query = {"request": json.dumps({"slice_cuts": {"age": 2}})}
    answer = client.post(PATH, content=body, params=query, headers={"Content-Type": "text/csv"})
    assert answer.status_code == 400
    assert answer.json()["detail"] == "Line 3 of the CSV has no number in column 3."
