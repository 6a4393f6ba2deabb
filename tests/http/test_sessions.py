"""Sessions of browsers, over real connections: what a cookie opens, and what it never does."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from html import unescape
from pathlib import Path
from subprocess import CompletedProcess

import httpx
import pytest
from fastapi import FastAPI

from rprime.app import create_app
from rprime.auth import keys
from rprime.auth.sessions import Sessions, destination
from rprime.settings import Settings
from rprime.store import revoked_sessions
from rprime.store.revoked_sessions import LASTS_SECONDS, SessionFile
from tests.history_service import matrix
from tests.services import NO_TLS

Serve = Callable[..., AbstractContextManager[httpx.Client]]
ServeApp = Callable[[FastAPI], AbstractContextManager[httpx.Client]]

CLOSED = "/v1/indices"
LINT = {"gates": {"rules": [{"index": "accuracy", "min_value": 0.5}]}} | {
    "confusion_matrix": [[9, 1], [1, 9]],
    "pairing": "paired",
    "replicates": 100,
}
SECRET = "s" * 32
ADDRESS = r'name="csrf_token" value="([^"]+)"'


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys") / "keys.json"


@pytest.fixture(scope="module")
def base(path: Path, serve_app: ServeApp) -> Iterator[httpx.Client]:
    app = create_app(
        Settings(keys_file=path, store=f"sqlite:///{path.parent}/rprime.db", session_secret=SECRET)
    )
    with serve_app(app) as client:
        yield client


@pytest.fixture
def browser_of(base: httpx.Client) -> Iterator[Callable[[], httpx.Client]]:
    """Return what keeps cookies, as a browser does, but follows no redirect by itself."""
    opened: list[httpx.Client] = []

    def fresh() -> httpx.Client:
        opened.append(httpx.Client(base_url=base.base_url, timeout=30, verify=NO_TLS))
        return opened[-1]

    yield fresh
    for client in opened:
        client.close()


@pytest.fixture
def browser(browser_of: Callable[[], httpx.Client]) -> httpx.Client:
    return browser_of()


def token_in(page: httpx.Response) -> str:
    match = re.search(ADDRESS, page.text)
    assert match is not None, page.text
    return match[1]


def signed_in(browser: httpx.Client, token: str, where: str = "/ui/sign-in") -> httpx.Response:
    form = {"csrf_token": token_in(browser.get(where)), "key": token}
    return browser.post(where, data=form)


def csrf_of(browser: httpx.Client) -> str:
    page = browser.get("/ui/indices")
    match = re.search(r'name="csrf-token" content="([^"]+)"', page.text)
    assert match is not None
    return match[1]


# Sign-in


def test_a_browser_gets_a_page_while_the_store_is_away(serve_app: ServeApp, tmp_path: Path) -> None:
    _, token = keys.create(tmp_path / "keys.json", ["read"])
    store = tmp_path / "rprime.db"
    settings = Settings(keys_file=tmp_path / "keys.json", store=f"sqlite:///{store}")
    with serve_app(create_app(settings)) as browser:
        assert signed_in(browser, token).status_code == 303
        store.rename(tmp_path / "away")
        html = {"Accept": "text/html"}
        for headers, kind in ((html, "text/html"), ({}, "application/problem+json")):
            answer = browser.get("/ui/projects", headers=headers)
            assert answer.status_code == 503
            assert answer.headers["content-type"].startswith(kind)
        store.with_name("away").rename(store)


def test_a_browser_signs_in_and_comes_back(browser: httpx.Client, path: Path) -> None:
    key, token = keys.create(path, ["admin"], name="Mallory's <b>")
    redirect = browser.get("/ui/evaluations/z?x=a%20b&y=%3F")
    assert redirect.status_code == 303
    where = str(redirect.url.join(redirect.headers["location"]))
    assert where.endswith("/ui/sign-in?next=ui%2Fevaluations%2Fz%3Fx%3Da%2520b%26y%3D%253F")
    answer = signed_in(browser, token, where)
    assert answer.status_code == 303
    assert answer.headers["location"] == "../ui/evaluations/z?x=a%20b&y=%3F"
    page = browser.get("/ui/indices")
    assert "<bdi>Mallory&#39;s &lt;b&gt;</bdi>" in page.text
    assert browser.get(CLOSED).status_code == 200
    assert browser.get("/ui/sign-in?next=ui/indices").headers["location"] == "../ui/indices"
    assert key.id in next(iter(browser.cookies.jar)).value  # type: ignore[operator] # it has one


def test_the_cookie_is_for_this_host_alone_and_has_no_key_in_it(
    browser: httpx.Client, path: Path
) -> None:
    _, token = keys.create(path, ["read"])
    answer = signed_in(browser, token)
    cookie = answer.headers["set-cookie"]
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/", f"max-age={LASTS_SECONDS}"} <= attributes
    assert "secure" not in attributes
    assert "domain" not in cookie.lower()
    assert token.rpartition("_")[2] not in f"{cookie}{browser.get('/ui/indices').text}"


@pytest.mark.parametrize(
    "header", [{"Origin": "https://{host}"}, {"X-Forwarded-Proto": "https"}], ids=str
)
def test_under_https_the_cookie_is_kept_to_it(
    browser: httpx.Client, path: Path, header: dict[str, str]
) -> None:
    _, token = keys.create(path, ["read"])
    form = {"csrf_token": token_in(browser.get("/ui/sign-in")), "key": token}
    host = browser.base_url.netloc.decode()
    headers = {name: value.format(host=host) for name, value in header.items()}
    answer = browser.post("/ui/sign-in", data=form, headers=headers)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-rprime_session=")
    assert "; Secure" in cookie
    sent = {"Cookie": cookie.partition(";")[0]}
    assert httpx.get(f"{browser.base_url}{CLOSED}", headers=sent).status_code == 200


def test_a_script_is_told_instead_of_sent_to_sign_in(browser: httpx.Client) -> None:
    headers = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
    answer = browser.post("/ui/evaluate", content=b"1 2", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")


def test_no_cache_shares_a_page(browser: httpx.Client, path: Path) -> None:
    _, token = keys.create(path, ["read"])
    signed_in(browser, token)
    for where, policy in (
        ("/ui/projects", "private, no-cache"),
        ("/ui/indices", "private, no-cache"),
        ("/ui/sign-in", "no-store"),
    ):
        assert browser.get(where).headers["cache-control"] == policy


def test_a_wrong_key_signs_nobody_in(browser: httpx.Client, path: Path) -> None:
    key, token = keys.create(path, ["read"])
    keys.revoke(path, key.id)
    for credential, message in ((token, "The key is revoked."), ("<i>", "The key is not valid.")):
        answer = signed_in(browser, credential)
        assert answer.status_code == 403
        assert message in answer.text
        assert "<i>" not in answer.text
        assert browser.get(CLOSED).status_code == 401


@pytest.mark.parametrize(
    "asked",
    ["//evil.example", "https://evil.example", "/ui/x", "ui/\\x", "ui/ x", "javascript:x", "",
     "ui/sign-in", "?x=\r\nX: y"],
)  # fmt: skip
def test_signing_in_leads_nowhere_else(browser: httpx.Client, path: Path, asked: str) -> None:
    _, token = keys.create(path, ["read"])
    answer = signed_in(browser, token, str(httpx.URL("/ui/sign-in", params={"next": asked})))
    assert answer.headers["location"] in {"../", "../ui/projects"}


def test_only_pages_are_destinations() -> None:
    for target in ("ui/projects/a%20b?x=1", "", "?x", "ui/"):
        assert destination(target, "first") == target
    for other in (None, "v1/projects", "ui", "../x", "ui/sign-in?next=ui/sign-in"):
        assert destination(other, "first") == "first"


def test_it_leads_to_the_projects_only_where_there_are_some(
    browser: httpx.Client, path: Path, serve_app: ServeApp
) -> None:
    _, token = keys.create(path, ["read"])
    assert signed_in(browser, token).headers["location"] == "../ui/projects"
    with serve_app(create_app(Settings(keys_file=path, store="none"))) as other:
        assert signed_in(other, token).headers["location"] == "../"


def test_signing_out_ends_it_in_the_browser(browser: httpx.Client, path: Path) -> None:
    _, token = keys.create(path, ["read"])
    signed_in(browser, token)
    csrf = csrf_of(browser)
    assert browser.post("/ui/sign-out").status_code == 415
    assert browser.post("/ui/sign-out", data={"csrf_token": "x"}).status_code == 403
    assert browser.get(CLOSED).status_code == 200
    answer = browser.post("/ui/sign-out", data={"csrf_token": csrf})
    assert (answer.status_code, answer.headers["location"]) == (303, "../")
    assert answer.headers["clear-site-data"] == '"cache"'
    assert not browser.cookies
    assert browser.get(CLOSED).status_code == 401


def test_signing_out_ends_it_on_the_server(
    browser_of: Callable[[], httpx.Client], path: Path
) -> None:
    _, token = keys.create(path, ["read"])
    browser, other, thief = browser_of(), browser_of(), browser_of()
    for client in (browser, other):
        signed_in(client, token)
    thief.cookies.update(browser.cookies)
    assert thief.get("/ui/projects").status_code == 200
    browser.post("/ui/sign-out", data={"csrf_token": csrf_of(browser)})
    assert (thief.get(CLOSED).status_code, thief.get("/ui/projects").status_code) == (401, 303)
    assert "Sign in" in thief.get("/ui/sign-in").text
    assert other.get(CLOSED).status_code == 200


@pytest.mark.parametrize("kept", [True, False])
def test_an_ended_session_stays_ended(serve_app: ServeApp, tmp_path: Path, *, kept: bool) -> None:
    path, store = tmp_path / "keys.json", f"sqlite:///{tmp_path}/rprime.db" if kept else "none"
    _, token = keys.create(path, ["read"])
    settings = Settings(keys_file=path, store=store, session_secret=SECRET)
    with serve_app(create_app(settings)) as first:
        signed_in(first, token)
        cookies = dict(first.cookies)
        if not kept:
            # Another worker or replica.
            with serve_app(create_app(settings)) as second:
                second.cookies.update(cookies)
                assert second.get(CLOSED).status_code == 200
                first.post("/ui/sign-out", data={"csrf_token": csrf_of(first)})
                assert second.get(CLOSED).status_code == 401
        else:
            first.post("/ui/sign-out", data={"csrf_token": csrf_of(first)})
    with serve_app(create_app(settings)) as again:
        again.cookies.update(cookies)
        assert again.get(CLOSED).status_code == 401


def test_where_no_file_can_be_made_a_process_remembers_what_it_ended(tmp_path: Path) -> None:
    sessions = SessionFile(tmp_path / "none" / "keys.json.sessions")
    sessions.revoke_session("a", 2**40)
    assert sessions.is_session_revoked("a", 2**40)
    assert not sessions.is_session_revoked("b", 2**40)


def test_the_ended_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(revoked_sessions, "MOST_REVOKED", 3)
    sessions, now = SessionFile(tmp_path / "sessions"), int(time.time())
    sessions.revoke_session("old", now - 1)
    begun = now + LASTS_SECONDS - 60
    for name in "abc":
        sessions.revoke_session(name, begun)
    assert [sessions.is_session_revoked(name, begun) for name in "abcd"] == [True] * 3 + [False]
    # One too many: whatever began by now has ended, and what begins later has not.
    sessions.revoke_session("d", begun)
    assert all(sessions.is_session_revoked(name, begun) for name in "abcdx")
    assert not sessions.is_session_revoked("later", now + LASTS_SECONDS + 60)
    sessions.revoke_session("e", begun)
    assert not sessions.is_session_revoked("later", now + LASTS_SECONDS + 60)


def test_without_keys_there_is_nothing_to_sign_in_to(client: httpx.Client) -> None:
    assert client.get("/ui/sign-in").headers["location"] == "../ui/projects"
    assert client.post("/ui/sign-in").status_code == 303
    assert "Sign in" not in client.get("/ui/indices").text


# What it opens


def test_a_session_opens_what_its_key_opens(
    browser_of: Callable[[], httpx.Client], path: Path
) -> None:
    _, admin = keys.create(path, ["admin"])
    writer = browser_of()
    for project in ("mine", "theirs"):
        headers = {"Authorization": f"Bearer {admin}"}
        request = matrix(project=project)
        assert writer.post("/v1/evaluate", json=request, headers=headers).status_code == 201
    _, token = keys.create(path, ["read"], project="mine")
    browser = browser_of()
    signed_in(browser, token)
    assert browser.get("/v1/projects/mine/evaluations").status_code == 200
    assert browser.get("/v1/projects/theirs/evaluations").status_code == 404
    listed = browser.get("/v1/projects").json()["items"]
    assert [project["name"] for project in listed] == ["mine"]
    csrf = {"X-CSRF-Token": csrf_of(browser)}
    assert browser.post("/v1/gates/lint", json=LINT, headers=csrf).status_code == 403
    assert browser.delete("/v1/projects/mine", headers=csrf).json()["code"] == "forbidden"


def test_revoking_the_key_ends_the_session(browser: httpx.Client, path: Path) -> None:
    key, token = keys.create(path, ["read"])
    signed_in(browser, token)
    assert browser.get(CLOSED).status_code == 200
    keys.revoke(path, key.id)
    assert browser.get(CLOSED).status_code == 401
    assert browser.get("/ui/evaluations/z").status_code == 303
    assert "Sign in" in browser.get("/ui/sign-in").text


def test_a_session_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Sessions(SECRET)
    session = made.begin("k" * 12)
    read = made.read(session.cookie)
    assert read is not None
    assert (read.key, read.cookie) == ("k" * 12, session.cookie)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + LASTS_SECONDS + 1)
    assert made.read(session.cookie) is None


def test_no_part_of_a_cookie_can_be_changed(browser: httpx.Client, path: Path) -> None:
    _, token = keys.create(path, ["read"])
    admin, _ = keys.create(path, ["admin"])
    signed_in(browser, token)
    cookie = str(next(iter(browser.cookies.jar)).value)
    key, nonce, begun, signature = cookie.split(".")
    forged = [
        f"{admin.id}.{nonce}.{begun}.{signature}",
        f"{key}.x.{begun}.{signature}",
        f"{key}.{nonce}.{begun[:-1]}{'AB'[begun[-1] == 'A']}.{signature}",
        f"{key}.{nonce}.{begun}.{Sessions('t' * 32).begin(key).cookie.rpartition('.')[2]}",
        Sessions("t" * 32).begin(key).cookie,
        f"{key}.{nonce}.{begun}.",
        csrf_of(browser),
        "é",
        "...",
        "",
    ]
    with httpx.Client(base_url=browser.base_url) as client:
        for forgery in forged:
            sent = {"Cookie": f"rprime_session={forgery}".encode()}
            assert client.get(CLOSED, headers=sent).status_code == 401  # type: ignore[arg-type] # bytes
        sent = {"Cookie": f"rprime_session={cookie}".encode()}
        assert client.get(CLOSED, headers=sent).status_code == 200  # type: ignore[arg-type] # bytes


def test_a_cookie_of_nobody_opens_nothing(browser: httpx.Client) -> None:
    browser.get("/ui/sign-in")
    assert browser.cookies
    assert browser.get(CLOSED).status_code == 401


def test_a_wrong_key_is_not_made_up_for_by_a_cookie(browser: httpx.Client, path: Path) -> None:
    _, token = keys.create(path, ["read"])
    signed_in(browser, token)
    wrong = {"Authorization": "Bearer x"}
    assert browser.get(CLOSED, headers=wrong).status_code == 401
    assert browser.get("/ui/evaluations/z", headers=wrong).status_code == 401


# What it never does


CROSS = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
]


@pytest.mark.parametrize("headers", CROSS, ids=str)
def test_a_cookie_opens_nothing_to_another_site(
    browser: httpx.Client, path: Path, headers: dict[str, str]
) -> None:
    _, token = keys.create(path, ["admin"])
    signed_in(browser, token)
    csrf = csrf_of(browser)
    assert browser.get(CLOSED, headers=headers).status_code == 401
    sent = {**headers, "X-CSRF-Token": csrf}
    assert browser.post("/v1/gates/lint", json=LINT, headers=sent).status_code == 401
    form = {"csrf_token": csrf}
    assert browser.post("/ui/sign-out", data=form, headers=headers).status_code == 403
    fresh = {"csrf_token": csrf, "key": token}
    assert browser.post("/ui/sign-in", data=fresh, headers=headers).status_code == 403


@pytest.mark.parametrize("sent", [None, "", "x", "of another session"])
def test_a_change_needs_the_token_of_its_session(
    browser_of: Callable[[], httpx.Client], path: Path, sent: str | None
) -> None:
    _, token = keys.create(path, ["admin"])
    browser, other = browser_of(), browser_of()
    signed_in(browser, token)
    signed_in(other, token)
    csrf = csrf_of(other) if sent == "of another session" else sent
    headers = {} if csrf is None else {"X-CSRF-Token": csrf}
    answer = browser.post("/v1/gates/lint", json=LINT, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "unproven_origin")
    right = {"X-CSRF-Token": csrf_of(browser)}
    assert browser.post("/v1/gates/lint", json=LINT, headers=right).status_code == 200


def test_a_form_that_is_too_old_is_shown_again(browser: httpx.Client, path: Path) -> None:
    _, token = keys.create(path, ["read"])
    answer = browser.get("/ui/sign-in")
    for form in ({"key": token}, {"key": token, "csrf_token": "x"}):
        answer = browser.post("/ui/sign-in", data=form)
        assert answer.status_code == 403
        assert "Send it once more." in answer.text
        assert token not in answer.text
    again = {"key": token, "csrf_token": token_in(answer)}
    assert browser.post("/ui/sign-in", data=again).status_code == 303


def test_a_form_has_bounds(browser: httpx.Client) -> None:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    for content, status in ((b"x" * 70_000, 413), (b"a=%ff", 400), (b"&a=" * 500, 400)):
        answer = browser.post("/ui/sign-in", content=content, headers=kind)
        assert answer.status_code == status


def test_a_link_on_another_site_leads_to_the_page(browser: httpx.Client) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    answer = browser.get("/ui/evaluations/a%22%3Cb%3E?x=%22%3E&y", headers=headers)
    assert answer.status_code == 200
    match = re.search(r'content="0; url=([^"]+)"', answer.text)
    assert match is not None
    assert unescape(match[1]) == "./a%22%3Cb%3E?x=%22%3E&y"
    assert "set-cookie" not in answer.headers


# The process


@pytest.mark.slow
def test_workers_share_sessions_and_a_restart_ends_them(serve: Serve, path: Path) -> None:
    _, token = keys.create(path, ["read"])
    variables = {"RPRIME_KEYS_FILE": str(path), "RPRIME_STORE": "none"}
    close = {"Connection": "close"}
    with serve("--workers", "2", **variables) as browser:
        signed_in(browser, token)
        statuses = {browser.get(CLOSED, headers=close).status_code for _ in range(12)}
        assert statuses == {200}
        cookies = dict(browser.cookies)
    with serve(**variables, RPRIME_SESSION_SECRET=SECRET) as browser:
        browser.cookies.update(cookies)
        assert browser.get(CLOSED).status_code == 401
        browser.cookies.clear()
        signed_in(browser, token)
        cookies = dict(browser.cookies)
    with serve(**variables, RPRIME_SESSION_SECRET=SECRET) as browser:
        browser.cookies.update(cookies)
        assert browser.get(CLOSED).status_code == 200


def test_no_key_of_a_form_is_in_the_log(serve: Serve, path: Path, tmp_path: Path) -> None:
    _, token = keys.create(path, ["read"])
    log = tmp_path / "log"
    variables = {"RPRIME_KEYS_FILE": str(path), "RPRIME_STORE": "none"}
    with serve(log=log, **variables) as browser:
        signed_in(browser, token[:-4] + "beef", "/ui/sign-in?next=ui/x")
        signed_in(browser, token)
        cookie = str(next(iter(browser.cookies.jar)).value)
    written = log.read_text()
    assert "signed_in" in written
    assert token.rpartition("_")[2][:20] not in written
    assert cookie not in written


def test_a_short_secret_is_refused(rprime: Callable[..., CompletedProcess[str]]) -> None:
    done = rprime("serve", RPRIME_SESSION_SECRET="short")  # noqa: S106 - that is what is refused
    assert "RPRIME_SESSION_SECRET" in done.stderr
    assert "short" not in done.stderr.replace("shorter", "")
