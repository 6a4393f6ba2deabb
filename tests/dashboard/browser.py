"""A real browser for the pages: it watches what they do, and checks that all can use them.

`PAGES_SHOTS=folder` keeps a picture of every page that a test looks at.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

_SETTLED = "Promise.allSettled(document.getAnimations().map((one) => one.finished))"
_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

NAMES = (
    # Without the windows of a whole browser, which take half of its time.
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
WIDTHS = (1440, 390)
"""Of a laptop and of a phone."""
PAPER = 718
"""Of a sheet of A4 within its margins."""
HEIGHT = 900
ALIKE = (
    "math",
    *(f"{part}:nth-child(n+9)" for part in (".entry", "tbody tr", ".result")),
    ".api-content > :nth-child(n+4)",
)
"""What axe need not look at: no rule is about the inside of formulas, and the ninth of many parts
is like the first."""
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
FORCED: tuple[Literal["none", "active"], ...] = ("none", "active")
STATES = tuple(product(WIDTHS, SCHEMES, FORCED))
FORCED_STATE: tuple[int, Scheme, Literal["none", "active"]] = (390, "light", "active")
if os.environ.get("RPRIME_TEST_STATES") != "all":
    # Each width and each scheme once: what fails in one state alone is rare.
    STATES = ((1440, "light", "none"), (390, "dark", "none"))
SLOW = 30_000
"""Milliseconds: what takes one second on a quiet machine takes many on a busy one."""
SEEN = ["color-contrast", "scrollable-region-focusable", "link-in-text-block"]
"""Rules about what is seen."""
expect.set_options(timeout=SLOW)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium. Not for the whole session: as long as it runs, it owns this thread's loop."""
    program = next((path for name in NAMES if (path := shutil.which(name))), None)
    if program is None:
        reason = "no browser: `sh .ci/chromium` installs one"
        if os.environ.get("CI_RUN"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        yield browser
        browser.close()


@dataclass
class Visit:
    """A page in a window of its own.

    Parameters
    ----------
    page
        What Playwright drives.
    host
        From which alone anything may come.
    complaints
        What the console called an error, and requests to other hosts.
    """

    page: Page
    host: str
    complaints: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Note everything that must not happen."""
        self.page.on("console", lambda m: self._note(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self._note(str(error)))
        self.page.on("request", lambda request: self._follow(request.url))

    def _note(self, complaint: str) -> None:
        self.complaints.append(complaint)

    def _follow(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"data", "blob"} and parts.netloc != self.host:
            self._note(f"a request to {url}")

    def violations(self, part: str | None = None, *, forced: bool = False) -> list[str]:
        """Ask axe what keeps somebody from using the page, or a part of it; also in forced colours.

        All tests ask about the states of `STATES`.
        """
        size = self.page.viewport_size
        self.page.evaluate(Axe().axe_script)
        violations = []
        states = (*STATES, FORCED_STATE) if forced else STATES
        for number, (width, scheme, colors) in enumerate(states):
            self.page.set_viewport_size({"width": width, "height": HEIGHT})
            self.page.emulate_media(color_scheme=scheme, forced_colors=colors)
            self.page.evaluate(_SETTLED)
            # After the first state only what is seen has changed.
            violations += self._axe(part, {"runOnly": SEEN} if number else {})
        self.page.emulate_media(color_scheme="light", forced_colors="none")
        if size is not None:
            self.page.set_viewport_size(size)
        return violations

    def _axe(self, part: str | None, options: dict[str, Any]) -> list[str]:
        context: dict[str, Any] = {"exclude": [[alike] for alike in ALIKE]}
        if part is not None:
            context["include"] = [[part]]
        arguments = [context, {"resultTypes": ["violations"], **options}]
        run = "([context, options]) => axe.run(context, options)"
        violations = self.page.evaluate(run, arguments)["violations"]
        return [
            f"{violation['id']}: {node['html']} {node.get('failureSummary', '')}"
            for violation in violations
            for node in violation["nodes"]
        ]

    def overflow(self) -> int:
        """Tell by how many pixels the page is wider than its window, once charts have followed."""
        width = 0
        # Not by `wait_for_function`: it is code from text, which the pages forbid.
        for _ in range(50):
            width = self.page.evaluate(_OVERFLOW)
            if width <= 0:
                break
            self.page.wait_for_timeout(100)
        return width

    def shoot(self, name: str) -> None:
        """Keep pictures of all widths and colours and of the paper, where they are wanted."""
        folder = os.environ.get("PAGES_SHOTS")
        if folder is None:
            return
        scheme: Scheme
        for width, scheme in product(WIDTHS, SCHEMES):
            self.page.set_viewport_size({"width": width, "height": HEIGHT})
            self.page.emulate_media(color_scheme=scheme)
            path = Path(folder) / f"{name}-{width}-{scheme}.png"
            self.page.screenshot(path=path, full_page=True)
        self.page.emulate_media(color_scheme="light", media="print")
        self.page.set_viewport_size({"width": PAPER, "height": HEIGHT})
        self.page.screenshot(path=Path(folder) / f"{name}-print.png", full_page=True)
        self.page.emulate_media(media="screen", forced_colors="active")
        self.page.screenshot(path=Path(folder) / f"{name}-forced.png", full_page=True)
        self.page.emulate_media(forced_colors="none")


class Visitor:
    """Opens pages; afterwards none may have complained.

    Parameters
    ----------
    browser
        The browser.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._visits: list[Visit] = []

    def __call__(self, url: str, *, scheme: Scheme = "light", width: int = WIDTHS[0]) -> Visit:
        """Open a page in a fresh window, without anything of an earlier one."""
        context = self._browser.new_context(
            color_scheme=scheme,
            viewport={"width": width, "height": HEIGHT},
            reduced_motion="reduce",
        )
        context.set_default_timeout(SLOW)
        visit = Visit(context.new_page(), urlsplit(url).netloc)
        visit.watch()
        self._visits.append(visit)
        visit.page.goto(url)
        return visit

    def leave(self) -> None:
        """Close all windows, and fail where a page complained."""
        for visit in self._visits:
            visit.page.context.close()
        complaints = [complaint for visit in self._visits for complaint in visit.complaints]
        assert not complaints, complaints


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visitor]:
    """Return what opens pages."""
    visitor = Visitor(browser)
    yield visitor
    visitor.leave()
