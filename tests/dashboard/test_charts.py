"""A chart in a page is the figure in a file: order, names, colours, dashes, direction, places."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import Page

from tests.dashboard.browser import Visitor
from tests.history_service import Json, ServeApp, keep, keeping
from tests.report.drawings import SVG, boxes, drawing, overlaps, texts

NAMES = [f"kind{i}" for i in range(10)]
MANY = [f"class_{i:03d}" for i in range(300)]
MODEL = "/ui/projects/{}/models/net"
_PARTS = """(element) => {
  const drawn = element.chart.getZr().storage.getDisplayList(true);
  return drawn.filter((one) => !one.ignore && !one.invisible).map((one) => {
    const rect = one.getBoundingRect().clone();
    if (one.transform) rect.applyTransform(one.transform);
    const { text = "", fill, stroke, lineDash } = one.style;
    const { x, y, width, height } = rect;
    const points = one.shape?.points ?? null;
    const dash = Array.isArray(lineDash);
    return { type: one.type, text, fill, stroke, dash, x, y, width, height, points };
  });
}"""


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


def parts(page: Page, name: str) -> list[Json]:
    """Return everything that a chart of a page draws."""
    chart = page.locator(f"[data-chart={name}]")
    chart.locator("canvas").wait_for(state="visible")
    shapes: list[Json] = chart.evaluate(_PARTS)
    return shapes


def colour(text: str) -> tuple[int, ...]:
    """Return the channels of a colour, however it is written."""
    if text.startswith("#"):
        return tuple(int(text[i : i + 2], 16) for i in (1, 3, 5))
    return tuple(int(float(n)) for n in re.findall(r"[\d.]+", text)[:3])


def strokes(content: bytes, group: str, part: str = "stroke") -> list[tuple[int, ...]]:
    """Return the colours of what a group of a file draws."""
    (element,) = (e for e in drawing(content).iter(f"{SVG}g") if e.get("id") == group)
    styles = [e.get("style", "") for e in element.iter() if f"{part}: #" in e.get("style", "")]
    return [colour(style.split(f"{part}: ")[1][:7]) for style in styles]


def corners(content: bytes, group: str) -> Any:
    """Return where the marks of a line of a file stand, shape (n, 2)."""
    (element,) = (e for e in drawing(content).iter(f"{SVG}g") if e.get("id") == group)
    return np.array(
        [(float(u.get("x", "")), float(u.get("y", ""))) for u in element.iter(f"{SVG}use")]
    )


def alike(points: Any, other: Any) -> bool:
    """Tell whether points are the same but for where and how large the picture is."""
    scaled = [(np.array(p) - np.min(p, axis=0)) / np.ptp(p, axis=0) for p in (points, other)]
    return bool(np.abs(scaled[0] - scaled[1]).max() <= 0.02)


def lines_of(shapes: list[Json], stroke: tuple[int, ...], points: int) -> list[Json]:
    """Return the lines of a page that have a colour."""
    drawn = [p for p in shapes if p["type"] in {"ec-polyline", "polyline"} and p["stroke"]]
    return [p for p in drawn if colour(p["stroke"]) == stroke and len(flat(p)) == points]


def flat(part: Json) -> Any:
    return np.array(part["points"], dtype=float).reshape(-1, 2)


def order(shapes: list[Json], names: list[str]) -> list[str]:
    """Return names from above downwards."""
    return [part["text"] for part in sorted(named(shapes, names), key=lambda part: part["y"])]


def named(shapes: list[Json], names: list[str]) -> list[Json]:
    return [part for part in shapes if part["text"] in names]


def test_the_heat_map_of_a_page_is_that_of_the_file(kept: httpx.Client, visit: Visitor) -> None:
    identifier = newest(kept, "ten")
    drawn = parts(page_of(visit, kept, f"/ui/evaluations/{identifier}"), "heat")
    file = figure(kept, f"/v1/evaluations/{identifier}/figures/confusion.svg")
    for shapes in (named(drawn, NAMES), named(boxes(file), NAMES)):
        # Columns from left to right above the cells, rows from above downwards.
        across = sorted(shapes, key=lambda part: part["y"])[:10]
        down = sorted(shapes, key=lambda part: part["x"])[:10]
        assert [part["text"] for part in sorted(across, key=lambda part: part["x"])] == NAMES
        assert [part["text"] for part in sorted(down, key=lambda part: part["y"])] == NAMES
    cells = [
        part for part in drawn if part["type"] == "rect" and part["text"] == "" and part["fill"]
    ]
    shades = {colour(part["fill"]) for part in cells}
    for kind in ("right", "wrong"):
        for shade in strokes(file, kind, "fill"):
            assert min(max(abs(a - b) for a, b in zip(shade, s, strict=True)) for s in shades) <= 2
    numbers = [part["text"] for part in drawn if part["text"].isdigit()]
    assert sorted(numbers) == sorted(text for text in texts(file) if text.isdigit())


@pytest.mark.parametrize(("project", "groups"), [("ten", 1), ("three", 3)])
def test_the_radar_of_a_page_is_that_of_the_file(
    kept: httpx.Client, visit: Visitor, project: str, groups: int
) -> None:
    identifier = newest(kept, project)
    page = page_of(visit, kept, f"/ui/evaluations/{identifier}")
    drawn = parts(page, "radar")
    file = figure(kept, f"/v1/evaluations/{identifier}/figures/radar.svg")
    last = "v3" if project == "ten" else "v1"
    series = [f"net {last}", "net v0"]
    assert [p["text"] for p in sorted(named(drawn, series), key=lambda p: p["x"])] == series
    assert [text for text in texts(file) if text in series] == series
    names = NAMES if project == "ten" else NAMES[:3]
    assert {p["text"] for p in named(drawn, names)} == set(names) <= set(texts(file))
    hues = [(0, 114, 178), (213, 94, 0)]
    if groups > 1:
        # Bars: candidate and baseline of the first class, then of the second.
        fills = [colour(p["fill"]) for p in drawn if p["type"] == "rect" and p["width"] > 30]
        assert [fills.count(hue) for hue in hues] == [3, 3]
        ids = [e.get("id") for e in drawing(file).iter(f"{SVG}g")]
        assert [ids.count(f"outline-{i}") for i in (1, 2)] == [3, 3]
        # The classes stand in the order of the dots, which is that of the table.
        dots = parts(page, "dots")
        assert order(drawn, names) == order(dots, names) != names
        path = f"/v1/evaluations/{identifier}/figures/per_class.svg"
        dots = boxes(figure(kept, path, index="r_prime"))
        assert order(boxes(file), names) == order(dots, names) != names
        return
    for number, hue in enumerate(hues, 1):
        assert set(strokes(file, f"outline-{number}")) == {hue}
        (line,) = (p for p in lines_of(drawn, hue, 11) if p["type"] == "polyline")
        assert line["dash"] == (number == 2)
        assert alike(flat(line)[:10], corners(file, f"outline-{number}")[:10])


def test_the_dots_of_a_page_are_those_of_the_file(kept: httpx.Client, visit: Visitor) -> None:
    identifier = newest(kept, "ten")
    drawn = parts(page_of(visit, kept, f"/ui/evaluations/{identifier}"), "dots")
    file = figure(
        kept, f"/v1/evaluations/{identifier}/figures/per_class.svg", index=["r_prime", "f1"]
    )
    assert order(drawn, NAMES) == order(boxes(file), NAMES) != NAMES
    ticks = [float(p["text"]) for p in drawn if re.fullmatch(r"[01](\.\d+)?", p["text"])]
    assert np.ptp(np.diff(sorted(ticks))) < 1e-9 < len(ticks)
    circles = [p for p in drawn if p["type"] == "circle" and p["fill"] not in {"none", None}]
    assert {colour(p["fill"]) for p in circles} == {(0, 114, 178)}
    groups = [e for e in drawing(file).iter(f"{SVG}g") if e.get("id") == "values"]
    places = [(float(u.get("x", "")), float(u.get("y", ""))) for u in groups[0].iter(f"{SVG}use")]
    middles = [(p["x"] + p["width"] / 2, p["y"] + p["height"] / 2) for p in circles]
    assert alike(sorted(middles, key=lambda p: p[1]), sorted(places, key=lambda p: p[1]))


def test_a_narrow_trend_without_intervals_has_numbers_at_its_axis(
    kept: httpx.Client, visit: Visitor
) -> None:
    for version in range(3):
        table = [[40 + version, 5, 5], [5, 40 + version, 5], [2, 8, 40 + version]]
        content = {"project": "narrow", "model": "net", "version": f"v{version}"}
        weights = {"cell_weights": [[1, 5, 1], [1, 1, 1], [1, 1, 1]]}
        keep(kept, content | weights | {"confusion_matrix": table, "unclassified": [50, 50, 50]})
    drawn = parts(page_of(visit, kept, MODEL.format("narrow")), "trend")
    ticks = [float(p["text"]) for p in drawn if re.fullmatch(r"0\.\d{1,3}", p["text"])]
    assert len(ticks) > 2
    assert np.ptp(np.diff(sorted(ticks))) < 1e-9
    start = kept.get("/ui/projects", headers={"Accept": "text/html"}).text
    assert "¶ with beta, cell_weights or undefined of its request" in start


def test_the_charts_of_a_model_are_the_figures_of_its_project(
    kept: httpx.Client, visit: Visitor
) -> None:
    page = page_of(visit, kept, MODEL.format("ten"))
    blue = (0, 114, 178)
    trend = figure(kept, "/v1/projects/ten/figures/trend.svg", index="macro_f1")
    drawn = parts(page, "trend")
    (line,) = lines_of(drawn, blue, 4)
    assert alike(flat(line), corners(trend, "course-1"))
    steps = [f"v{i}" for i in range(4)]
    for chart in (drawn, boxes(trend)):
        assert [p["text"] for p in sorted(named(chart, steps), key=lambda p: p["x"])] == steps
    (end,) = (text for text in texts(trend) if re.fullmatch(r"0\.\d{4}", text))
    assert named(drawn, [end])
    bad = (168, 51, 10)
    assert set(strokes(trend, "fail", "fill")) == {bad}
    assert (
        sum(bool(p["fill"]) and p["fill"] != "none" and colour(p["fill"]) == bad for p in drawn)
        == 1
    )

    lines = figure(kept, "/v1/projects/ten/figures/lines.svg")
    drawn = parts(page, "lines")
    ends = [
        [p["text"] for p in sorted(named(shapes, NAMES), key=lambda p: p["y"])]
        for shapes in (drawn, boxes(lines))
    ]
    assert ends[0] == ends[1]
    for number in range(10):
        (hue,) = set(strokes(lines, f"line-{number + 1}"))
        same = lines_of(drawn, hue, 4)
        mine = corners(lines, f"line-{number + 1}")
        assert any(alike(flat(line), mine) for line in same)

    spread = figure(kept, "/v1/projects/ten/figures/boxes.svg")
    drawn = parts(page, "boxes")
    worst = [
        [p["text"] for p in sorted(named(shapes, NAMES), key=lambda p: p["x"])]
        for shapes in (drawn, boxes(spread))
    ]
    assert worst[0] == worst[1]
    assert len(worst[0]) == 4
    dots = [p for p in drawn if p["type"] == "circle" and p["width"] < 5]
    assert len(dots) == 40


@pytest.mark.parametrize("width", [pytest.param(1440, marks=pytest.mark.slow), 390])
def test_no_texts_overlap_with_300_classes(kept: httpx.Client, visit: Visitor, width: int) -> None:
    for path, names in (
        (f"/ui/evaluations/{newest(kept, 'many')}", ("heat", "dots", "radar")),
        (MODEL.format("many"), ("trend", "lines", "boxes")),
    ):
        page = page_of(visit, kept, path, width)
        for name in names:
            assert not overlaps([p for p in parts(page, name) if p["text"]]), name


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
