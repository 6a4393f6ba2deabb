"""What axe does not see: zoom, motion, and words for every chart."""

from typing import Literal

import httpx
import pytest

from tests.dashboard.browser import HEIGHT, WIDTHS, Visitor
from tests.dashboard.test_questions import history

__all__ = ["history"]

PAGES = {
    "projects": "/ui/projects",
    "project": "/ui/projects/digits",
    "model": "/ui/projects/digits/models/svc",
    "evaluation": "/ui/evaluations/{id}",
    "evaluator": "/ui/evaluate",
    "index": "/ui/indices/r_prime",
}
MORE = {
    "compare": "/ui/compare?candidate={id}&baseline={before}",
    "compare-300": "/ui/compare?candidate={r2}&baseline={r1}",
    "evaluation-300": "/ui/evaluations/{r2}",
    "model-300": "/ui/projects/products/models/vit",
    "start": "/",
    "catalog": "/ui/indices",
    "reproduced": "/ui/reproduced",
    "document": "/docs/gates.md",
    "problems": "/docs/problems",
}
WIDTH = 720
"""Of a laptop at a zoom of 200 percent."""


CUT = """() => [...document.querySelectorAll("body *")].filter((one) =>
  ["hidden", "clip"].includes(getComputedStyle(one).overflowX) &&
  one.clientWidth > 1 && one.scrollWidth > one.clientWidth + 1
).map((one) => one.outerHTML.slice(0, 120))"""
"""Returns what is wider than the part of it that is seen, and cannot be scrolled."""
NAMED = {
    "id": "digits/evaluations?version=v15&model=svc",
    "before": "digits/evaluations?version=v14&model=svc",
    "r1": "products/evaluations?version=r1",
    "r2": "products/evaluations?version=r2",
}


def address(history: httpx.Client, page: str) -> str:
    path = (PAGES | MORE)[page]
    ids = {
        name: history.get(f"/v1/projects/{query}").json()["items"][0]["id"]
        for name, query in NAMED.items()
        if f"{{{name}}}" in path
    }
    return f"{history.base_url}{path.format(**ids)}"


@pytest.mark.parametrize(
    "name",
    [
        *PAGES,
        "compare-300",
        *(pytest.param(n, marks=pytest.mark.slow) for n in MORE if n != "compare-300"),
    ],
)
def test_a_page_can_be_read_at_twice_its_size(
    history: httpx.Client, visit: Visitor, name: str
) -> None:
    seen = visit(address(history, name), width=WIDTH)
    for width in (WIDTH, WIDTHS[1]):
        seen.page.set_viewport_size({"width": width, "height": HEIGHT})
        assert seen.overflow() == 0, width
        assert seen.page.evaluate(CUT) == [], width


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_what_moves_stands_still_for_who_asks(
    history: httpx.Client, visit: Visitor, motion: Literal["reduce", "no-preference"]
) -> None:
    page = visit(address(history, "evaluator")).page
    page.emulate_media(reduced_motion=motion)
    # The old report fades while a new one is on its way.
    page.locator("main").evaluate("(main) => main.classList.add('stale')")
    seconds = page.evaluate(
        """() => [...document.querySelectorAll("*")].flatMap((one) => {
          const { transitionDuration, animationDuration } = getComputedStyle(one);
          return [transitionDuration, animationDuration].flatMap((all) => all.split(", "));
        }).map(parseFloat)"""
    )
    assert (max(seconds) > 0) == (motion == "no-preference")


@pytest.mark.parametrize("name", ["model", "evaluation", "evaluator"])
def test_every_chart_has_words_and_none_moves(
    history: httpx.Client, visit: Visitor, name: str
) -> None:
    page = visit(address(history, name)).page
    charts = page.locator("svg.figure").filter(visible=True)
    assert charts.count() >= (1 if name != "model" else 2)
    labels = charts.evaluate_all("all => all.map((one) => one.ariaLabel)")
    assert all(len(label) > 10 for label in labels), labels
    assert page.evaluate("document.getAnimations().length") == 0


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [390, pytest.param(WIDTH, marks=pytest.mark.slow)])
def test_what_has_the_focus_is_in_sight(
    history: httpx.Client, visit: Visitor, name: str, width: int
) -> None:
    page = visit(address(history, name), width=width).page
    hidden = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen = page.evaluate(
            """() => {
              const one = document.activeElement;
              if (one === document.body) return "";
              // A part of it is enough: browsers scroll no further.
              const inSight = (box) => [0.1, 0.5, 0.9].some((part) => {
                const x = box.x + box.width * part, y = box.y + box.height / 2;
                const top = document.elementFromPoint(x, y);
                return top && one.contains(top);
              });
              const boxes = [...one.getClientRects(), one.getBoundingClientRect()];
              return boxes.some(inSight) ? "" : one.outerHTML.slice(0, 120);
            }"""
        )
        hidden += [seen] if seen else []
    assert not hidden
