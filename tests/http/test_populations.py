"""Populations in requests: by prevalence, by strata, from the store; and what does not fit."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from rprime.history.series import Measured
from rprime.store import Filters, open_store
from tests.history_service import ServeApp, keep, keeping, matrix

Json = dict[str, Any]
# The example of Olofsson et al. 2014 in small; rows are predicted classes.
MAP = [[45, 3, 2], [4, 80, 16], [1, 6, 143]]
LABELS = ["a", "b", "c"]
SHARES = {"a": 0.05, "b": 0.25, "c": 0.70}
ITEMS = {"y_true": ["a"] * 50 + ["b"] * 50, "y_pred": ["a"] * 40 + ["b"] * 55 + ["a"] * 5}


@pytest.fixture
def store(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


def evaluate(client: httpx.Client, **content: object) -> Json:
    response = client.post("/evaluate", json=content)
    assert response.status_code == 200, response.text
    report: Json = response.json()
    return report


def test_a_map_has_estimated_prevalences(client: httpx.Client) -> None:
    report = evaluate(
        client,
        confusion_matrix=MAP,
        axis="rows_are_predicted",
        labels=LABELS,
        population={"strata": "predicted", "shares": SHARES},
    )
    assert report["population"]["shares"] == SHARES
    assert report["overall"]["accuracy"]["standard_error"] == pytest.approx(0.0158715998)
    estimate = report["per_class"]["a"]["indices"]["estimated_prevalence"]
    assert "prevalence" not in report["per_class"]["a"]["indices"]
    assert estimate["value"] == pytest.approx(0.0596666667)
    assert estimate["interval"] == pytest.approx([0.0472068336, 0.0791084995])
    assert report["counts"]["items"] == 300
    assert report["per_class"]["a"]["support"] == 50


def test_strata_of_items_are_weighed_by_their_shares(client: httpx.Client) -> None:
    strata = ["north", "south"] * 50
    right = [t == p for t, p in zip(ITEMS["y_true"], ITEMS["y_pred"], strict=True)]
    shares = {"north": 0.2, "south": 0.8}
    report = evaluate(client, **ITEMS, population={"strata": strata, "shares": shares})
    expected = 0.2 * sum(right[::2]) / 50 + 0.8 * sum(right[1::2]) / 50
    assert report["overall"]["accuracy"]["value"] == pytest.approx(expected)
    assert report["population"]["effective_items"] == pytest.approx(50 / (0.04 + 0.64))


@pytest.mark.parametrize("suffix", ["text/markdown", "text/html"])
def test_renderings_say_what_they_are_about(client: httpx.Client, suffix: str) -> None:
    body = {"confusion_matrix": MAP, "labels": LABELS, "population": {"prevalence": SHARES}}
    response = client.post("/evaluate", json=body, headers={"Accept": suffix})
    assert "prevalence of the classes: a 0.05, b 0.25, c 0.7" in response.text


def test_sides_are_compared_at_one_prevalence(client: httpx.Client) -> None:
    report = evaluate(
        client,
        confusion_matrix=[[80, 20], [10, 90]],
        labels=["a", "b"],
        population={"prevalence": {"a": 0.9, "b": 0.1}},
        baseline={"confusion_matrix": [[900, 100], [10, 90]], "labels": ["a", "b"]},
        gates={"rules": [{"index": "accuracy", "max_drop": 0.02}]},
    )
    delta = report["comparison"]["overall"]["accuracy"]
    value = report["overall"]["accuracy"]["value"]
    assert value == pytest.approx(0.9 * 0.8 + 0.1 * 0.9)
    assert delta["baseline"] == pytest.approx(0.9 * 0.9 + 0.1 * 0.9)
    assert report["comparison"]["method"] == "mover"
    assert report["gate"]["results"][0]["observed"] == pytest.approx(value)


def test_the_other_order_of_classes_of_a_baseline_has_the_same_population(
    client: httpx.Client,
) -> None:
    report = evaluate(
        client,
        confusion_matrix=[[80, 20], [10, 90]],
        labels=["a", "b"],
        population={"prevalence": {"a": 0.9, "b": 0.1}},
        baseline={
            "confusion_matrix": [[0, 0, 0], [0, 90, 10], [0, 100, 900]],
            "labels": ["c", "b", "a"],
        },
    )
    delta = report["comparison"]["overall"]["accuracy"]
    assert delta["baseline"] == pytest.approx(0.9 * 0.9 + 0.1 * 0.9)


PREVALENCE = "/population/prevalence"
BASELINE = {"confusion_matrix": [[5, 1, 0], [1, 5, 0], [0, 0, 0]], "labels": LABELS}


@pytest.mark.parametrize(
    ("population", "pointer", "code", "told"),
    [
        ({"prevalence": {"a": 0.7, "b": 0.2}}, PREVALENCE, "shares_do_not_sum_to_one", "0.9"),
        ({"prevalence": {"a": 0.7, "z": 0.3}}, PREVALENCE, "undeclared_label", "`labels`"),
        ({"prevalence": {"a": "1", "b": 0}}, PREVALENCE, "float_type", "a number"),
        ({"prevalence": {"a": 1.5, "b": 0}}, PREVALENCE, "not_a_share", "from 0 to 1"),
        ({"prevalence": {}}, PREVALENCE, "too_short", "at least 1"),
        ({"prevalence": "even"}, PREVALENCE, "literal_error", "'uniform'"),
        ({"prevalence": [1, 0]}, PREVALENCE, "dict_type", "an object"),
        ({"strata": "a", "shares": {"a": 1}}, "/population/strata", "literal_error", "'predicted'"),
        ({"strata": 5, "shares": {"a": 1}}, "/population/strata", "list_type", "a list"),
        (
            {"strata": ["n", None, "s"], "shares": {"n": 1}},
            "/population/strata/1",
            "string_type",
            "Item 2",
        ),
        ({"strata": [1, None], "shares": {"1": 1}}, "/population/strata/1", "int_type", "Item 2"),
        ({"strata": "predicted"}, "/population", "one_population", "`shares`"),
        ({}, "/population", "one_population", "`prevalence`"),
        ({"strata": ["n"], "shares": {"n": 1}}, "/population/strata", "no_items", "`y_true`"),
        (
            {"prevalence": {"evaluation": "x"}},
            "/population/prevalence/evaluation",
            "needs_project",
            "`project`",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    client: httpx.Client, population: Json, pointer: str, code: str, told: str
) -> None:
    body = {"confusion_matrix": MAP, "labels": LABELS, "population": population}
    refused(client, body, pointer, code, told)


def refused(client: httpx.Client, body: Json, pointer: str, code: str, told: str) -> None:
    response = client.post("/evaluate", json=body)
    assert response.status_code == 422, response.text
    error = response.json()["errors"][0]
    assert (error["pointer"], error["code"]) == (pointer, code)
    assert told in error["detail"]


@pytest.mark.parametrize(
    ("body", "pointer", "code", "told"),
    [
        (
            {
                "confusion_matrix": [[5, 1, 0], [0, 0, 0], [1, 2, 3]],
                "labels": LABELS,
                "population": {"prevalence": SHARES},
            },
            "/population",
            "stratum_without_items",
            "no items of `b`",
        ),
        (
            {**ITEMS, "population": {"strata": ["n"] * 100, "shares": {"n": 0.5, "s": 0.5}}},
            "/population",
            "stratum_without_items",
            "no items of `s`",
        ),
        (
            {**ITEMS, "population": {"strata": ["n"] * 99, "shares": {"n": 1}}},
            "/population/strata",
            "wrong_length",
            "99 strata for 100 items",
        ),
        (
            {
                "confusion_matrix": MAP,
                "labels": LABELS,
                "population": {"prevalence": SHARES},
                "baseline": BASELINE,
            },
            "/population",
            "stratum_without_items",
            "no items in the baseline of `c`",
        ),
        (
            {
                "confusion_matrix": MAP,
                "labels": LABELS,
                "population": {"strata": "predicted", "shares": SHARES},
                "baseline": {"confusion_matrix": MAP, "labels": LABELS},
            },
            "/population",
            "not_comparable",
            "`prevalence`",
        ),
        (
            {
                "confusion_matrix": MAP,
                "labels": LABELS,
                "population": {"strata": "predicted", "shares": SHARES},
                "gates": {"rules": [{"confusion": ["a", "b"], "max_value": 0.2}]},
            },
            "/gates/rules/0/confusion",
            "not_with_population",
            "`prevalence`",
        ),
        (
            {**ITEMS, "groups": [1] * 100, "population": {"prevalence": "uniform"}},
            "/population",
            "not_with_population",
            "`groups`",
        ),
        (
            {**ITEMS, "sample_weight": [1] * 100, "inclusion_probability": [1] * 100},
            "/inclusion_probability",
            "several_kinds",
            "`sample_weight`",
        ),
        (
            {**ITEMS, "inclusion_probability": [0.5] * 99 + [0]},
            "/inclusion_probability/99",
            "out_of_range",
            "1e-9",
        ),
    ],
)
def test_evidence_that_does_not_fit_is_refused(
    client: httpx.Client, body: Json, pointer: str, code: str, told: str
) -> None:
    refused(client, body, pointer, code, told)


def test_the_inverse_of_an_inclusion_probability_is_a_weight(client: httpx.Client) -> None:
    chances = [0.5, 0.1] * 50
    drawn = evaluate(client, **ITEMS, inclusion_probability=chances)
    weighed = evaluate(client, **ITEMS, sample_weight=[1 / p for p in chances])
    assert drawn == weighed
    assert drawn["counts"]["effective_items"] == pytest.approx(600**2 / (50 * 4 + 50 * 100))


def test_a_stored_evaluation_gives_its_prevalence(store: httpx.Client) -> None:
    first = keep(store, matrix(confusion_matrix=[[180, 20, 0], [5, 45, 0], [0, 5, 45]]))
    reference = {"prevalence": {"evaluation": first["id"]}}
    second = keep(store, matrix(population=reference))
    population = second["population"]
    assert population["evaluation"] == first["id"]
    assert list(population["shares"].values()) == pytest.approx([200 / 300, 50 / 300, 50 / 300])
    later = store.get(f"/v1/evaluations/{second['id']}").json()
    assert later["population"] == population
    assert later["overall"] == second["overall"]


def test_strata_of_items_are_stored(store: httpx.Client) -> None:
    population = {"strata": ["n", "s"] * 50, "shares": {"n": 0.2, "s": 0.8}}
    first = keep(store, {**ITEMS, "project": "pets", "population": population})
    later = store.get(f"/v1/evaluations/{first['id']}").json()
    assert later["population"] == first["population"]
    assert later["overall"] == first["overall"]


def test_an_evaluation_that_is_not_there_is_not_found(store: httpx.Client) -> None:
    body = matrix(population={"prevalence": {"evaluation": "missing"}})
    assert store.post("/evaluate", json=body).status_code == 404


def test_a_gate_counts_the_items_that_were_sent(client: httpx.Client) -> None:
    report = evaluate(
        client,
        confusion_matrix=MAP,
        axis="rows_are_predicted",
        labels=LABELS,
        population={"strata": "predicted", "shares": SHARES},
        gates={"rules": [{"index": "recall", "classes": ["a"], "min_value": 0.5}]},
    )
    result = report["gate"]["results"][0]
    assert result["n"] == 50
    assert result["verdict"] == "pass"
    assert result["observed"] == report["per_class"]["a"]["indices"]["recall"]["value"]


def test_a_warning_about_few_items_counts_the_items_that_were_sent(client: httpx.Client) -> None:
    body: dict[str, Any] = {"labels": ["a", "b"], "confusion_matrix": [[50, 3], [4, 40]]}
    body["population"] = {"prevalence": {"a": 0.9, "b": 0.1}}
    warnings = client.post("/evaluate", json=body).json()["warnings"]
    assert "few_items" not in {warning["code"] for warning in warnings}
    body["confusion_matrix"] = [[500, 30], [4, 20]]
    warnings = client.post("/evaluate", json=body).json()["warnings"]
    assert [w["classes"] for w in warnings if w["code"] == "few_items"] == [["b"]]


def trend(store: httpx.Client, index: str = "accuracy", **query: str) -> list[Json]:
    response = store.get("/v1/projects/pets/trend", params={"index": index, **query})
    assert response.status_code == 200, response.text
    items: list[Json] = response.json()["items"]
    return items


def test_a_trend_says_which_points_are_about_a_population(store: httpx.Client) -> None:
    plain = keep(store, matrix())
    prevalence = {"prevalence": {"cat": 0.6, "dog": 0.3, "eel": 0.1}}
    weighed = keep(store, matrix(population=prevalence))
    shares = {"cat": 0.3, "dog": 0.3, "eel": 0.4}
    mapped = keep(store, matrix(population={"strata": "predicted", "shares": shares}))
    points = trend(store)
    for point, report in zip(points, (plain, weighed, mapped), strict=True):
        assert point["value"] == pytest.approx(report["overall"]["accuracy"]["value"])
        assert point["interval"] == pytest.approx(report["overall"]["accuracy"]["interval"])
        assert ("population" in point) == (report is not plain)
    assert "prevalence of the classes: cat 0.6, dog 0.3, eel 0.1" in points[1]["population"]
    assert "predicted classes" in points[2]["population"]


def test_values_of_strata_of_items_stay_out_of_a_trend(store: httpx.Client) -> None:
    population = {"strata": ["n", "s"] * 50, "shares": {"n": 0.2, "s": 0.8}}
    keep(store, {**ITEMS, "project": "pets", "population": population})
    (point,) = trend(store)
    assert point["value"] is None
    assert point["reason"] == "strata_of_items"


def leaderboard(store: httpx.Client) -> Json:
    query = {"index": "accuracy"}
    response = store.get("/v1/projects/pets/leaderboard", params=query)
    assert response.status_code == 200, response.text
    board: Json = response.json()
    return board


def test_a_leaderboard_ranks_values_about_one_population(store: httpx.Client) -> None:
    names: Json = {"test_set": {"id": "t"}, "model": "net"}
    prevalence = {"prevalence": {"cat": 0.9, "dog": 0.05, "eel": 0.05}}
    keep(store, matrix(version="plain", **names))
    # Right about cats, and of little use else: at the prevalence it is the better one.
    cats = [[99, 1, 0], [20, 70, 10], [20, 10, 70]]
    first = keep(store, matrix(version="a", population=prevalence, confusion_matrix=cats, **names))
    keep(store, matrix(version="b", population=prevalence, errors=9, **names))
    board = leaderboard(store)
    versions = [[entry["version"] for entry in tier["versions"]] for tier in board["tiers"]]
    assert versions == [["a"], ["b"]]
    best = board["tiers"][0]["versions"][0]
    assert best["value"] == pytest.approx(first["overall"]["accuracy"]["value"])
    assert board["unranked"][0]["version"] == "plain"
    assert board["unranked"][0]["reason"] == "different_populations"


@pytest.mark.parametrize("key", ["accuracy", "kappa", "f1"])
def test_a_series_at_equal_shares_has_the_values_of_reports_at_them(
    serve_app: ServeApp, tmp_path: Path, key: str
) -> None:
    tables = [[[60, 5, 5], [8, 20, 2], [1, 2, 9]], [[9, 1, 0], [2, 50, 8], [0, 0, 0]]]
    spurious: Json = {"spurious": [1, 0, 0]}
    options: Json = {"indices": ["accuracy", "kappa", "f1"]}
    with keeping(serve_app, tmp_path) as client:
        for table in tables:
            keep(client, matrix(confusion_matrix=table, **options))
        keep(client, matrix(**spurious, **options))
        members: Json = {"population": {"prevalence": "uniform"}, "project": None}
        bodies = [matrix(confusion_matrix=table, **members, **options) for table in tables]
        reports = [client.post("/evaluate", json=body).json() for body in bodies]
    label = "cat" if key == "f1" else None
    with closing(open_store(f"sqlite:///{tmp_path}/rprime.db", read_only=True)) as store:
        points = Measured.of(key, label, uniform=True).points(store, "pets", Filters(), 9)
    for point, report in zip(points[:2], reports, strict=True):
        values = report["overall"] if label is None else report["per_class"][label]["indices"]
        whole = values[key]
        assert point.value == pytest.approx(whole["value"])
        assert point.interval == pytest.approx(whole["interval"])
    assert points[0].population.endswith("equal shares of all classes")
    assert points[1].population.endswith("but eel")
    assert (points[2].value, points[2].reason) == (None, "not_with_population")


def test_the_same_items_are_compared_item_by_item(client: httpx.Client) -> None:
    report = evaluate(
        client,
        **ITEMS,
        population={"prevalence": {"a": 0.9, "b": 0.1}},
        baseline={"y_true": ITEMS["y_true"], "y_pred": ["a"] * 55 + ["b"] * 45},
        gates={
            "rules": [
                {"index": "accuracy", "max_drop": 0.3},
                {"index": "macro_f1", "max_drop": 0.45, "min_items": 10},
                {"index": "recall", "classes": "all", "max_drop": 0.4, "policy": "each"},
            ]
        },
    )
    assert report["comparison"]["pairing"] == "paired"
    delta = report["comparison"]["overall"]["accuracy"]
    assert report["comparison"]["method"] == "influence"
    assert delta["value"] == pytest.approx(0.9 * -0.2 + 0.1 * 0)
    assert [result["verdict"] for result in report["gate"]["results"]] == ["pass"] * 4


GATE = {"rules": [{"index": "accuracy", "max_drop": 0.05}]}


def test_a_gate_is_linted_and_planned_on_a_population(client: httpx.Client) -> None:
    body = {"confusion_matrix": [[90, 10], [2, 98]], "labels": ["a", "b"], "gates": GATE}
    at = body | {"population": {"prevalence": {"a": 0.95, "b": 0.05}}}
    for path in ("lint", "plan"):
        plain, answer = (client.post(f"/v1/gates/{path}", json=content) for content in (body, at))
        assert answer.status_code == 200, answer.text
        # Accuracy then rests on half of the items.
        key = "inconclusive_rate" if path == "lint" else "for_passing"
        assert answer.json()[key] > plain.json()[key]


@pytest.mark.parametrize(
    ("population", "pointer", "code"),
    [
        ({"strata": "predicted", "shares": {"a": 0.5, "b": 0.5}}, "/population", "not_for_lint"),
        ({"prevalence": {"evaluation": "x"}}, "/population", "not_for_lint"),
        ({"prevalence": {"a": 0.5, "b": 0.4}}, PREVALENCE, "shares_do_not_sum_to_one"),
    ],
)
def test_a_simulation_needs_a_prevalence(
    client: httpx.Client, population: Json, pointer: str, code: str
) -> None:
    body = {"confusion_matrix": [[90, 10], [2, 98]], "labels": ["a", "b"], "gates": GATE}
    response = client.post("/v1/gates/lint", json={**body, "population": population})
    assert response.status_code == 422
    error = response.json()["errors"][0]
    assert (error["pointer"], error["code"]) == (pointer, code)


def test_a_baseline_with_groups_has_no_population(client: httpx.Client) -> None:
    body = {**ITEMS, "population": {"prevalence": {"a": 0.9, "b": 0.1}}}
    baseline = {**ITEMS, "groups": [1, 2] * 50}
    refused(client, {**body, "baseline": baseline}, "/population", "not_with_population", "groups")


@pytest.mark.parametrize(
    "population",
    [{"prevalence": {"a": 0.6, "b": 0.4}}, {"strata": "predicted", "shares": {"a": 0.6, "b": 0.4}}],
)
def test_a_class_that_a_population_omits_is_refused(client: httpx.Client, population: Json) -> None:
    """Its items would count nothing: a model that confuses all of them would pass a gate."""
    content = {"confusion_matrix": MAP, "labels": LABELS}
    answer = client.post("/evaluate", json=content | {"population": population})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["code"] == "stratum_without_share"
    assert "of `c`, but no share" in error["detail"]
    (members,) = (member for member in population.values() if isinstance(member, dict))
    members["c"] = 0
    warnings = evaluate(client, **content, population=population)["warnings"]
    assert "class_absent" not in {warning["code"] for warning in warnings}


def test_the_prevalence_of_an_evaluation_is_that_of_its_population(store: httpx.Client) -> None:
    content = matrix(labels=["a", "b"], confusion_matrix=[[50, 5], [4, 41]], version="1")
    about = {"a": 0.01, "b": 0.99}
    first = keep(store, content | {"population": {"prevalence": about}})
    named = {"prevalence": {"evaluation": first["id"]}}
    other = content | {"version": "2", "confusion_matrix": [[48, 7], [4, 41]]}
    report = keep(store, other | {"population": named})
    assert report["population"]["shares"] == about
    drop = {"rules": [{"index": "accuracy", "max_drop": 0.1}]}
    bare = other | {"version": "3", "baseline": {"evaluation": first["id"]}, "gates": drop}
    for request, warned in ((bare, True), (bare | {"population": named, "version": "4"}, False)):
        kept = keep(store, request)
        sides = {"candidate": {"evaluation": kept["id"]}, "baseline": {"evaluation": first["id"]}}
        compared = store.post("/v1/compare", json=sides).json()
        for answer in (kept, compared):
            codes = {warning["code"] for warning in answer["warnings"]}
            assert ("baseline_population" in codes) == warned


def test_costs_and_cells_have_a_population(client: httpx.Client) -> None:
    content = {"confusion_matrix": MAP, "labels": LABELS}
    population = {"prevalence": SHARES}
    cost = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    report = evaluate(client, **content, cost=cost, population=population, families=["all"])
    low, high = report["overall"]["expected_cost"]["interval"]
    assert 0 < low < report["overall"]["expected_cost"]["value"] < high < 2
    rule = {"confusion": ["b", "c"], "max_value": 0.3}
    gates = {"rules": [rule]}
    results = [
        evaluate(client, **content, **more, gates=gates)["gate"]["results"]
        for more in ({}, {"population": population}, {"cost": cost, "kappa_weights": "linear"})
    ]
    assert results[0] == results[1] == results[2]
