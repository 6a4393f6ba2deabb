"""Where a model fails: the slices of a stored evaluation, and of a comparison, as pages."""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import orjson
import pytest

from tests.dashboard.browser import WIDTHS, Visitor
from tests.dashboard.test_questions import MOST_CLICKS, Reader
from tests.history_service import Json, ServeApp, keeping

JSON = {"Content-Type": "application/json"}
HOSTILE = "<img src=x onerror=alert(1)>"
DRAW = np.random.default_rng(3)
TRUE = DRAW.integers(10, size=3000)
REGION = DRAW.choice(["EU", "US", "Asia"], TRUE.size)
DEVICE = DRAW.choice(["ios", HOSTILE], TRUE.size)
RULES = {"rules": [{"index": "accuracy", "max_drop": 0.01}]}
MANY = 1000


def send(client: httpx.Client, **content: Any) -> Json:
    answer = client.post("/v1/evaluate", content=orjson.dumps(content), headers=JSON)
    assert answer.status_code == 201, answer.text[:500]
    report: Json = answer.json()
    return report


def version(wrong: np.ndarray, **more: Any) -> Json:
    predicted = np.where(wrong, (TRUE + 1) % 10, TRUE)
    return {
        "y_true": TRUE.astype(str).tolist(),
        "y_pred": predicted.astype(str).tolist(),
        "labels": [str(digit) for digit in range(10)],
        "slices": {"region": REGION.tolist(), "device": DEVICE.tolist()},
        "slice_crossings": [["region", "device"]],
        "project": "digits",
        "model": "svc",
        **more,
    }


