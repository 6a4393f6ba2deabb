"""The pages of the documentation."""

import re

import httpx
import pytest

from rprime.dashboard.documentation import STATIC
from rprime.problems.kinds import KINDS
from rprime.problems.problem import Problem


@pytest.mark.parametrize("page", ["/docs", "/docs/schemas", "/docs/problems", "/docs/index.md"])
def test_a_page_loads_everything_from_the_service(client: httpx.Client, page: str) -> None:
    response = client.get(page)
    links = re.findall(r'(?:src|href)="([^"]+)"', response.text)
    assert response.status_code == 200
    assert links
    for link in {link.partition("#")[0] for link in links} - {""}:
        assert "//" not in link
        answer = client.get(str(response.url.join(link)), follow_redirects=True)
        assert answer.status_code == 200, link


@pytest.mark.parametrize("page", ["/docs", "/docs/schemas", "/docs/problems", "/docs/index.md"])
def test_a_page_has_no_inline_script_and_may_run_none(client: httpx.Client, page: str) -> None:
    response = client.get(page)
    assert "script-src 'self';" in response.headers["content-security-policy"]
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=", response.text)


def test_every_problem_is_explained_at_its_type(client: httpx.Client) -> None:
    page = client.get("/docs/problems").text
    for code in KINDS:
        assert Problem(code).document()["type"] == f"/docs/problems#{code}"
        assert f'id="{code}"' in page


def test_what_comes_from_elsewhere_has_its_licence() -> None:
    names = {path.name for path in (STATIC / "licenses").iterdir()}
    assert {"dejavu.LICENSE.txt"} <= names


def test_a_browser_finds_the_icon_by_itself(client: httpx.Client) -> None:
    assert client.get("/favicon.ico").headers["content-type"] == "image/svg+xml"
