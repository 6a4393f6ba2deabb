"""`.ci/pin-images` against a registry of the test's own."""

import json
import runpy
import shutil
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.examples.recipes import Done, run

ROOT = Path(__file__).parents[1]
PIN: dict[str, Any] = runpy.run_path(str(ROOT / ".ci" / "image" / "pin.py"))


class Registry(ThreadingHTTPServer):
    """A registry that knows manifests by name and tag, and wants a token for each name."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.manifests: dict[str, bytes] = {}
        self.named_digest: str | None = None
        self.open_to_all = False

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/token":
            query = parse_qs(url.query)
            assert query["service"] == ["registry"]
            self.answer(200, json.dumps({"token": query["scope"][0]}).encode())
            return
        name, _, tag = url.path.removeprefix("/v2/").partition("/manifests/")
        scope = f"repository:{name}:pull"
        if not self.server.open_to_all and self.headers["Authorization"] != f"Bearer {scope}":
            realm = f"http://{self.server.host}/token"
            challenge = f'Bearer realm="{realm}",service="registry",scope="{scope}"'
            self.answer(401, b"{}", **{"WWW-Authenticate": challenge})
            return
        body = self.server.manifests.get(f"{name}:{tag}")
        if body is None:
            self.answer(404, b"{}")
        else:
            assert "image.index" in self.headers["Accept"]
            named = self.server.named_digest or digest(body)
            self.answer(200, body, **{"Docker-Content-Digest": named})

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def digest(body: bytes) -> str:
    return f"sha256:{sha256(body).hexdigest()}"


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def files(registry: Registry, tmp_path: Path) -> list[Path]:
    """Return copies of the real files, whose images are those of the registry."""
    copies = []
    for number, name in enumerate(PIN["FILES"]):
        copy = Path(shutil.copy(ROOT / name, tmp_path / str(number)))
        copy.write_text(copy.read_text().replace("docker.io/", f"{registry.host}/"))
        copies.append(copy)
    registry.manifests = {
        "library/python:3.13-slim-bookworm": b'{"of": "python"}',
        "nginxinc/nginx-unprivileged:1.28-alpine": b'{"of": "nginx"}',
        "library/postgres:17-alpine": b'{"of": "postgres"}',
    }
    return copies


def pin(*paths: Path) -> Done:
    return run(ROOT / ".ci" / "pin-images", *paths, cwd=ROOT)


@pytest.mark.parametrize("open_to_all", [False, True])
def test_every_image_gets_the_digest_of_its_manifest(
    registry: Registry, files: list[Path], open_to_all: bool
) -> None:
    registry.open_to_all = open_to_all
    before = [path.read_text() for path in files]
    done = pin(*files)
    assert done.returncode == 0, done.stderr
    expected = before
    for image, body in registry.manifests.items():
        assert any(image in text for text in before)
        expected = [text.replace(image, f"{image}@{digest(body)}") for text in expected]
    assert [path.read_text() for path in files] == expected
    assert len(done.stdout.splitlines()) == 3


def test_another_run_moves_to_what_the_tags_are_then(registry: Registry, files: list[Path]) -> None:
    dockerfile, *_ = files
    before = dockerfile.read_text()
    assert pin(dockerfile).returncode == 0
    registry.manifests["library/python:3.13-slim-bookworm"] = b"newer"
    assert pin(dockerfile).returncode == 0
    tag = ":3.13-slim-bookworm"
    assert dockerfile.read_text() == before.replace(tag, f"{tag}@{digest(b'newer')}")


@pytest.mark.parametrize("fault", ["unknown", "digest", "gone"])
def test_nothing_is_changed_where_one_digest_cannot_be_had(
    registry: Registry, files: list[Path], fault: str
) -> None:
    if fault == "unknown":
        del registry.manifests["library/postgres:17-alpine"]
    elif fault == "digest":
        registry.named_digest = digest(b"another manifest")
    else:
        registry.shutdown()
        registry.server_close()
    before = [path.read_text() for path in files]
    done = pin(*files)
    assert done.returncode == 1
    assert "nothing is changed" in done.stderr
    assert [path.read_text() for path in files] == before


def test_it_finds_every_image_of_the_files() -> None:
    images = {
        match["name"]
        for name in PIN["FILES"]
        for match in PIN["REFERENCE"].finditer((ROOT / name).read_text())
    }
    assert images == {"library/python", "nginxinc/nginx-unprivileged", "library/postgres"}
