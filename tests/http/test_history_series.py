"""Trend and leaderboard: computed from the stored tables, the same as each report says."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from tests.history_service import LABELS, Json, ServeApp, keep, keeping, labels, matrix


@pytest.fixture
def client(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


def trend(client: httpx.Client, index: str, **query: object) -> list[Json]:
    params = {"index": index, **{name: str(value) for name, value in query.items()}}
    answer = client.get("/v1/projects/pets/trend", params=params)
    assert answer.status_code == 200, answer.text
    items: list[Json] = answer.json()["items"]
    return items


def leaderboard(client: httpx.Client, index: str, **query: object) -> Json:
    params = {"index": index, **{name: str(value) for name, value in query.items()}}
    answer = client.get("/v1/projects/pets/leaderboard", params=params)
    assert answer.status_code == 200, answer.text
    board: Json = answer.json()
    return board


def versions(board: Json) -> list[list[str]]:
    return [[entry["version"] for entry in tier["versions"]] for tier in board["tiers"]]


REASONS = {"chi2": "no_interval"}


@pytest.mark.parametrize("index", ["accuracy", "r_prime", "kappa", "macro_f1", "chi2", "mcc"])
def test_a_trend_has_the_values_of_the_reports(client: httpx.Client, index: str) -> None:
    contents = [
        matrix(3, version="1", indices=[index]),
        labels(2, version="2", indices=[index]),
        matrix(4, version="3", indices=[index], unclassified=[1, 0, 2]),
        {**matrix(5, version="4", indices=[index]), "labels": ["eel", "dog", "cat"]},
        labels(2, version="5", indices=[index], sample_weight=[0.5] * 400),
    ]
    reports = [keep(client, content) for content in contents]
    items = trend(client, index)
    assert [item["evaluation"] for item in items] == [report["id"] for report in reports]
    for item, report in zip(items, reports, strict=True):
        value = report["overall"][index]
        assert item["value"] == pytest.approx(value["value"], rel=1e-12)
        if report["counts"].get("weight"):  # the report alone reads the weights of the items
            assert (item["interval"], item["reason"]) == (None, REASONS.get(index, "weighted"))
            assert (value.get("interval") is None) == (index == "chi2")
            continue
        assert (item["interval"] is None) == (value.get("interval") is None)
        if value.get("interval") is not None:
            assert item["interval"] == pytest.approx(value["interval"], rel=1e-9)


def test_a_trend_of_a_class_leaves_out_who_does_not_know_it(client: httpx.Client) -> None:
    report = keep(client, matrix(3, version="1"))
    other = {"confusion_matrix": [[5, 0], [1, 4]], "labels": ["dog", "fox"], "project": "pets"}
    last = keep(client, {**other, "version": "2", "indices": ["recall"]})
    assert [i["value"] for i in trend(client, "recall", **{"class": "dog"})] == [
        report["per_class"]["dog"]["indices"]["recall"]["value"],
        last["per_class"]["dog"]["indices"]["recall"]["value"],
    ]
    assert [i["version"] for i in trend(client, "recall", **{"class": "cat"})] == ["1"]
    undefined = {"confusion_matrix": [[0, 0], [1, 4]], "labels": ["dog", "fox"]}
    keep(client, {**undefined, "project": "pets", "version": "3", "indices": ["recall"]})
    item = trend(client, "recall", **{"class": "dog"})[-1]
    assert (item["value"], item["interval"]) == (None, None)


def test_a_class_that_no_evaluation_has_is_not_found(client: httpx.Client) -> None:
    keep(client, matrix())
    query = {"index": "recall", "class": "unicorn"}
    for path in ("trend", "leaderboard", "figures/trend.svg"):
        answer = client.get(f"/v1/projects/pets/{path}", params=query)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert "`class`" in answer.json()["detail"]
        assert "unicorn" not in answer.text
    assert trend(client, "recall", **{"class": "unicorn"}, version="of which there is none") == []


def test_items_in_groups_have_their_interval_in_the_report_alone(client: httpx.Client) -> None:
    groups = [str(i // 4) for i in range(400)]
    report = keep(client, labels(version="1", groups=groups))
    keep(client, labels(2, version="2", gates={"rules": [{"index": "accuracy", "min_value": 0}]}))
    first, second = trend(client, "accuracy")
    assert first["value"] == report["overall"]["accuracy"]["value"]
    assert (first["interval"], first["reason"]) == (None, "items_in_groups")
    assert second["interval"] is not None
    assert "reason" not in second


def test_scores_are_not_kept_and_that_is_said(client: httpx.Client) -> None:
    scores = np.random.default_rng(0).dirichlet([1, 1, 1], 400).tolist()
    gates = {"rules": [{"index": "log_loss", "max_value": 9, "test": "none"}]}
    content = labels(version="1", labels=LABELS, gates=gates) | {"y_score": scores}
    content["indices"] = ["accuracy", "log_loss", "roc_auc"]
    report = keep(client, content)
    stored = client.get(report["links"]["self"]).json()
    for answer in (report, stored):
        assert "scores_not_kept" in [warning["code"] for warning in answer["warnings"]]
        assert answer["gate"]["results"][0]["observed"] == report["overall"]["log_loss"]["value"]
    lost = {"value": None, "interval": None, "reason": "no_scores"}
    assert stored["per_class"]["cat"]["indices"]["roc_auc"] == lost
    assert "scores_not_kept" in client.get(f"{report['links']['self']}/report.md").text
    # It is no doubt about the values, beside which a page says it.
    page = client.get(f"/ui/evaluations/{report['id']}").text
    beside = page[page.index('<h2 id="overall"') : page.index('<h2 id="classes"')]
    assert page.count("The scores are not stored") == beside.count("The scores are not stored") == 1
    assert client.get(report["links"]["self"], params={"include": "curves"}).json() == stored
    for path in ("trend", "leaderboard"):
        answer = client.get(f"/v1/projects/pets/{path}?index=roc_auc&class=cat")
        assert answer.status_code == 422
        assert "scores" in answer.json()["errors"][0]["detail"]
    drop = {"rules": [{"index": "roc_auc", "classes": "all", "max_drop": 0.1}]}
    held = keep(client, content | {"version": "2", "baseline": {"version": "1"}, "gates": drop})
    assert {result["verdict"] for result in held["gate"]["results"]} == {"not_comparable"}
    assert {result["reason"] for result in held["gate"]["results"]} == {"no_scores"}


def test_a_trend_is_the_newest_part_of_what_fits(client: httpx.Client) -> None:
    for number in range(4):
        keep(client, matrix(number, version=str(number), model="ab"[number % 2]))
    assert [i["version"] for i in trend(client, "accuracy", limit=2)] == ["2", "3"]
    assert [i["version"] for i in trend(client, "accuracy", model="a")] == ["0", "2"]


@pytest.mark.parametrize(
    "query",
    ["index=accurracy", "index=recall", "index=accuracy&class=cat", "index=weighted_kappa",
     "index=accuracy&limit=100000", "index=accuracy&clas=cat"],
)  # fmt: skip
def test_a_series_of_nothing_is_refused(client: httpx.Client, query: str) -> None:
    keep(client, matrix())
    for path in ("trend", "leaderboard"):
        assert client.get(f"/v1/projects/pets/{path}?{query}").status_code == 422


def test_versions_that_nothing_tells_apart_share_a_tier(client: httpx.Client) -> None:
    shares = {"a": 0.1, "b": 0.1, "c": 0.3, "d": 0.3}
    for seed, (version, wrong) in enumerate(shares.items()):
        keep(client, labels(seed, wrong, version=version))
    board = leaderboard(client, "accuracy")
    assert [set(tier) for tier in versions(board)] == [{"a", "b"}, {"c", "d"}]
    assert [tier["tier"] for tier in board["tiers"]] == [1, 2]
    assert "paired" in board["tiers"][0]["why"]
    values = [entry["value"] for tier in board["tiers"] for entry in tier["versions"]]
    assert values == sorted(values, reverse=True)
    assert len(board["test_set"]) == 64


def test_pairs_of_items_tell_apart_what_tables_cannot(client: httpx.Client) -> None:
    """The same errors and some more: small beside all errors, plain beside the same ones."""
    base = labels(1, 0.2)
    pairs = enumerate(zip(base["y_true"], base["y_pred"], strict=True))
    worse = [
        LABELS[(LABELS.index(p) + 1) % 3] if t == p and i % 30 == 0 else p for i, (t, p) in pairs
    ]
    keep(client, base | {"version": "a"})
    keep(client, base | {"y_pred": worse, "version": "b"})
    assert versions(leaderboard(client, "accuracy")) == [["a"], ["b"]]
    for content in (base | {"version": "a"}, base | {"y_pred": worse, "version": "b"}):
        keep(client, {**content, "project": "pets", "model": "tables", "keep_items": False})
    assert versions(leaderboard(client, "accuracy", model="tables")) == [["a", "b"]]


def test_only_one_test_set_is_ranked(client: httpx.Client) -> None:
    keep(client, matrix(1, version="old", test_set={"id": "spring"}))
    keep(client, matrix(2, version="new", test_set={"id": "autumn"}))
    board = leaderboard(client, "accuracy")
    assert (board["test_set"], versions(board)) == ("autumn", [["new"]])
    assert versions(leaderboard(client, "accuracy", test_set="spring")) == [["old"]]
    print_ = keep(client, labels(1, version="items"))["test_set"]["fingerprint"]
    assert versions(leaderboard(client, "accuracy", test_set=print_)) == [["items"]]
    assert versions(leaderboard(client, "accuracy", test_set="none")) == []


def test_only_the_newest_evaluation_of_a_version_stands(client: httpx.Client) -> None:
    keep(client, matrix(1, version="1"))
    second = keep(client, matrix(9, version="1"))["id"]
    keep(client, matrix(5))
    keep(client, matrix(6))
    board = leaderboard(client, "accuracy")
    shown = [entry for tier in board["tiers"] for entry in tier["versions"]]
    assert [entry["evaluation"] for entry in shown if entry["version"] == "1"] == [second]
    assert len(shown) == 3


def test_less_is_better_where_it_is(client: httpx.Client) -> None:
    keep(client, labels(1, 0.1, version="good"))
    keep(client, labels(2, 0.5, version="bad"))
    assert versions(leaderboard(client, "error_rate")) == [["good"], ["bad"]]
    answer = client.get("/v1/projects/pets/leaderboard?index=no_information_rate")
    assert answer.json()["errors"][0]["code"] == "not_ordered"


def test_what_has_no_value_has_no_place(client: httpx.Client) -> None:
    keep(client, {"confusion_matrix": [[4, 1], [0, 0]], "project": "pets", "version": "1"})
    keep(client, {"confusion_matrix": [[4, 1], [1, 9]], "project": "pets", "version": "2"})
    board = leaderboard(client, "recall", **{"class": "1"})
    assert versions(board) == [["2"]]
    assert [(u["version"], u["reason"]) for u in board["unranked"]] == [("1", "no_true_samples")]


@pytest.mark.parametrize("k", [2, 3])
def test_curves_that_were_asked_for_are_kept(client: httpx.Client, k: int) -> None:
    rng = np.random.default_rng(k)
    names, true = LABELS[:k], np.arange(400) % k
    scores = rng.dirichlet(np.ones(k), 400) + np.eye(k)[true]
    content = {"y_true": [names[i] for i in true], "y_score": (scores / 2).tolist()}
    report = keep(client, content | {"labels": names, "project": "pets", "curves": True})
    address = report["links"]["self"]
    assert "curves" not in client.get(address).json()
    curves = client.get(address, params={"include": "curves"}).json()["curves"]
    assert curves["reliability"] == report["curves"]["reliability"]
    assert list(curves["roc"]) == list(curves["precision_recall"]) == names
    for kind in ("roc", "precision_recall"):
        for label in names:
            whole, kept = report["curves"][kind][label], curves[kind][label]
            points = list(zip(*(whole[axis] for axis in list(whole)[:2]), strict=True))
            assert len(kept["recall"]) <= 96
            assert set(zip(*(kept[axis] for axis in list(whole)[:2]), strict=True)) <= set(points)
    assert curves["risk_coverage"]["coverage"][-1] == 1
    parts = client.get(address, params={"include": "curves,warnings"}).json()
    assert parts["curves"] == curves
    assert "overall" not in parts


WEIGHED: Json = {"cell_weights": [[1, 5, 1], [1, 1, 1], [1, 1, 1]]}


@pytest.mark.parametrize(
    ("index", "options", "said"),
    [
        ("accuracy", WEIGHED, "cell weights"),
        ("macro_f_beta", {"beta": 2}, "beta 2"),
        ("macro_precision", {"undefined": "zero"}, "undefined as zero"),
        ("accuracy", {"beta": 2}, None),
        ("recall", WEIGHED, "cell weights"),
        ("micro_recall", {"average_over": ["eel", "dog"]}, "chosen classes"),
        ("accuracy", {"average_except": ["cat"]}, None),
    ],
)
def test_a_series_honours_the_options_of_each_evaluation(
    client: httpx.Client, index: str, options: Json, said: str | None
) -> None:
    never: Json = {"confusion_matrix": [[9, 0, 1], [2, 0, 8], [1, 0, 9]], "indices": [index]}
    reports = [keep(client, matrix(**never)), keep(client, matrix(**never, version="2", **options))]
    named = {"class": "cat"} if index == "recall" else {}
    items = trend(client, index, **named)
    for item, report in zip(items, reports, strict=True):
        whole = report["per_class"]["cat"]["indices"] if named else report["overall"]
        assert item["value"] == pytest.approx(whole[index]["value"], rel=1e-12)
    assert [item.get("options") for item in items] == [None, said]
    board = leaderboard(client, index, **named)
    # Values with other options than the newest have no place beside it.
    expected = [("none", "different_options")] if said else []
    assert [
        (entry["version"] or "none", entry["reason"]) for entry in board["unranked"]
    ] == expected
    badge = client.get("/v1/projects/pets/badge.json", params={"index": index, **named}).json()
    assert float(badge["message"]) == pytest.approx(items[1]["value"], abs=1e-3)
    assert badge["label"].endswith(f" with {said}") is bool(said)


def test_other_cell_weights_have_no_place_beside_the_best(client: httpx.Client) -> None:
    keep(client, matrix(version="1", cell_weights=[[1, 9, 1], [1, 1, 1], [1, 1, 1]]))
    for version, errors in (("2", 5), ("3", 9)):
        keep(client, matrix(errors, version=version, **WEIGHED))
    board = leaderboard(client, "accuracy")
    assert [entry["reason"] for entry in board["unranked"]] == ["different_options"]


def test_weighted_values_say_why_they_have_no_interval(client: httpx.Client) -> None:
    keep(client, matrix(**WEIGHED))
    [item] = trend(client, "accuracy")
    assert (item["interval"], item["reason"]) == (None, "weighted")
    [item] = trend(client, "accuracy", prevalence="uniform")
    assert (item["value"], item["reason"]) == (None, "not_with_population")


def test_a_fingerprint_and_a_short_commit_find_evaluations(client: httpx.Client) -> None:
    commits = ["01abcdef01ab" + "0" * 28, "01abcdef01cd" + "0" * 28]
    kept = [keep(client, labels(i, commit=commit)) for i, commit in enumerate(commits)]
    fingerprint = kept[0]["test_set"]["fingerprint"]
    for path in ("evaluations", "trend?index=accuracy"):
        place = f"/v1/projects/pets/{path}{'&' if '?' in path else '?'}"

        def found(query: str, place: str = place) -> int:
            return len(client.get(place + query).json()["items"])

        assert found(f"test_set={fingerprint}") == 2
        assert found(f"test_set={'0' * 64}") == 0
        assert found("commit=01abcdef01ab") == 1
        assert found("commit=01abcdef") == 2
        assert found(f"commit={commits[1]}") == 1
        assert found("commit=01abc") == 0
        assert found("commit=01abcdee") == 0
