"""A chart in a page is the chart in a file, says its numbers, leads on, and covers no text."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.dashboard.browser import Visitor
from tests.history_service import Json, ServeApp, keep, keeping
from tests.report.drawings import boxes, marks, overlaps, texts

NAMES = [f"kind{i}" for i in range(10)]
MANY = [f"class_{i:03d}" for i in range(300)]
MODEL = "/ui/projects/{}/models/net"
_TEXTS = """(element) => [...element.querySelectorAll("text")].map((one) => {
  const { x, y, width, height } = one.getBoundingClientRect();
  // A line of text is higher than its letters.
  return { text: one.textContent, x, y: y + 2, width, height: height - 4 };
})"""


@pytest.fixture(scope="module")
def kept(serve_app: ServeApp, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Serve a project of ten classes over four versions, and one of three hundred."""
    with keeping(serve_app, tmp_path_factory.mktemp("charts")) as client:
        for project, names, versions in (
            ("ten", NAMES, 4),
            ("three", NAMES[:3], 2),
            ("many", MANY, 2),
        ):
            for version in range(versions):
                draw = np.random.default_rng(version)
                table = draw.poisson(2 if len(names) < 100 else 0.2, (len(names), len(names)))
                np.fill_diagonal(table, draw.integers(60, 100, len(names)))
                body: Json = {
                    "confusion_matrix": table.tolist(),
                    "labels": names,
                    "project": project,
                    "model": "net",
                    "version": f"v{version}",
                    "gates": {
                        "rules": [{"index": "accuracy", "min_value": 0.99 if version == 1 else 0.1}]
                    },
                }
                keep(client, body | ({"baseline": {"version": "v0"}} if version else {}))
        yield client


def newest(client: httpx.Client, project: str) -> str:
    page: Json = client.get(f"/v1/projects/{project}/evaluations?limit=1").json()
    identifier: str = page["items"][0]["id"]
    return identifier


def figure(client: httpx.Client, path: str, **query: Any) -> bytes:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.content


def page_of(visit: Visitor, client: httpx.Client, path: str, width: int = 1440) -> Page:
    return visit(f"{client.base_url}{path}", width=width).page


def chart(page: Page, place: str) -> Locator:
    """Return the chart of a section that is in sight."""
    found = page.locator(f"[aria-labelledby={place}] svg.figure").filter(visible=True)
    return found.first


def counted(drawn: Locator, name: str) -> int:
    """Count the lines, cells or marks of a name."""
    paths = drawn.locator(f"path[data-name={name}]").evaluate_all(
        "all => all.map(one => one.getAttribute('d')).join('')"
    )
    return int(paths.count("M"))


def words(drawn: Locator) -> list[str]:
    return [part["text"] for part in drawn.evaluate(_TEXTS)]


def test_the_heat_map_of_a_page_is_that_of_the_file(kept: httpx.Client, visit: Visitor) -> None:
    identifier = newest(kept, "ten")
    drawn = chart(page_of(visit, kept, f"/ui/evaluations/{identifier}"), "confusion")
    file = figure(kept, f"/v1/evaluations/{identifier}/figures/confusion.svg")
    for kind in ("right", "wrong", "empty"):
        assert counted(drawn, kind) == marks(file, kind) > 0
    written = texts(file)
    start = written.index("Predicted class")
    assert words(drawn) == written[start : start + len(words(drawn))]


def test_the_errors_of_many_classes_are_seen(kept: httpx.Client) -> None:
    """What is drawn later lies above: the ground of small cells is the first of all."""
    path = f"/v1/evaluations/{newest(kept, 'many')}/figures/confusion.svg"
    kinds = re.findall(r'data-name="(empty|wrong|right)"', figure(kept, path).decode())
    assert kinds[0] == "empty"
    assert {"wrong", "right"} <= set(kinds[1:])
    assert "empty" not in kinds[1:]


def test_a_cell_of_weighted_items_says_their_weight(
    serve_app: ServeApp, tmp_path: Path, visit: Visitor
) -> None:
    columns = {"y_true": ["a", "b", "c"] * 40, "y_pred": ["a", "b", "b"] * 40}
    with keeping(serve_app, tmp_path) as client:
        weighted = {**columns, "sample_weight": [0.5, 1.5, 2] * 40, "project": "weighted"}
        page = visit(f"{client.base_url}/ui/evaluations/{keep(client, weighted)['id']}").page
    expect(page.locator(".cost")).to_contain_text("weight 80")
    expect(page.locator(".cost")).not_to_contain_text("items")
    expect(page.get_by_role("application")).to_have_accessible_name(re.compile("weight of 80"))


