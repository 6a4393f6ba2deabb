"""What axe does not see: zoom, motion, and words for every chart."""

import httpx
import pytest

from tests.dashboard.browser import Visitor
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
WIDTH = 720
"""Of a laptop at a zoom of 200 percent."""


def address(history: httpx.Client, page: str) -> str:
    newest = history.get("/v1/projects/digits/evaluations?version=v15&model=svc").json()["items"]
    return f"{history.base_url}{PAGES[page].format(id=newest[0]['id'])}"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read_at_twice_its_size(
    history: httpx.Client, visit: Visitor, name: str
) -> None:
    seen = visit(address(history, name), width=WIDTH)
    assert seen.overflow() == 0


@pytest.mark.parametrize("name", ["model", "evaluation", "evaluator"])
def test_every_chart_has_words_and_none_moves(
    history: httpx.Client, visit: Visitor, name: str
) -> None:
    page = visit(address(history, name)).page
    page.locator("[data-chart] canvas").first.wait_for(state="visible")
    charts = page.locator("[data-chart]:visible")
    assert charts.count() >= 3
    labels = charts.evaluate_all("all => all.map((one) => one.ariaLabel)")
    # Each says where its numbers are, or is told cell by cell.
    assert all("same numbers" in label or "Arrow keys" in label for label in labels), labels
    assert page.evaluate("document.getAnimations().length") == 0


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [390, WIDTH])
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
