"""Slices of stored evaluations: how they are named, kept and compared."""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from pydantic_core import PydanticCustomError

from rprime.schemas.population import read_slice
from tests.history_service import ServeApp, keep, keeping

Json = dict[str, Any]

DRAW = np.random.default_rng(8)
TRUE = DRAW.integers(3, size=1200)
OTHER = (TRUE + DRAW.integers(1, 3, size=1200)) % 3
LUCK = DRAW.random(1200)
REGION = np.array(["US", "EU", "Asia"])[DRAW.integers(3, size=1200)]
DEVICE = np.array(["web", "ios"])[DRAW.integers(2, size=1200)]
ALONE = ["links", "id", "created_at", "version"]


def body(version: str, wrong: float = 0.1, **more: object) -> Json:
    """Return a request of which a share of the items in the EU is wrong, and 10 % elsewhere."""
    predicted = np.where(np.where(REGION == "EU", wrong, 0.1) > LUCK, OTHER, TRUE)
    return {
        "y_true": TRUE.tolist(),
        "y_pred": predicted.tolist(),
        "slices": {"region": REGION.tolist(), "device": DEVICE.tolist()},
        "slice_crossings": [["region", "device"]],
        "indices": ["accuracy", "recall"],
        "project": "pets",
        "version": version,
        **more,
    }


@pytest.fixture
def store(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as client:
        yield client


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["region=EU"], {"region": "EU"}),
        (["region=EU", "device=ios"], {"region": "EU", "device": "ios"}),
        (["url=a=b"], {"url": "a=b"}),
        (['{"a=b": "EU"}', "device=ios"], {"a=b": "EU", "device": "ios"}),
        (["Re\u0301gion= EU "], {"R\u00e9gion": "EU"}),
        ({"device": "ios", "region": "EU"}, {"region": "EU", "device": "ios"}),
        ([], {}),
    ],
)
def test_a_slice_is_named_by_columns_and_values(given: object, named: dict[str, str]) -> None:
    assert read_slice(given) == tuple(sorted(named.items()))


@pytest.mark.parametrize(
    "given",
    [
        ["region"],
        ["region="],
        ["=EU"],
        ["region=EU", "region=US"],
        ["{region=EU"],
        ['{"region": 1}'],
        [["region", "EU"]],
        {"region": None},
        ["a=1", "b=1", "c=1", "d=1"],
    ],
)
def test_what_names_no_slice_is_refused(given: object) -> None:
    with pytest.raises(PydanticCustomError):
        read_slice(given)


@pytest.mark.parametrize(
    "more", [{}, {"keep_items": False}, {"slice_adjust": "benjamini_hochberg"}]
)
def test_a_stored_report_has_its_slices(store: httpx.Client, more: Json) -> None:
    first = keep(store, body("1", 0.3, **more))
    assert len(first["slices"]) == 11
    assert [*first["slices"][5]["slice"]] == ["region", "device"]
    later = store.get(f"/v1/evaluations/{first['id']}").json()
    assert later == first
    page = store.get(f"/v1/evaluations/{first['id']}/report.md").text
    assert "Weakest first, by Accuracy" in page
    assert store.get(f"/v1/evaluations/{first['id']}?include=slices").json()["slices"]


def test_slices_of_tables_are_kept(store: httpx.Client) -> None:
    cells = {"confusion_matrix": [[30, 2], [1, 40]], "unclassified": [3, 0]}
    slices = [
        {"slice": {"site": "a"}, **cells},
        {"slice": {"site": "b"}, "confusion_matrix": [[10, 2], [1, 10]]},
    ]
    whole = {"confusion_matrix": [[41, 5], [2, 52]], "unclassified": [3, 0], "labels": ["x", "y"]}
    first = keep(store, {**whole, "slices": slices, "project": "pets"})
    assert store.get(f"/v1/evaluations/{first['id']}").json() == first


