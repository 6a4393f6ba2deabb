"""What is read again and again is compressed, and not sent again where the client has it."""

import asyncio
import gzip
from collections.abc import Callable, Iterator

import httpx
import pytest
import zstandard
from fastapi import FastAPI, Response

from rprime.routes.negotiation import CompressedRoute
from tests.history_service import ServeApp, keep, keeping, matrix

DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.decompress,
    "zstd": zstandard.decompress,
    "identity": bytes,
}


@pytest.fixture(scope="module")
def client(serve_app: ServeApp, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path_factory.mktemp("kept")) as client:
        yield client


@pytest.fixture(scope="module")
def paths(client: httpx.Client) -> tuple[str, ...]:
    """Return the addresses of pages, reports, a figure, the catalog and a document."""
    evaluation = keep(client, matrix(version="1"))["id"]
    report = f"/v1/evaluations/{evaluation}"
    pages = ("/ui/evaluate", "/ui/indices", "/ui/projects/pets", f"/ui/evaluations/{evaluation}")
    renderings = (report, f"{report}/report.html", f"{report}/figures/confusion.svg")
    files = ("/docs", "/docs/schemas", "/static/example.json")
    return (*pages, *renderings, "/v1/indices", "/docs/gates.md", "/openapi.json", *files)


def raw(client: httpx.Client, path: str, **headers: str) -> tuple[httpx.Response, bytes]:
    """Get the bytes as they were sent, and without the headers that httpx adds."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    with client.stream("GET", path, headers={"Accept-Encoding": "identity"} | names) as response:
        return response, b"".join(response.iter_raw())


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_an_answer_is_smaller_and_the_same(
    client: httpx.Client, paths: tuple[str, ...], coding: str
) -> None:
    for path in paths:
        if coding == "zstd" and path.startswith("/static"):
            continue
        _, plain = raw(client, path)
        response, sent = raw(client, path, Accept_Encoding=f"br, {coding}")
        assert response.headers["content-encoding"] == coding, path
        assert "accept-encoding" in response.headers["vary"].lower(), path
        assert DECODERS[coding](sent) == plain, path
        assert len(sent) < len(plain) / 2, path


@pytest.mark.parametrize("refused", ["", "br", "gzip;q=0, zstd; q=0.0", "gzip;q=x"])
def test_no_coding_that_the_client_refuses(client: httpx.Client, refused: str) -> None:
    response, _ = raw(client, "/ui/indices", Accept_Encoding=refused)
    assert "content-encoding" not in response.headers


def test_a_file_that_the_client_has_is_not_sent_again(client: httpx.Client) -> None:
    path = "/static/favicon.svg"
    for coding in ("gzip", "identity"):
        response, _ = raw(client, path, Accept_Encoding=coding)
        tag = response.headers["etag"]
        assert tag.startswith("W/") is (coding == "gzip")
        again, sent = raw(client, path, Accept_Encoding=coding, If_None_Match=tag)
        assert (again.status_code, sent) == (304, b"")


def test_a_short_answer_is_sent_as_it_is(client: httpx.Client) -> None:
    response, sent = raw(client, "/v1/projects", Accept_Encoding="gzip")
    assert "content-encoding" not in response.headers
    assert 0 < len(sent) < 1024


@pytest.mark.parametrize("coding", DECODERS)
def test_an_answer_that_the_client_has_is_not_sent_again(
    client: httpx.Client, paths: tuple[str, ...], coding: str
) -> None:
    for path in paths:
        first, _ = raw(client, path, Accept_Encoding=coding)
        tag = first.headers["etag"]
        again, sent = raw(client, path, Accept_Encoding=coding, If_None_Match=tag)
        assert (again.status_code, sent) == (304, b""), path
        # A browser replaces the headers of the stored answer by these.
        assert again.headers["content-security-policy"] == policy(first), path


def test_repeated_headers_are_in_the_answer_that_is_not_sent_again() -> None:
    app = FastAPI()
    app.router.route_class = CompressedRoute

    @app.get("/")
    def endpoint() -> Response:
        response = Response("a", headers={"Link": '<a>; rel="prev"'})
        response.headers.append("Link", '<c>; rel="next"')
        response.set_cookie("first", "1")
        response.set_cookie("second", "2")
        return response

    async def ask() -> tuple[httpx.Response, httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://rprime") as client:
            whole = await client.get("/")
            return whole, await client.get("/", headers={"If-None-Match": whole.headers["etag"]})

    whole, again = asyncio.run(ask())
    assert again.status_code == 304
    of_the_body = {"content-length", "content-type"}
    for name in set(whole.headers) - of_the_body:
        assert again.headers.get_list(name) == whole.headers.get_list(name), name
    assert len(again.headers.get_list("set-cookie")) == 2
    assert of_the_body.isdisjoint(again.headers)


def policy(response: httpx.Response) -> str:
    return str(response.headers["content-security-policy"])


def test_another_answer_has_another_tag(client: httpx.Client) -> None:
    before, _ = raw(client, "/ui/projects/pets")
    keep(client, matrix(2, version="2"))
    after, _ = raw(client, "/ui/projects/pets", If_None_Match=before.headers["etag"])
    assert after.status_code == 200
    assert after.headers["etag"] != before.headers["etag"]
    # A tag of a compressed answer stands for more than one sequence of bytes.
    assert not before.headers["etag"].startswith("W/")


def test_the_answer_to_an_evaluation_is_not_compressed(client: httpx.Client) -> None:
    body = {"confusion_matrix": [[9, 1], [2, 8]]}
    with client.stream(
        "POST", "/evaluate", json=body, headers={"Accept-Encoding": "gzip"}
    ) as response:
        assert "content-encoding" not in response.headers