@pytest.fixture(scope="module")
def history(
    serve_app: ServeApp, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """Serve two versions, of which v14 lost class 7 in the EU, and one with a thousand slices."""
    with keeping(serve_app, tmp_path_factory.mktemp("slices")) as client:
        plain = DRAW.random(TRUE.size) < 0.06
        send(client, **version(plain, version="v13"))
        lost = plain | ((REGION == "EU") & (TRUE == 7) & (DRAW.random(TRUE.size) < 0.7))
        send(client, **version(lost, version="v14", baseline={"version": "v13"}, gates=RULES))
        site = np.repeat(np.arange(MANY), 10)
        right = (DRAW.random(site.size) > 0.1 + 0.8 * (site < 5)).astype(str).tolist()
        slices = {"site": [f"site {i}" for i in site.tolist()]}
        yes = ["True"] * (site.size - 1) + ["False"]
        send(client, y_true=yes, y_pred=right, slices=slices, project="sites", version="1")
        send(client, y_true=["a", "b"] * 50, y_pred=["a", "b"] * 50, project="whole")
        yield client


def newest(history: httpx.Client, project: str, name: str = "") -> str:
    query = {"version": name} if name else {}
    answer = history.get(f"/v1/projects/{project}/evaluations", params=query).json()
    identifier: str = answer["items"][0]["id"]
    return identifier


def rows(page: str) -> list[str]:
    """Return the names of the slices, in their order."""
    table = page[page.index('<table class="slices">') :]
    return re.findall(r'<th scope="row"><a[^>]*><bdi>([^<]*)', table[: table.index("</table>")])


def test_the_slices_are_those_of_the_report(history: httpx.Client) -> None:
    identifier = newest(history, "digits", "v14")
    report = history.get(f"/v1/evaluations/{identifier}").json()
    page = history.get(f"/ui/evaluations/{identifier}/slices").text
    weakest = [report["slices"][i] for i in report["weakest"]]
    names = [", ".join(f"{k}={v}" for k, v in part["slice"].items()) for part in weakest]
    assert rows(page) == [name.replace("<", "&lt;").replace(">", "&gt;") for name in names]
    assert rows(page)[0] == "region=EU"
    values = [f"{part['overall']['accuracy']['value']:.4f}" for part in weakest]
    table = page[page.index('<table class="slices">') :]
    assert re.findall(r'<td class="n">(0\.\d{4}) ', table) == values
    assert f"all items: {report['overall']['accuracy']['value']:.4f}" in page


def test_index_class_and_column_are_chosen_without_a_script(history: httpx.Client) -> None:
    identifier = newest(history, "digits", "v14")
    where = f"/ui/evaluations/{identifier}/slices"
    of_class = history.get(where, params={"class": "7", "index": "recall", "name": ""}).text
    assert "Recall of class" in of_class
    assert rows(of_class)[0].startswith("region=EU")
    items = int(((TRUE == 7) & (REGION == "EU")).sum())
    assert f'<td class="n">{items}</td>' in of_class
    # A class has no Cohen's kappa of its own among what can be chosen: recall stands in.
    assert "Recall of class" in history.get(where, params={"class": "7", "index": "mcc"}).text
    kappa = history.get(where, params={"index": "kappa", "column": "region"}).text
    assert "by Cohen&#39;s kappa shrunk" in kappa
    assert sorted(rows(kappa)) == ["region=Asia", "region=EU", "region=US"]
    crossed = history.get(where, params={"column": "region and device", "name": "us"}).text
    assert len(rows(crossed)) == 2
    assert "No slice matches." in history.get(where, params={"name": "nowhere"}).text
    for query, status in (({"class": "x"}, 404), ({"index": "R'"}, 422), ({"page": "0"}, 422)):
        assert history.get(where, params=query).status_code == status
    whole = newest(history, "whole")
    assert history.get(f"/ui/evaluations/{whole}/slices").status_code == 404
    assert "/slices" not in history.get(f"/ui/evaluations/{whole}").text


def test_a_slice_is_shown_alone(history: httpx.Client) -> None:
    identifier = newest(history, "digits", "v14")
    page = history.get(f"/ui/evaluations/{identifier}", params={"slice": "region=EU"}).text
    report = history.get(f"/v1/evaluations/{identifier}").json()
    alone = next(part for part in report["slices"] if part["slice"] == {"region": "EU"})
    assert "<bdi>svc v14, region=EU</bdi>" in page
    assert f'<span class="soft">items</span> <bdi>{alone["items"]:,.0f}</bdi>' in page
    recall = alone["per_class"]["7"]["indices"]["recall"]["value"]
    assert f'<td class="n">{recall:.4f}' in page
    assert 'id="slices"' not in page
    crossing = {"slice": orjson.dumps({"region": "EU", "device": "ios"}).decode()}
    assert (
        "region=EU, device=ios"
        in history.get(f"/ui/evaluations/{identifier}", params=crossing).text
    )
    for text, status in (("region=Mars", 404), ("region", 422)):
        answer = history.get(f"/ui/evaluations/{identifier}", params={"slice": text})
        assert answer.status_code == status


def test_a_slice_is_compared_alone(history: httpx.Client) -> None:
    sides = {name: newest(history, "digits", of) for name, of in SIDES.items()}
    whole = history.get("/ui/compare", params=sides).text
    assert re.search(r'href="[^"]*;slice=region%3DEU#classes"><bdi>region=EU<', whole)
    page = history.get("/ui/compare", params={**sides, "slice": "region=EU"}).text
    assert "Candidate against baseline, <bdi>region=EU</bdi>" in page
    classes = re.findall(r'<tr id="class-(\w+)"', page)
    assert classes[0] == "7"
    inside = (REGION == "EU") & (TRUE == 7)
    choice = re.findall(r'<option value="([^"]*)"', page[page.index('id="slice"') :])
    assert "region=EU" in choice
    # The row of class 7 in the map has the items of the slice.
    drawn = page[page.index('<svg class="figure heat"') :]
    assert f">{inside.sum()}</text>" in drawn[: drawn.index("</svg>")]
    assert 'href="#slices"' not in page
    assert history.get("/ui/compare", params={**sides, "slice": "region=Mars"}).status_code == 422
    swapped = page[: page.index("Swap")].rindex("<form")
    assert 'name="slice" value="region=EU"' in page[swapped:]


OPTIONS: list[Json] = [
    {},
    {"indices": ["kappa", "recall"], "confidence": 0.99},
    {"indices": ["accuracy"], "slice_adjust": "benjamini_hochberg"},
    {"gates": {"rules": [{"index": "scott_pi", "max_drop": 0.5}]}},
]


@pytest.mark.parametrize("asked", OPTIONS)
def test_report_and_comparison_name_the_same_slices(
    serve_app: ServeApp, tmp_path: Path, asked: Json
) -> None:
    """What changed is planted: a few items of class 7 in the EU, which only shows item by item."""
    lost = (REGION == "EU") & (TRUE == 7) & (np.arange(TRUE.size) % 4 == 0)
    wrong = np.arange(TRUE.size) % 3 == 0
    with keeping(serve_app, tmp_path) as client:
        sides = [send(client, **version(wrong, version="1", **asked))]
        more = {"version": "2", "baseline": {"version": "1"}}
        sides.append(send(client, **version(wrong | lost, **more, **asked)))
        baseline, candidate = (side["id"] for side in sides)
        comparison = sides[1]["comparison"]
        worse = [
            ", ".join(f"{column}={value}" for column, value in part["slice"].items())
            for part in comparison["slices"]
            if any(
                delta["p_adjusted"] is not None
                and delta["p_adjusted"] <= 1 - comparison["confidence"]
                and delta["value"] < 0
                for delta in part["overall"].values()
            )
        ]
        query = {"candidate": candidate, "baseline": baseline}
        page = client.get("/ui/compare", params=query).text
        report = client.get(f"/v1/evaluations/{candidate}/report.html").text
        stored = [{"evaluation": identifier} for identifier in (candidate, baseline)]
        options = {name: asked[name] for name in asked.keys() - {"gates"}}
        both = {"candidate": stored[0], "baseline": stored[1], "options": options}
        again = client.post("/v1/compare", json=both).json()["comparison"]
    assert "region=EU" in worse
    assert not any("US" in name or "Asia" in name for name in worse)
    assert again["slices"] == comparison["slices"]
    names = re.findall(r'slice=[^"]*#classes"><bdi>([^<]*)</bdi>', page)
    assert list(dict.fromkeys(map(html.unescape, names))) == worse
    sentences = [re.findall(r"\d+ of \d+ slices got worse[^<]*", text) for text in (page, report)]
    assert sentences[0] == sentences[1]
    assert sentences[0][0].startswith(f"{len(worse)} of 11 slices")


def test_a_slice_is_followed_over_versions(history: httpx.Client) -> None:
    """The pages of a model and of a project have the values of the slice, as the trend does."""
    where = "/v1/projects/digits/trend"
    query = {"index": "kappa", "model": "svc", "slice": "region=EU"}
    trend = history.get(where, params=query).json()["items"]
    values = [f"{item['value']:.4f}" for item in trend]
    whole = history.get(where, params=query | {"slice": []}).json()["items"]
    assert values != [f"{item['value']:.4f}" for item in whole]
    params = {"overall": "kappa", "slice": "region=EU"}
    page = history.get("/ui/projects/digits/models/svc", params=params).text
    shown = re.findall(r'data-label="Cohen&#39;s kappa"><span>([^<]*)', page)
    assert shown == values[::-1]
    assert 'name="slice" value="region=EU"' in page
    listed = history.get("/ui/projects/digits", params={"slice": "region=EU"}).text
    assert re.findall(r'data-label="Cohen&#39;s kappa"><span>([^<]*)', listed) == values[::-1]
    assert "slice=region%3DEU" in listed  # the other orders keep it
    crossing = {"slice": ["region=EU", "device=ios"]}
    assert history.get("/ui/projects/digits/models/svc", params=crossing).status_code == 200


SIDES = {"candidate": "v14", "baseline": "v13"}


def test_a_thousand_slices_stay_light(history: httpx.Client) -> None:
    identifier = newest(history, "sites")
    page = history.get(f"/ui/evaluations/{identifier}/slices").text
    assert len(page) < 200_000
    assert page.count("<") - page.count("</") < 3000
    assert "1,000 slices" in page
    assert len(rows(page)) == 12
    weak = {f"site=site {i}" for i in range(5)}
    assert set(rows(page)[:5]) == weak
    last = history.get(f"/ui/evaluations/{identifier}/slices", params={"page": "84"}).text
    assert len(rows(last)) == 1000 - 83 * 12
    assert "Page 84 of 84" in last


@pytest.mark.slow
@pytest.mark.parametrize("name", ["slices", "class", "many", "alone", "compare", "whole-compare"])
def test_everybody_can_use_a_page(history: httpx.Client, visit: Visitor, name: str) -> None:
    candidate, baseline = (newest(history, "digits", label) for label in ("v14", "v13"))
    compared = f"/ui/compare?candidate={candidate}&baseline={baseline}"
    path = {
        "slices": f"/ui/evaluations/{candidate}/slices",
        "class": f"/ui/evaluations/{candidate}/slices?class=7&column=region",
        "many": f"/ui/evaluations/{newest(history, 'sites')}/slices",
        "alone": f"/ui/evaluations/{candidate}?slice=region%3DEU",
        "compare": f"{compared}&slice=region%3DEU",
        "whole-compare": compared,
    }[name]
    seen = visit(f"{history.base_url}{path}")
    assert seen.violations() == []
    seen.shoot(f"slices-{name}")
    for width in WIDTHS:
        seen.page.set_viewport_size({"width": width, "height": 900})
        assert seen.overflow() == 0


def test_a_reader_chooses_a_class_by_the_keyboard(history: httpx.Client, visit: Visitor) -> None:
    page = visit(
        f"{history.base_url}/ui/evaluations/{newest(history, 'digits', 'v14')}/slices"
    ).page
    page.get_by_label("Class").press("7")
    page.get_by_label("Class").press("Tab")
    page.get_by_role("button", name="Apply").press("Enter")
    page.wait_for_url("**class=7**")
    assert "name=" not in page.url  # what was left empty stays out of the address
    names = page.locator(".slices tbody th")
    first = names.first.inner_text()
    assert first.startswith("region=EU")
    names.first.get_by_role("link").press("Enter")
    page.wait_for_url("**?slice=*")
    assert first in page.locator("h1").inner_text()


def test_a_version_got_worse_on_a_region_for_a_class(history: httpx.Client, visit: Visitor) -> None:
    reader = Reader(visit(f"{history.base_url}/").page)
    page = reader.page
    reader.click(page.get_by_role("link", name="svc v14"))
    reader.click(page.locator(".worst").get_by_role("link", name="region=EU", exact=True))
    assert page.locator(".sides .which").all_inner_texts() == ["svc v14", "svc v13"]
    assert "region=EU" in page.locator("h1").inner_text()
    answer = page.locator(".changes tbody tr").first
    reader.sees(answer.locator("th"))
    assert answer.locator("th").inner_text() == "7"
    assert "worse" in answer.inner_text()
    assert reader.clicks <= MOST_CLICKS