def test_a_cell_says_its_items_and_what_they_cost(kept: httpx.Client, visit: Visitor) -> None:
    page = page_of(visit, kept, f"/ui/evaluations/{newest(kept, 'ten')}")
    drawn = chart(page, "confusion")
    cell, left, top = (
        float(str(drawn.get_attribute(f"data-{n}"))) for n in ("cell", "left", "top")
    )
    drawn.hover(position={"x": left + cell / 2, "y": top + cell / 2})
    expect(page.locator(".tip")).to_contain_text("kind0, right")
    drawn.click(position={"x": left + 1.5 * cell, "y": top + cell / 2})
    expect(page.locator(".cost h3")).to_have_text("kind0 \u2192 kind1")
    assert page.url.endswith("cell=0%2C1")


def test_a_trend_marks_what_failed_says_its_numbers_and_leads_on(
    kept: httpx.Client, visit: Visitor
) -> None:
    page = page_of(visit, kept, MODEL.format("ten"))
    drawn, file = (
        chart(page, "trend"),
        figure(kept, "/v1/projects/ten/figures/trend.svg", index="macro_f1"),
    )
    assert counted(drawn, "course-1") == marks(file, "course-1") == 4
    assert counted(drawn, "fail") == marks(file, "fail") == 1
    assert [text for text in words(drawn) if text in {"v0", "v1", "v2", "v3"}] == [
        "v0",
        "v1",
        "v2",
        "v3",
    ]
    step = drawn.locator("[data-name=step]").nth(1)
    step.hover()
    expect(page.locator(".tip")).to_contain_text("Macro F1 0.")
    expect(page.locator(".tip")).to_contain_text("failed")
    step.click()
    assert page.locator("h1").inner_text() == "net v1"


def test_the_charts_of_a_model_are_there_without_a_script(kept: httpx.Client) -> None:
    page = kept.get(MODEL.format("ten")).text
    assert len(re.findall(r'<svg class="figure', page)) == 4
    assert page.count('<a data-name="step"') == 8
    assert page.count("<title>v1: Macro F1 0.") == 2
    assert all(f"{name}: 0." in page for name in NAMES)


def test_a_class_leads_to_its_page(kept: httpx.Client, visit: Visitor) -> None:
    page = page_of(visit, kept, MODEL.format("ten"))
    drawn = chart(page, "values")
    names = [text for text in words(drawn) if text in NAMES]
    assert sorted(names) == NAMES
    drawn.locator("[data-name=class]").first.click()
    assert page.locator("h1").inner_text() == f"Class {names[0]} of net"
    assert counted(chart(page, "trend"), "course-1") == 4


def test_an_axis_of_a_trend_without_intervals_has_round_numbers(
    kept: httpx.Client, visit: Visitor
) -> None:
    for version in range(3):
        table = [[40 + version, 5, 5], [5, 40 + version, 5], [2, 8, 40 + version]]
        content = {"project": "narrow", "model": "net", "version": f"v{version}"}
        weights = {"cell_weights": [[1, 5, 1], [1, 1, 1], [1, 1, 1]]}
        keep(kept, content | weights | {"confusion_matrix": table, "unclassified": [50, 50, 50]})
    drawn = chart(page_of(visit, kept, MODEL.format("narrow")), "trend")
    ticks = [float(text) for text in words(drawn) if re.fullmatch(r"0\.\d{1,3}", text)]
    assert len(ticks) > 2
    assert np.ptp(np.diff(sorted(ticks))) < 1e-9
    start = kept.get("/ui/projects", headers={"Accept": "text/html"}).text
    assert "¶ with beta, cell_weights or undefined of its request" in start


@pytest.mark.parametrize("width", [pytest.param(1440, marks=pytest.mark.slow), 390])
def test_no_texts_overlap_with_300_classes(kept: httpx.Client, visit: Visitor, width: int) -> None:
    for path, names in (
        (f"/ui/evaluations/{newest(kept, 'many')}", ("confusion",)),
        (MODEL.format("many"), ("trend", "values")),
    ):
        page = page_of(visit, kept, path, width)
        for name in names:
            drawn = chart(page, name).evaluate(_TEXTS)
            assert drawn
            assert not overlaps(drawn), name


@pytest.mark.parametrize(
    "project", ["ten", *(pytest.param(name, marks=pytest.mark.slow) for name in ("three", "many"))]
)
def test_no_texts_of_a_file_overlap(kept: httpx.Client, project: str) -> None:
    evaluation = f"/v1/evaluations/{newest(kept, project)}/figures"
    history = f"/v1/projects/{project}/figures"
    for name in ("confusion", "radar", "per_class", "trend", "lines", "boxes"):
        place = evaluation if name in {"confusion", "radar", "per_class"} else history
        # Rectangles of names that are turned around a small circle say nothing.
        for width in (800,) if name == "radar" else (800, 400):
            content = figure(kept, f"{place}/{name}.svg", width=width)
            assert not overlaps(boxes(content)), (name, width)