@pytest.mark.parametrize("keep_items", [True, False])
def test_a_gate_judges_slices_against_a_stored_baseline(
    store: httpx.Client, keep_items: bool
) -> None:
    keep(store, body("1", keep_items=keep_items))
    rule = {"index": "accuracy", "max_drop": 0.05, "slices": "all"}
    gate = {"baseline": {"version": "1"}, "gates": {"rules": [rule]}}
    good = keep(store, body("2", 0.11, keep_items=keep_items, **gate))
    assert good["gate"]["verdict"] == "pass"
    worse = keep(store, body("3", 0.4, keep_items=keep_items, **gate))
    assert worse["gate"]["verdict"] == "fail"
    failed = [result["slice"] for result in worse["gate"]["results"] if result["verdict"] == "fail"]
    assert {"region": "EU"} in failed
    assert all(slice_.get("region", "EU") == "EU" for slice_ in failed)


def series(client: httpx.Client, query: str) -> Json:
    answer = client.get(f"/v1/projects/pets/trend?index={query}")
    assert answer.status_code == 200, answer.text
    trend: Json = answer.json()
    return trend


def test_a_slice_has_its_trend(store: httpx.Client) -> None:
    reports = [keep(store, body(str(i), wrong)) for i, wrong in enumerate((0.1, 0.11, 0.4))]
    keep(store, {key: m for key, m in body("4").items() if not key.startswith("slice")})
    for query, name in (
        ("slice=region%3DEU", {"region": "EU"}),
        ("slice=device=ios&slice=region=EU", {"device": "ios", "region": "EU"}),
        ('slice={"region":"US"}', {"region": "US"}),
    ):
        trend = series(store, f"accuracy&{query}")
        assert trend["slice"] == name
        assert [item["evaluation"] for item in trend["items"]] == [
            report["id"] for report in reports
        ]
        of_class = series(store, f"recall&class=1&{query}")["items"]
        for item, recall, report in zip(trend["items"], of_class, reports, strict=True):
            [part] = [entry for entry in report["slices"] if entry["slice"] == name]
            accuracy = part["overall"]["accuracy"]
            assert item["value"] == accuracy["value"]
            assert item["interval"] == accuracy["interval"]
            assert recall["value"] == part["per_class"]["1"]["indices"]["recall"]["value"]
    whole = series(store, "accuracy")
    assert (whole["slice"], len(whole["items"])) == (None, 4)
    listed = store.get("/v1/projects/pets/evaluations?slice=region=EU&version=2").json()["items"]
    assert [entry["id"] for entry in listed] == [reports[2]["id"]]


def test_an_unknown_slice_is_not_found_and_the_nearest_is_named(store: httpx.Client) -> None:
    keep(store, body("1"))
    for route in ("trend", "leaderboard"):
        place = f"/v1/projects/pets/{route}?index=accuracy"
        answer = store.get(f"{place}&slice=regio=EU")
        assert answer.status_code == 404
        assert "Did you mean `region=EU`" in answer.json()["detail"]
        assert store.get(f"{place}&slice=region").status_code == 422
        assert store.get(f"{place}&slice=region=EU&version=9").status_code in {200, 422}
    answer = store.get("/v1/projects/pets/figures/trend.svg?index=accuracy&slice=region=Mars")
    assert answer.status_code == 404


@pytest.mark.parametrize(
    ("query", "name", "inside"),
    [
        ("slice=region=EU", {"region": "EU"}, REGION == "EU"),
        (
            "slice=device=ios&slice=region=US",
            {"region": "US", "device": "ios"},
            (REGION == "US") & (DEVICE == "ios"),
        ),
    ],
)
@pytest.mark.parametrize("indices", [["accuracy", "recall"], None])
def test_a_slice_is_reported_as_its_items_alone(
    store: httpx.Client, query: str, name: Json, inside: Any, indices: list[str] | None
) -> None:
    rules = [{"index": "accuracy", "max_drop": 0.1}]
    keep(store, body("1"))
    whole = body("2", 0.4, gates={"rules": rules}, baseline={"version": "1"})
    del whole["indices"]
    whole |= {} if indices is None else {"indices": indices}
    place = f"/v1/evaluations/{keep(store, whole)['id']}"
    alone = {
        "labels": ["0", "1", "2"],
        **{side: np.array(whole[side])[inside].tolist() for side in ("y_true", "y_pred")},
        **({} if indices is None else {"indices": indices}),
    }
    expected = store.post("/v1/evaluate?include=table", json=alone).json()
    answer = store.get(f"{place}?include=table&{query}")
    report = answer.json()
    for member in ("overall", "per_class", "counts", "top_confusions", "table", "options"):
        assert report[member] == expected[member], member
    assert report["slice"] == name
    assert not {"gate", "comparison", "slices"} & report.keys()
    assert "evaluation-verdict" not in answer.headers
    assert answer.headers["etag"] != store.get(f"{place}?include=table").headers["etag"]
    part = store.get(f"{place}?include=overall&{query}").json()
    assert (part["overall"], part["slice"]) == (report["overall"], name)
    accuracy = f"{expected['overall']['accuracy']['value']:.4f}"
    text = ", ".join(f"{column}={value}" for column, value in name.items())
    for suffix in ("md", "html", "csv", "openmetrics.txt", "junit.xml"):
        rendering = store.get(f"{place}/report.{suffix}?{query}").text
        assert suffix == "junit.xml" or accuracy in rendering, suffix
        assert suffix == "csv" or text in html.unescape(rendering), suffix


