"""The service behind a proxy that strips a prefix from paths."""

import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urljoin

import httpx
import pytest

from rprime.settings import Settings
from tests.history_service import matrix
from tests.services import Serve

PREFIX = "/tools/rprime"
HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "date", "server"}


class Proxy(BaseHTTPRequestHandler):
    upstream: httpx.Client

    def forward(self) -> None:
        if not self.path.startswith(f"{PREFIX}/"):
            self.send_error(404, "no such place")
            return
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.removeprefix(PREFIX)
        sent = {name: value for name, value in self.headers.items() if name.lower() != "host"}
        answer = self.upstream.request(self.command, path, content=content, headers=sent)
        self.send_response(answer.status_code)
        for name, value in answer.headers.items():
            if name not in HOP_BY_HOP | {"content-encoding"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    do_GET = do_POST = do_PUT = forward  # noqa: N815 - the names that http.server calls

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as it is declared
        """Say nothing."""


@pytest.fixture(scope="module")
def outside(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Return a client that reaches the service only through the proxy."""
    store = f"sqlite:///{tmp_path_factory.mktemp('store')}/rprime.db"
    with serve(RPRIME_ROOT_PATH=PREFIX, RPRIME_STORE=store) as upstream:
        handler = type("Handler", (Proxy,), {"upstream": upstream})
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as proxy:
            thread = Thread(target=proxy.serve_forever)
            thread.start()
            try:
                base = f"http://127.0.0.1:{proxy.server_port}{PREFIX}/"
                with httpx.Client(base_url=base, timeout=60) as client:
                    yield client
            finally:
                proxy.shutdown()
                thread.join()


def test_locations_and_links_lead_somewhere(outside: httpx.Client) -> None:
    answer = outside.post("v1/evaluate", json=matrix())
    assert answer.status_code == 201
    evaluation = urljoin(str(answer.url), answer.headers["location"])
    assert outside.get(evaluation).json()["id"] == answer.json()["id"]
    links = answer.json()["links"]
    assert links
    for link in links.values():
        assert outside.get(urljoin(str(answer.url), link)).status_code == 200, link
    alias = outside.put(
        "v1/projects/pets/aliases/champion",
        json={"evaluation": answer.json()["id"]},
        headers={"If-None-Match": "*"},
    )
    assert outside.get(urljoin(str(alias.url), alias.headers["location"])).status_code == 200


def test_the_type_of_a_problem_is_a_page(outside: httpx.Client) -> None:
    for answer in (outside.get("v1/nowhere"), outside.post("evaluate", content=b"{")):
        page, _, place = answer.json()["type"].partition("#")
        document = outside.get(urljoin(str(answer.url), page))
        assert document.status_code == 200
        assert f'id="{place}"' in document.text


def test_pages_and_documents_find_their_parts(outside: httpx.Client) -> None:
    visited: set[str] = set()
    for where in ("", "docs", "docs/index.md", "docs/problems", "ui/projects"):
        page = outside.get(where, follow_redirects=True)
        assert page.status_code == 200, where
        parts = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
        assert parts
        references = {part for part in parts if not part.startswith(("http:", "https:", "data:"))}
        addresses = {urljoin(str(page.url), part) for part in references} - visited
        visited |= addresses
        for address in addresses:
            answer = outside.get(address, follow_redirects=True)
            assert answer.status_code == 200, (where, address)


def test_the_contract_names_the_prefix(outside: httpx.Client) -> None:
    document = outside.get("openapi.json").json()
    assert document["servers"] == [{"url": PREFIX}]


@pytest.mark.parametrize("path", ["rprime", "/rprime/", "http://host/x", "/a b", "/"])
def test_a_prefix_is_a_path(path: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="root_path"):
        Settings(root_path=path, store=f"sqlite:///{tmp_path}/rprime.db")
