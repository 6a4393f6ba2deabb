"""Sign-in in a real browser: it works there, and not for what another site asks for."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from rprime.auth import keys
from tests.dashboard.browser import WIDTHS, Visitor
from tests.history_service import ServeApp, keep, keeping, matrix

HOSTILE = '<i>CI & "more"\''


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys") / "keys.json"


@pytest.fixture(scope="module")
def token(path: Path) -> str:
    return keys.create(path, ["admin"], name=HOSTILE)[1]


@pytest.fixture(scope="module")
def service(serve_app: ServeApp, path: Path, token: str) -> Iterator[httpx.Client]:
    with keeping(serve_app, path.parent, keys_file=path) as client:
        client.headers["Authorization"] = f"Bearer {token}"
        keep(client, matrix(3, model="lenet", version="1"))
        keep(client, matrix(2, model="lenet", version="2"))
        yield client


def test_everybody_can_sign_in(service: httpx.Client, visit: Visitor, token: str) -> None:
    seen = visit(f"{service.base_url}/ui/projects/pets")
    assert seen.violations() == []
    seen.shoot("sign-in")
    page = seen.page
    page.get_by_label("Key").fill("rp_wrong")
    page.get_by_role("button", name="Sign in").click()
    assert page.get_by_role("alert").inner_text() == "The key is not valid."
    assert seen.violations() == []
    seen.shoot("sign-in-refused")
    # The browser says so itself wherever a page answers 403.
    seen.complaints.clear()
    page.get_by_label("Key").fill(token)
    page.get_by_role("button", name="Sign in").click()
    assert page.get_by_role("heading", level=1).inner_text() == "pets"
    assert HOSTILE in str(page.text_content(".account"))
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert seen.overflow() == 0
    assert seen.violations() == []
    seen.shoot("signed-in")


def test_who_signed_in_does_everything_until_signing_out(
    service: httpx.Client, visit: Visitor, token: str
) -> None:
    page = visit(f"{service.base_url}/ui/sign-in?next=ui/projects/pets/models/lenet").page
    page.get_by_label("Key").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Promote").click()
    assert page.get_by_role("status").inner_text().startswith("champion now points to")
    assert service.get("/v1/projects/pets/aliases/champion").status_code == 200
    page.goto(str(service.base_url))
    page.get_by_role("heading", name="Projects", level=1).wait_for()
    page.get_by_role("link", name="Evaluate", exact=True).click()
    page.get_by_label("Confusion matrix").fill("5 1\n2 7")
    page.get_by_role("button", name="Evaluate").click()
    page.get_by_text("0.8000").first.wait_for()
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Sign out").click()
    page.goto(f"{service.base_url}/ui/projects")
    assert page.get_by_role("heading", level=1).inner_text() == "Sign in"


def test_the_first_steps_work_with_keys(
    serve_app: ServeApp, tmp_path: Path, visit: Visitor, token: str, path: Path
) -> None:
    with keeping(serve_app, tmp_path, keys_file=path) as client:
        page = visit(f"{client.base_url}/ui/sign-in?next=ui/projects").page
        page.get_by_label("Key").fill(token)
        page.get_by_role("button", name="Sign in").click()
        shown = page.locator("pre").first.inner_text()
        done = subprocess.run(
            ["/bin/sh", "-c", f"{shown} -s -o {tmp_path}/answer -w '%{{http_code}}'"],
            env={**os.environ, "RPRIME_KEY": token},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "201", shown
        page.get_by_role("link", name="digits").first.wait_for(timeout=20_000)


def test_a_link_on_another_site_works_and_a_form_there_does_not(
    service: httpx.Client, serve_app: ServeApp, visit: Visitor, token: str
) -> None:
    elsewhere = FastAPI()
    # The same machine by another name is another site.
    ours = str(service.base_url).replace("127.0.0.1", "localhost")

    @elsewhere.get("/")
    async def lure() -> HTMLResponse:
        where = f"{ours}/ui/projects/pets/models/lenet"
        return HTMLResponse(
            f'<a href="{where}">link</a><form method="post" action="{where}">'
            '<input name="alias" value="stolen"><button>form</button></form>'
        )

    with serve_app(elsewhere) as other:
        seen = visit(f"{ours}/ui/sign-in")
        page = seen.page
        page.get_by_label("Key").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.goto(str(other.base_url))
        page.get_by_role("link", name="link").click()
        page.wait_for_url("**/models/lenet")
        assert page.get_by_role("heading", level=1).inner_text() == "lenet"
        page.goto(str(other.base_url))
        page.get_by_role("button", name="form").click()
        page.wait_for_load_state()
        assert service.get("/v1/projects/pets/aliases/stolen").status_code == 404
        # It went to another host on purpose.
        seen.complaints.clear()