def test_a_badge_is_about_a_slice(store: httpx.Client) -> None:
    report = keep(store, body("1", 0.4))
    keep(store, {key: m for key, m in body("2").items() if not key.startswith("slice")})
    [part] = [entry for entry in report["slices"] if entry["slice"] == {"region": "EU"}]
    badge = "/v1/projects/pets/badge.json?slice=region=EU"
    answer = store.get(f"{badge}&index=accuracy").json()
    assert answer["label"] == "Accuracy of region=EU"
    assert answer["message"] == f"{part['overall']['accuracy']['value']:.4f}"
    answer = store.get(f"{badge}&index=recall&class=1").json()
    assert answer["label"] == "Recall of 1, region=EU"
    assert answer["message"] == f"{part['per_class']['1']['indices']['recall']['value']:.4f}"
    assert store.get(badge).status_code == 422  # a verdict is about all items
    assert store.get("/v1/projects/pets/badge.svg?class=1").status_code == 422
    assert store.get("/v1/projects/pets/badge.json?index=recall&class=9").status_code == 404


def test_an_evaluation_without_such_a_slice_is_not_found(store: httpx.Client) -> None:
    path = f"/v1/evaluations/{keep(store, body('1'))['id']}"
    bare = keep(store, {key: m for key, m in body("2").items() if not key.startswith("slice")})
    project = "/v1/projects/pets"
    places = [path, f"{path}/report.md", f"{path}/figures/confusion.svg", f"/ui{path[3:]}"]
    for place in (*places, f"{project}/badge.svg?index=accuracy"):
        sign = "&" if "?" in place else "?"
        answer = store.get(f"{place}{sign}slice=regio=EU", headers={"Accept": "application/json"})
        assert answer.status_code == 404, place
        assert "Did you mean `region=EU`" in answer.json()["detail"], place
        assert store.get(f"{place}{sign}slice=region").status_code == 422, place
    assert store.get(f"/v1/evaluations/{bare['id']}?slice=region=EU").status_code == 404


@pytest.mark.parametrize("keep_items", [True, False])
def test_versions_are_ranked_on_a_slice(store: httpx.Client, keep_items: bool) -> None:
    for version, wrong in (("1", 0.5), ("2", 0.1), ("3", 0.12)):
        keep(store, body(version, wrong, keep_items=keep_items))
    place = "/v1/projects/pets/leaderboard?index=accuracy"
    board = store.get(f"{place}&slice=region=EU").json()
    assert board["slice"] == {"region": "EU"}
    tiers = [{entry["version"] for entry in tier["versions"]} for tier in board["tiers"]]
    # A few items more are wrong and none less, which only shows item by item.
    lost = int(((REGION == "EU") & (LUCK >= 0.1) & (LUCK < 0.12)).sum())
    assert 0.5**lost < 0.05
    assert tiers == ([{"2"}, {"3"}, {"1"}] if keep_items else [{"2", "3"}, {"1"}])
    assert ("unpaired" in board["tiers"][0]["why"]) is not keep_items
    calm = store.get(f"{place}&slice=region=US").json()
    assert len(calm["tiers"]) == 1
    assert calm["tiers"][0]["versions"][0]["value"] != board["tiers"][0]["versions"][0]["value"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("slice=region=EU", "region=EU"),
        ("slice=device=ios&slice=region=US", "region=US, device=ios"),
    ],
)
def test_a_figure_of_an_evaluation_says_its_slice(
    store: httpx.Client, query: str, text: str
) -> None:
    place = f"/v1/evaluations/{keep(store, body('1'))['id']}/figures"
    for figure in ("confusion", "per_class", "radar"):
        part, whole = (store.get(f"{place}/{figure}.svg{suffix}") for suffix in (f"?{query}", ""))
        assert text in part.text, figure
        assert text not in whole.text, figure
        assert part.headers["etag"] != whole.headers["etag"], figure


