"""Six questions of a user, answered from the start: at most two clicks, and nobody scrolls.

A click counts only on what is in the window of a laptop, and so does the answer.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.dashboard.browser import WIDTHS, Visitor
from tests.history_service import Json, ServeApp, keep, keeping

MOST_CLICKS = 2
HIDDEN = """one => {
  const { left, right, top, bottom } = one.getBoundingClientRect();
  const middle = (left + right) / 2;
  const found = [top + 2, bottom - 2].map((y) => [y, document.elementFromPoint(middle, y)]);
  return found.filter(([, hit]) => !hit || !one.contains(hit)).map(([y]) => y);
}"""
"""Returns the upper and the lower edge of an element as far as a reader does not see them."""
RULES = [{"index": "recall", "classes": "all", "max_drop": 0.05}]


def table(seed: int, k: int, items: int, broken: tuple[int, ...] = ()) -> list[list[int]]:
    """Draw a table; the broken classes lose 35 of 100 items to the one before them."""
    draw = np.random.default_rng(seed)
    counts = []
    for i in range(k):
        shares = np.full(k, 0.05 / (k - 1))
        shares[i] = 0.95 - 0.35 * (i in broken)
        shares[i - 1] += 0.35 * (i in broken)
        counts.append(draw.multinomial(items, shares).tolist())
    return counts


@pytest.fixture(scope="module")
def history(
    serve_app: ServeApp, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """Serve two models of ten classes, the newest of which failed, and one of 300."""
    with keeping(serve_app, tmp_path_factory.mktemp("questions")) as client:
        for version in range(1, 16):
            for model in ("svc", "logreg"):
                request: Json = {
                    "project": "digits",
                    "model": model,
                    "version": f"v{version}",
                    "labels": [str(digit) for digit in range(10)],
                }
                if version > 1:
                    request |= {
                        "baseline": {"version": f"v{version - 1}"},
                        "gates": {"rules": RULES},
                    }
                broken = (7,) if (model, version) == ("svc", 15) else ()
                counts = table(version, 10, 90, broken)
                identifier = keep(client, request | {"confusion_matrix": counts})["id"]
                if (model, version) == ("svc", 14):
                    where = "/v1/projects/digits/aliases/champion"
                    new = {"If-None-Match": "*"}
                    client.put(where, json={"evaluation": identifier}, headers=new)
        for name, fallen in {"r1": (), "r2": (3, 250)}.items():
            request = {"project": "products", "model": "vit", "version": name}
            names = [f"product-{i:03d}" for i in range(300)]
            counts = table(1 + len(fallen), 300, 40, fallen)
            keep(client, request | {"labels": names, "confusion_matrix": counts})
        yield client


@dataclass
class Reader:
    """Clicks what is in the window, and counts."""

    page: Page
    clicks: int = 0
    taken: list[str] = field(default_factory=list)

    def click(self, target: Locator) -> None:
        self.sees(target)
        self.taken.append(target.text_content() or str(target.get_attribute("aria-label")))
        target.click()
        self.clicks += 1

    def sees(self, target: Locator) -> None:
        """Check that something is in the window as it is, and under no bar."""
        expect(target).to_be_visible()
        hidden = target.evaluate(HIDDEN)
        assert hidden == [], (self.taken, target.bounding_box())


@pytest.fixture
def reader(history: httpx.Client, visit: Visitor) -> Iterator[Reader]:
    """Start where a reader starts."""
    visitor = Reader(visit(f"{history.base_url}/", width=WIDTHS[0]).page)
    yield visitor
    assert 1 <= visitor.clicks <= MOST_CLICKS, visitor.taken


def test_why_did_the_gate_fail(reader: Reader) -> None:
    page = reader.page
    reason = page.locator(".lately tr", has_text="svc v15").locator(".reason")
    reader.sees(reason)
    assert reason.inner_text() == "recall.max_drop of class 7"
    reader.click(page.get_by_role("link", name="svc v15"))
    reason = page.locator(".result.bad").first
    reader.sees(reason)
    assert "recall of class 7 dropped by" in reason.inner_text()
    reader.click(page.locator(".sections a[href='#changes']"))
    # Most of the items of class 7 that were lost are predicted as 6.
    moved = page.locator("[aria-labelledby=changes] tbody tr").filter(has_text="7")
    cells = [row.locator("td").all_inner_texts()[:2] for row in moved.all()]
    assert ["7", "6"] in cells
    reader.sees(moved.nth(cells.index(["7", "6"])))


def test_is_a_version_better_than_the_one_before_for_a_class(reader: Reader) -> None:
    page = reader.page
    reader.click(page.locator(".lately tr", has_text="svc v15").locator(".spark a"))
    reader.click(page.get_by_role("link", name=re.compile("^7: ")))
    assert page.locator("h1").inner_text() == "Class 7 of svc"
    for version in ("v11", "v12"):
        step = page.get_by_role("link", name=re.compile(f"^{version}: Recall"))
        step.filter(visible=True).hover()
        tip = page.locator(".tip", has_text=re.compile(rf"{version}.*Recall 0\.\d{{4}} \["))
        expect(tip).to_be_in_viewport(ratio=1)
    # Neither better nor worse than the champion.
    answer = page.locator("[aria-labelledby=versions] tbody tr").filter(has_text="v12")
    assert not re.search("worse|better", answer.first.inner_text())


def classes(page: Page) -> Locator:
    """Return the names of the classes beside their changes over the versions."""
    strip = page.locator("[aria-labelledby=values] svg.figure").filter(visible=True)
    return strip.locator("[data-name=class]")


@pytest.mark.parametrize("way", [".chips a[href$=digits]", ".lately tr:has-text('svc') .spark a"])
def test_which_is_the_champion_and_since_when(reader: Reader, way: str) -> None:
    page = reader.page
    reader.click(page.locator(way).first)
    answer = page.locator(".head .aliases li")
    reader.sees(answer)
    assert answer.inner_text().startswith("champion svc v14 since 20")


def test_what_does_an_index_mean_and_how_does_it_differ_from_f1(reader: Reader) -> None:
    page = reader.page
    reader.click(page.get_by_role("columnheader", name="R'").get_by_role("link"))
    reader.sees(page.locator(".formula").first)
    reader.sees(page.get_by_text("False alarms of a rare class hardly move R'"))


def test_which_of_300_classes_are_weakest(reader: Reader) -> None:
    page = reader.page
    reader.click(page.locator(".lately tr", has_text="vit").locator(".spark a"))
    reader.click(page.get_by_role("link", name="Weakest"))
    weakest = classes(page)
    reader.sees(weakest.nth(1))
    assert set(weakest.locator("text").all_text_contents()[:2]) == {"product-003", "product-250"}


def test_which_of_300_classes_got_worse(reader: Reader) -> None:
    page = reader.page
    reader.click(page.locator(".lately tr", has_text="vit").locator(".spark a"))
    surest = classes(page)
    reader.sees(surest.nth(1))
    assert set(surest.locator("text").all_text_contents()[:2]) == {"product-003", "product-250"}
    # Of 300 classes with 40 items each, no loss of a third holds for all of them together.
    assert page.locator(".answer").inner_text().startswith("No class is shown to be worse in r2")


def test_since_when_is_any_of_300_classes_bad(reader: Reader) -> None:
    """One that no list of the page names by itself."""
    page = reader.page
    reader.click(page.locator(".lately tr", has_text="vit").locator(".spark a"))
    assert classes(page).filter(has_text="product-117").count() == 0
    page.get_by_label("Class name contains").fill("PRODUCT-117")
    reader.click(page.get_by_role("button", name="Search"))
    expect(classes(page)).to_have_count(1)
    assert "product-117" in (classes(page).text_content() or "")


def test_how_is_a_report_shared(reader: Reader) -> None:
    page = reader.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    reader.click(page.get_by_role("link", name="svc v15"))
    export = page.locator("details.export")
    reader.sees(export.locator("summary"))
    names = {text.strip() for text in export.locator("a").all_text_contents()}
    assert {"HTML", "Markdown", "heat map"} <= names
    reader.click(page.get_by_role("button", name="Copy link"))
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.url


def test_is_the_newest_version_better_than_the_champion(reader: Reader) -> None:
    page = reader.page
    reader.click(page.locator(".chips a[href$=digits]").first)
    newest = page.locator(".evaluations tbody tr").filter(has_text="failed").first
    reader.click(newest.get_by_role("link", name="with v14"))
    assert page.locator(".sides .which").all_inner_texts() == ["svc v15", "svc v14"]
    reader.sees(page.locator(".answer").first)


def test_a_phone_shows_an_evaluation_of_a_project_at_once(
    history: httpx.Client, visit: Visitor
) -> None:
    page = visit(f"{history.base_url}/ui/projects/digits", width=WIDTHS[1]).page
    expect(page.locator(".evaluations tbody td.value").first).to_be_in_viewport(ratio=1)
