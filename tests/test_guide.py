"""The documentation site: it builds without a warning, its links lead on, it asks no other host."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe

from rprime.core.catalog import INDICES
from tests.dashboard.browser import SCHEMES, WIDTHS, Scheme, Visitor
from tests.examples.recipes import EXAMPLES, PROGRAMS, run
from tests.services import environment

Serve = Callable[..., AbstractContextManager[httpx.Client]]

ROOT = EXAMPLES.parent
CONFIG = ROOT / "docs" / "site" / "mkdocs.yml"
MAIN_PAGES = ["index", "tutorial", "r-prime", "reference/indices/r_prime", "reference/http"]
LOADING = {"script": "src", "img": "src", "link": "href", "iframe": "src"}


class Document(HTMLParser):
    """What a page of the site has: anchors, links, and the addresses that it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.inline: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADING and LOADING[tag] in values:
            self.loaded.append(values[LOADING[tag]])
        if tag == "script" and "src" not in values and values.get("type") != "application/json":
            self.inline.append(tag)
        self.inline += [f"{tag} {name}" for name in values if name.startswith("on")]
        self.inline += [f"{tag} style" for _ in values.get("style", "")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, or return the one that .ci/run has built; every warning is an error."""
    if "RPRIME_TEST_GUIDE" in os.environ:
        return Path(os.environ["RPRIME_TEST_GUIDE"])
    folder = tmp_path_factory.mktemp("guide")
    command = (PROGRAMS / "mkdocs", "build", "--strict", "-f", CONFIG, "-d", folder)
    done = run(*command, cwd=ROOT, variables={"NO_MKDOCS_2_WARNING": "1"}, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def documents(site: Path) -> dict[Path, Document]:
    # 404.html is for web servers that answer with it at any address: its links are absolute.
    pages = set(site.rglob("*.html")) - {site / "404.html"}
    return {path: Document(path) for path in pages}


@pytest.fixture(scope="module")
def guide(site: Path, serve: Serve) -> Iterator[httpx.Client]:
    with serve(RPRIME_STORE="none", RPRIME_GUIDE=str(site)) as client:
        yield client


def test_every_link_leads_to_a_page_and_an_anchor(documents: dict[Path, Document]) -> None:
    seen = 0
    for path, document in documents.items():
        for link in document.links + document.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                # Other hosts are not asked here: it is seen whether the address can be one.
                assert parts.scheme in {"https", "mailto"}, (path.name, link)
                assert re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.netloc or parts.path), link
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), (path.name, link)
            if target in documents:
                assert unquote(parts.fragment) in documents[target].anchors, (path.name, link)
                seen += 1
    assert seen > 10_000


def test_no_page_loads_from_another_host_or_runs_what_it_contains(
    documents: dict[Path, Document],
) -> None:
    for path, document in documents.items():
        assert document.loaded
        assert not [address for address in document.loaded if "//" in address], path
        assert not document.inline, path


def test_every_page_of_the_documentation_and_every_index_has_its_page(
    documents: dict[Path, Document], site: Path
) -> None:
    names = {path.relative_to(site).with_suffix("").as_posix() for path in documents}
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} <= names
    assert {f"reference/indices/{index.key}" for index in INDICES} <= names
    page = (site / "reference" / "indices" / "informedness.html").read_text(encoding="utf-8")
    assert "<math" in page
    assert page.count('class="figure curves"') == 2
    # TP = 45 of 50 A; 6 of the 50 others were predicted as A.
    assert '<span class="soft">of A</span> <b>0.7800</b>' in page


def test_the_service_shows_the_site_and_its_pages_link_there(guide: httpx.Client) -> None:
    answer = guide.get("/guide", follow_redirects=True)
    assert answer.status_code == 200
    assert "script-src 'self';" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["content-encoding"] == "gzip"
    headers = {"If-None-Match": answer.headers["etag"]}
    assert guide.get("/guide/index.html", headers=headers).status_code == 304
    assert guide.get("/guide/nowhere.html").json()["code"] == "not_found"
    (link,) = re.findall(r'href="([^"]*)">Guide<', guide.get("/ui/indices").text)
    assert guide.get(str(guide.base_url.join("/ui/").join(link))).status_code == 200


def test_without_the_site_there_is_a_problem_and_no_link(client: httpx.Client) -> None:
    answer = client.get("/guide", headers={"Accept": "application/json"})
    assert answer.status_code == 404
    assert "/docs/index.md" in answer.json()["detail"]
    assert ">Guide<" not in client.get("/ui/indices").text


def test_a_folder_that_is_not_there_is_refused_at_the_start(tmp_path: Path) -> None:
    nowhere = environment(RPRIME_GUIDE=str(tmp_path / "none"))
    done = run(PROGRAMS / "rprime", "serve", "--port", "0", cwd=tmp_path, variables=nowhere)
    assert done.returncode == 2
    assert "RPRIME_GUIDE" in done.stderr


@pytest.mark.parametrize("page", MAIN_PAGES)
def test_a_browser_shows_a_page_from_this_host_alone(
    guide: httpx.Client, visit: Visitor, page: str
) -> None:
    # The visitor fails on requests to other hosts, which the policy refuses, and on every error.
    opened = visit(f"{guide.base_url}/guide/{page}.html")
    opened.shoot(page.replace("/", "-"))
    for width in WIDTHS:
        opened.page.set_viewport_size({"width": width, "height": 900})
        assert opened.overflow() <= 0, width


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("page", ["index", "tutorial", "gates", "reference/indices/r_prime"])
def test_all_can_use_a_page(guide: httpx.Client, visit: Visitor, page: str, scheme: Scheme) -> None:
    opened = visit(f"{guide.base_url}/guide/{page}.html", scheme=scheme)
    # The theme calls the button that copies a block a navigation, once for each block.
    context = {"exclude": [["math"], [".md-code__nav"]]}
    report = Axe().run(opened.page, context, {"resultTypes": ["violations"]}).response
    assert not [
        (violation["id"], violation["nodes"][0]["html"]) for violation in report["violations"]
    ]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_search_works_without_the_internet(
    guide: httpx.Client, visit: Visitor, scheme: Scheme
) -> None:
    opened = visit(f"{guide.base_url}/guide/index.html", scheme=scheme)
    opened.page.get_by_role("textbox", name="Search").fill("informedness")
    link = opened.page.locator(".md-search-result__link").first
    link.click()
    opened.page.wait_for_url("**/reference/indices/*informedness*")
    assert opened.page.get_by_role("heading", level=1).count() == 1
