"""The comment of a pull request: one for each model, brought up to date by every run."""

import json
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.examples.recipes import EXAMPLES, PROGRAMS, Done, missing, run

SCRIPT = EXAMPLES / "github" / "comment.sh"
OTHERS = [{"id": i, "body": f"comment {i}\r\n<!-- rprime:report 0 -->"} for i in range(230)]


class Forge(ThreadingHTTPServer):
    """Keeps the comments of a pull request as the API of GitHub does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.comments = [dict(comment) for comment in OTHERS]
        self.token = "secret"  # noqa: S105 (of this test alone)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def ours(self) -> list[str]:
        return [str(comment["body"]) for comment in self.comments[len(OTHERS) :]]


class _Handler(BaseHTTPRequestHandler):
    server: Forge

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        size, page = int(query["per_page"][0]), int(query["page"][0])
        self._answer(200, self.server.comments[size * (page - 1) : size * page])

    def do_POST(self) -> None:
        assert self.path == "/repos/owner/repository/issues/7/comments"
        comment = {"id": len(self.server.comments), **self._body()}
        self.server.comments.append(comment)
        self._answer(201, comment | {"html_url": "https://github.example/7#new"})

    def do_PATCH(self) -> None:
        comment = self.server.comments[int(self.path.rpartition("/")[2])]
        comment |= self._body()
        self._answer(200, comment | {"html_url": "https://github.example/7#old"})

    def _body(self) -> dict[str, str]:
        found: dict[str, str] = json.loads(self.rfile.read(int(self.headers["content-length"])))
        return found

    def _answer(self, status: int, content: object) -> None:
        if self.headers["authorization"] != f"Bearer {self.server.token}":
            status, content = 403, {}
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def forge() -> Iterator[Forge]:
    if not (shutil.which("curl") and shutil.which("jq")):
        missing("the comment needs curl and jq")
    with Forge() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def comment(forge: Forge, folder: Path, model: str, *, token: str = "secret") -> Done:  # noqa: S107 (none)
    """Evaluate a model and put the report into pull request 7."""
    table = folder / "table.json"
    table.write_text('{"confusion_matrix": [[5, 1], [2, 7]], "labels": ["<a>", "b"]}')
    run("rprime", "evaluate", table, "--model", model, "--markdown", "rprime.md", cwd=folder)
    variables = {
        "GITHUB_API_URL": forge.url,
        "GITHUB_REPOSITORY": "owner/repository",
        "GITHUB_TOKEN": token,
    }
    return run("sh", SCRIPT, "rprime.md", "7", cwd=folder, variables=variables)


def test_it_is_clean_by_shellcheck() -> None:
    done = run(PROGRAMS / "shellcheck", "--shell", "sh", SCRIPT, cwd=EXAMPLES)
    assert done.returncode == 0, done.stdout


def test_each_model_has_one_comment_that_is_brought_up_to_date(
    forge: Forge, tmp_path: Path
) -> None:
    first = comment(forge, tmp_path, "resnet")
    assert (first.returncode, first.stderr) == (0, "comment: https://github.example/7#new\n")
    assert forge.ours == [(tmp_path / "rprime.md").read_text()]
    assert comment(forge, tmp_path, "lenet").returncode == 0
    assert len(forge.ours) == 2
    forge.comments[-2]["body"] = f"{forge.ours[0].splitlines()[0]}\nold"
    again = comment(forge, tmp_path, "resnet")
    assert again.stderr == "comment: https://github.example/7#old\n"
    assert forge.ours[0] == (tmp_path / "rprime.md").read_text()
    assert forge.comments[: len(OTHERS)] == OTHERS


def test_what_it_may_not_do_fails_and_is_said(forge: Forge, tmp_path: Path) -> None:
    done = comment(forge, tmp_path, "resnet", token="of a fork")  # noqa: S106 (none)
    assert done.returncode not in {0, 2}
    assert "403" in done.stderr
    assert not forge.ours


def test_what_is_no_report_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n")
    assert (
        run(
            "sh", SCRIPT, "notes.md", "7", cwd=tmp_path, variables={"GITHUB_REPOSITORY": "o/r"}
        ).returncode
        == 2
    )
    assert run("sh", SCRIPT, "notes.md", cwd=tmp_path).returncode == 2