def test_a_figure_says_its_slice(store: httpx.Client) -> None:
    for version in "12":
        keep(store, body(version))
    for name in ("trend.svg?index=accuracy", "lines.svg?index=recall"):
        whole = store.get(f"/v1/projects/pets/figures/{name}")
        part = store.get(f"/v1/projects/pets/figures/{name}&slice=region=EU")
        assert part.status_code == 200
        assert "region=EU" in part.text
        assert "region=EU" not in whole.text


@pytest.mark.parametrize("keep_items", [True, False])
def test_two_models_are_compared_on_a_slice(store: httpx.Client, keep_items: bool) -> None:
    first, two = (
        keep(store, body(v, w, keep_items=keep_items)) for v, w in (("1", 0.1), ("2", 0.4))
    )
    stored = {"evaluation": first["id"]}
    for candidate in ({"evaluation": two["id"]}, evidence(0.4)):
        request = {"candidate": candidate, "baseline": stored, "slice": {"region": "EU"}}
        answer = store.post("/v1/compare", json=request)
        assert answer.status_code == 200, answer.text
        report = answer.json()
        assert report["slice"] == {"region": "EU"}
        parts = [
            next(s for s in r["slices"] if s["slice"] == report["slice"]) for r in (first, two)
        ]
        values = [part["overall"]["accuracy"]["value"] for part in parts]
        difference = report["comparison"]["overall"]["accuracy"]
        assert difference["value"] == pytest.approx(values[1] - values[0])
        paired = keep_items
        assert report["comparison"]["pairing"] == ("paired" if paired else "unpaired")
    for baseline in (stored, evidence(0.1)):
        request = {"candidate": stored, "baseline": baseline, "slice": {"region": "Eu"}}
        [error] = store.post("/v1/compare", json=request).json()["errors"]
        assert (error["pointer"], error["code"]) == ("/slice", "unknown_slice")
        assert "`region=EU`" in error["detail"]


UNEVEN = {"confusion_matrix": [[80, 10], [2, 8]], "labels": ["a", "b"], "indices": ["accuracy"]}
EVEN = {"confusion_matrix": [[45, 5], [9, 41]], "labels": ["a", "b"], "indices": ["accuracy"]}


def test_a_history_is_computed_at_equal_shares(store: httpx.Client) -> None:
    for version, request in (("1", UNEVEN), ("2", EVEN)):
        keep(store, {**request, "project": "pets", "version": version})
    trend = series(store, "accuracy&prevalence=uniform")
    assert trend["prevalence"] == "uniform"
    expected = [(80 / 90 + 8 / 10) / 2, (45 / 50 + 41 / 50) / 2]
    assert [item["value"] for item in trend["items"]] == pytest.approx(expected)
    assert all("equal shares" in item["population"] for item in trend["items"])
    assert series(store, "accuracy")["prevalence"] is None
    place = "/v1/projects/pets/leaderboard?index=accuracy"
    board = store.get(f"{place}&prevalence=uniform").json()
    assert board["prevalence"] == "uniform"
    [tier] = board["tiers"]
    assert [entry["value"] for entry in tier["versions"]] == pytest.approx(sorted(expected)[::-1])
    for route in ("trend", "leaderboard"):
        refused = store.get(f"/v1/projects/pets/{route}?index=accuracy&prevalence=none")
        assert refused.status_code == 422


def test_classes_of_a_history_are_computed_at_their_populations(store: httpx.Client) -> None:
    """On the page of a model, as a report on it says."""
    uneven = {name: member for name, member in UNEVEN.items() if name != "indices"}
    population = {"prevalence": {"a": 0.2, "b": 0.8}}
    names = {"project": "pets", "model": "m"}
    keep(store, {**uneven, **names, "version": "1"})
    keep(store, {**uneven, **names, "version": "2", "population": population})
    reports = [
        store.post("/v1/evaluate", json={**uneven, **more}).json()["per_class"]
        for more in ({}, {"population": population}, {"population": {"prevalence": "uniform"}})
    ]
    entries = [[indices[label]["indices"]["precision"] for label in "ab"] for indices in reports]
    precision = [[entry["value"] for entry in row] for row in entries]
    page = "/ui/projects/pets/models/m?index=precision"
    for query, (newest, oldest), about in (
        ("", (precision[1], precision[0]), "a 0.2, b 0.8"),
        ("&prevalence=uniform", (precision[2], precision[2]), "equal shares of all classes"),
    ):
        shown = store.get(page + query).text
        values = {label: (then, now) for label, then, now in zip("ab", oldest, newest, strict=True)}
        for label, (then, now) in values.items():
            change = f"{now - then:+.4f}".replace("-", "\u2212")
            change = "0.0000" if then == now else change
            assert f"{label}: {now:.4f} in 2; {change} since 1" in shown
        assert about in shown[: shown.index("<form")]


def test_a_class_of_a_slice_leads_to_the_comparison_of_the_slice(store: httpx.Client) -> None:
    for version, wrong in (("1", 0.1), ("2", 0.4)):
        keep(store, body(version, wrong, model="m"))
    page = store.get("/ui/projects/pets/models/m?slice=region=EU&index=recall").text
    classes = set(re.findall(r'href="[^"]*(ui/projects/pets/classes[^"]*)"', page))
    assert len(classes) == 3
    pages = [page, *(store.get(f"/{html.unescape(link)}").text for link in classes)]
    for shown in pages:
        versions = shown[shown.index('<h2 id="versions">') :]
        [link] = re.findall(r'href="[^"]*(ui/compare[^"]*)"', versions)
        compared = store.get(f"/{html.unescape(link)}").text
        assert "Candidate against baseline, <bdi>region=EU</bdi>" in compared


def test_a_slice_is_computed_at_equal_shares(store: httpx.Client) -> None:
    report = keep(store, body("1", 0.4, indices=["accuracy", "macro_recall"]))
    [part] = [entry for entry in report["slices"] if entry["slice"] == {"region": "EU"}]
    [item] = series(store, "accuracy&prevalence=uniform&slice=region=EU")["items"]
    assert item["value"] == pytest.approx(part["overall"]["macro_recall"]["value"])


@pytest.mark.parametrize("kept", [True, False])
def test_two_models_are_compared_at_equal_shares(store: httpx.Client, kept: bool) -> None:
    sides = [{n: m for n, m in side.items() if n != "indices"} for side in (EVEN, UNEVEN)]
    if kept:
        sides = [{"evaluation": keep(store, {**side, "project": "pets"})["id"]} for side in sides]
    request = {"candidate": sides[0], "baseline": sides[1], "prevalence": "uniform"}
    report = store.post("/v1/compare", json=request).json()
    assert report["population"] == "about a population with equal shares of all classes"
    expected = (45 / 50 + 41 / 50) / 2 - (80 / 90 + 8 / 10) / 2
    assert report["comparison"]["overall"]["accuracy"]["value"] == pytest.approx(expected)
    plain = store.post(
        "/v1/compare", json={n: request[n] for n in ("candidate", "baseline")}
    ).json()
    assert plain["population"] is None
    assert plain["comparison"]["comparability"] == "different"


def test_a_stored_candidate_is_compared_at_its_prevalence(store: httpx.Client) -> None:
    sides = [{n: m for n, m in side.items() if n != "indices"} for side in (EVEN, UNEVEN)]
    population = {"prevalence": {"a": 0.2, "b": 0.8}}
    of_candidate, of_baseline = (
        keep(store, {**side, "project": "pets", **more})["id"]
        for side, more in zip(sides, ({"population": population}, {}), strict=True)
    )
    request = {"candidate": {"evaluation": of_candidate}, "baseline": {"evaluation": of_baseline}}
    report = store.post("/v1/compare", json=request).json()
    assert "a 0.2, b 0.8" in report["population"]
    expected = {**sides[0], "population": population, "baseline": sides[1]}
    whole = store.post("/v1/evaluate", json=expected).json()
    # What an evaluation says of the candidate is not repeated in its comparison.
    deltas = {
        key: {"candidate": whole["overall"][key]["value"], **delta}
        for key, delta in whole["comparison"]["overall"].items()
    }
    assert report["comparison"]["overall"] == deltas
    page = store.get(f"/ui/compare?candidate={of_candidate}&baseline={of_baseline}")
    value = deltas["accuracy"]["value"]
    assert "a 0.2, b 0.8" in page.text
    assert f"{value:+.4f}".replace("-", "\u2212") in page.text


def test_no_population_has_spurious_predictions(store: httpx.Client) -> None:
    side = {"confusion_matrix": [[9, 1], [0, 9]], "labels": ["a", "b"], "spurious": [1, 0]}
    request = {"candidate": side, "baseline": side, "prevalence": "uniform"}
    [error] = store.post("/v1/compare", json=request).json()["errors"]
    assert error["code"] == "not_with_population"


def evidence(wrong: float) -> Json:
    """Return a side of a comparison."""
    request = body("", wrong)
    return {name: request[name] for name in ("y_true", "y_pred", "slices", "slice_crossings")}


def head(store: httpx.Client, place: str, **query: str) -> str:
    """Return the text of a page up to its classes."""
    page = store.get(place, params=query)
    assert page.status_code == 200, page.text
    text = re.sub(r"<[^>]+>", " ", page.text[page.text.index("<main") :])
    return re.sub(r"\s+", " ", html.unescape(text))


@pytest.mark.parametrize("slice_", [{}, {"slice": "region=EU"}])
def test_pages_show_an_evaluation_at_equal_shares(store: httpx.Client, slice_: Json) -> None:
    """Page and comparison have the values of POST /v1/compare; links and forms keep the choice."""
    baseline, two = (keep(store, body(v, w, model="m")) for v, w in (("1", 0.1), ("2", 0.4)))
    sides = {"candidate": two["id"], "baseline": baseline["id"]}
    request: Json = {name: {"evaluation": identifier} for name, identifier in sides.items()}
    request |= {"prevalence": "uniform", "slice": {"region": "EU"} if slice_ else {}}
    compared = store.post("/v1/compare", json={n: m for n, m in request.items() if m}).json()
    changes = compared["comparison"]["overall"]["accuracy"]
    query = {**slice_, "prevalence": "uniform"}
    about = "about a population with equal shares of all classes"
    page = head(store, f"/ui/evaluations/{two['id']}", **query)
    assert about in page
    assert f"{changes['candidate']:.4f}" in page
    assert "The slices are not stored" not in page  # they are, but without this population
    shown = head(store, "/ui/compare", **sides, **query)
    assert f"The changes are {about}" in shown
    assert f"{changes['candidate']:.4f}" in shown
    assert f"{abs(changes['value']):.4f}" in shown
    # A figure of the service is about the evaluation as it is stored.
    assert "/figures/" in store.get(f"/ui/evaluations/{two['id']}", params=slice_).text
    assert "/figures/" not in store.get(f"/ui/evaluations/{two['id']}", params=query).text
    text = store.get("/ui/compare", params={**sides, **query}).text
    assert text.count('type="hidden" name="prevalence" value="uniform"') >= 1  # to swap the sides
    assert '<option value="uniform" selected>' in text
    model = store.get("/ui/projects/pets/models/m", params={**query, "index": "recall"}).text
    links = re.findall(r'href="[^"]*(ui/compare[^"]*)"', model)
    assert links
    assert all("prevalence=uniform" in link for link in links)
    assert about in store.get(f"/{html.unescape(links[0])}").text
    assert "prevalence=uniform" in store.get(f"/ui/evaluations/{two['id']}", params=slice_).text
    # The route of figures draws evaluations as they were stored.
    figure = "figures/per_class.svg" + ("?slice=region%3DEU" if slice_ else "") + '"'
    page = f"/ui/evaluations/{two['id']}"
    assert figure in store.get(page, params=slice_).text
    assert "figures/per_class.svg" not in store.get(page, params=query).text


def test_pages_say_why_an_evaluation_has_no_equal_shares(store: httpx.Client) -> None:
    first = keep(store, {**EVEN, "spurious": [1, 0], "project": "pets"})
    figure = f"v1/evaluations/{first['id']}/figures/per_class.svg"
    assert figure in store.get(f"/ui/evaluations/{first['id']}").text
    page = store.get(f"/ui/evaluations/{first['id']}?prevalence=uniform")
    assert figure not in page.text  # the route draws evaluations as they were stored
    assert page.status_code == 422
    assert "spurious" in page.text
    assert store.get(f"/ui/evaluations/{first['id']}/slices?prevalence=uniform").status_code == 422


def test_a_comparison_says_that_it_is_not_about_the_population(store: httpx.Client) -> None:
    """Where the baseline lacks a class of it, both values and changes are about the items."""
    bare = {n: m for n, m in EVEN.items() if n != "indices"} | {"project": "pets"}
    population = {"prevalence": {"a": 0.2, "b": 0.8}}
    two = keep(store, {**bare, "population": population})
    baseline = keep(store, {**bare, "confusion_matrix": [[45, 5], [0, 0]]})
    shown = head(store, "/ui/compare", candidate=two["id"], baseline=baseline["id"])
    assert "about the items, not about the population of the candidate's report" in shown
    assert "0.8600" in shown
    assert f"{0.2 * 0.9 + 0.8 * 0.82:.4f}" not in shown


def test_slices_are_left_out_at_equal_shares(store: httpx.Client) -> None:
    """A slice has shares of the classes of its own, or lacks some: no test holds for it."""
    baseline, two = (keep(store, body(v, w)) for v, w in (("1", 0.1), ("2", 0.4)))
    request: Json = {
        "candidate": {"evaluation": two["id"]},
        "baseline": {"evaluation": baseline["id"]},
    }
    request |= {"prevalence": "uniform"}
    report = store.post("/v1/compare", json=request).json()
    assert report["comparison"].get("slices") is None
    assert "slices_not_compared" in [warning["code"] for warning in report["warnings"]]
    rule = {"index": "accuracy", "max_drop": 0.1, "slices": "region"}
    answer = store.post("/v1/compare", json={**request, "gates": {"rules": [rule]}})
    [error] = answer.json()["errors"]
    assert (error["pointer"], error["code"]) == ("/gates/rules/0/slices", "not_with_population")


@pytest.mark.parametrize("keep_items", [True, False])
def test_page_and_compare_find_the_slices_of_the_report(
    store: httpx.Client, keep_items: bool
) -> None:
    """Unless the items are gone: then the slices are compared as tables, and the page says so."""
    options = {"indices": ["kappa", "recall"], "slice_adjust": "benjamini_hochberg"}
    baseline = keep(store, body("1", 0.1))
    more = {"baseline": {"version": "1"}, "confidence": 0.9, "keep_items": keep_items}
    two = keep(store, body("2", 0.2, **options, **more))
    sides = {"candidate": two["id"], "baseline": baseline["id"]}
    stored = {name: {"evaluation": identifier} for name, identifier in sides.items()}
    comparison = store.post("/v1/compare", json=stored).json()["comparison"]
    assert (comparison["slices"] == two["comparison"]["slices"]) is keep_items
    assert [*comparison["slices"][0]["overall"]] == ["kappa"]
    shown = head(store, "/ui/compare", **sides)
    report = head(store, f"/ui/evaluations/{two['id']}")
    assert ("compared as tables" in shown) is not keep_items
    assert "compared as tables" not in report
    sentence = re.search(r"\d+ of \d+ slices got worse \([^)]*\)", report)
    assert sentence
    assert (sentence[0] in shown) is keep_items
