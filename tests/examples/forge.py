"""A stub of GitHub or GitLab that keeps comments and refuses what their schemas do not allow."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import jsonschema

from tests.examples.forge_schemas import GITHUB, GITLAB

Json = Any
TOKEN, READS, JOB = "of a person", "may only read", "of the job"
PERSON = {"id": 7, "login": "ada", "username": "ada", "name": "Ada", "type": "User"}
BOT = {"id": 41898282, "login": "github-actions[bot]", "type": "Bot"}
WHEN = "2026-01-01T00:00:00Z"
URL = "https://forge.example/"


def with_nulls(node: Json) -> Json:
    """Turn `nullable` of OpenAPI 3.0 into what JSON Schema calls it."""
    if isinstance(node, list):
        return [with_nulls(each) for each in node]
    if not isinstance(node, dict):
        return node
    members = {name: with_nulls(value) for name, value in node.items() if name != "nullable"}
    return {"anyOf": [members, {"type": "null"}]} if node.get("nullable") is True else members


class Contract:
    """The operations of a document of OpenAPI, to hold requests and answers against."""

    def __init__(self, file: Path) -> None:
        self.document: Json = with_nulls(json.loads(file.read_text(encoding="utf-8")))

    def wrong(self, schema: Json, value: Json) -> list[str]:
        root = {**schema, "components": self.document["components"]}
        checker = jsonschema.Draft7Validator(root)
        return [error.message for error in checker.iter_errors(value)]

    def _resolved(self, node: Json) -> Json:
        while "$ref" in node:
            target: Json = self.document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def operation(self, method: str, path: str) -> tuple[Json, dict[str, str]] | None:
        """Find the operation that a request means, and the parts of its path."""
        for template, methods in self.document["paths"].items():
            pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(template))
            match = re.fullmatch(pattern, path)
            if match and method.lower() in methods:
                return methods[method.lower()], match.groupdict()
        return None

    def mistakes(
        self, operation: Json, parts: dict[str, str], query: dict[str, str], body: Json
    ) -> list[str]:
        """Say what of a request the operation does not allow."""
        parameters = [self._resolved(each) for each in operation.get("parameters", [])]
        arguments = {"path": parts, "query": query}
        names = {(each["in"], each["name"]) for each in parameters}
        mistakes = [
            f"{where} parameter {name} is unknown"
            for where, values in arguments.items()
            for name in values
            if (where, name) not in names
        ]
        for each in parameters:
            value: Json = arguments[each["in"]].get(each["name"])
            if value is None:
                mistakes += [f"{each['name']} is missing"] if each.get("required") else []
                continue
            number = each["schema"].get("type") == "integer" and re.fullmatch(r"\d+", value)
            mistakes += self.wrong(each["schema"], int(value) if number else value)
        expected = operation.get("requestBody")
        if expected is None:
            return mistakes + (["a body is not wanted"] if body is not None else [])
        schema = expected["content"]["application/json"]["schema"]
        # Both ignore an unknown member in silence; here it is a mistake.
        return mistakes + self.wrong({**schema, "additionalProperties": False}, body)

    def answer_mistakes(self, operation: Json, status: int, body: Json) -> list[str]:
        """Say what of the stub's own answer the operation does not allow."""
        answer = operation["responses"].get(str(status))
        if answer is None:
            # Neither document lists every refusal of every operation.
            return [] if status in {401, 403} else [f"{status} is not documented"]
        content = self._resolved(answer)["content"]
        return self.wrong(content["application/json"]["schema"], body)


class Forge(ThreadingHTTPServer):
    """Comments of request 7; `mistakes` has whatever a client did that is not documented."""

    def __init__(self, kind: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.kind = kind
        self.contract = Contract(GITHUB if kind == "github" else GITLAB)
        self.comments: list[Json] = []
        self.mistakes: list[str] = []
        self.requests: list[str] = []

    @property
    def url(self) -> str:
        prefix = "" if self.kind == "github" else "/api/v4"
        return f"http://127.0.0.1:{self.server_address[1]}{prefix}"

    @property
    def bodies(self) -> list[str]:
        return [str(comment["body"]) for comment in self.comments]

    def add(self, body: str, author: Json) -> Json:
        number = len(self.comments) + 1
        common = {"id": number, "body": body, "created_at": WHEN, "updated_at": WHEN}
        if self.kind == "github":
            made = common | {
                "node_id": "n",
                "url": f"{URL}{number}",
                "html_url": f"{URL}7#{number}",
                "issue_url": f"{URL}issues/7",
                "user": github_user(author),
            }
        else:
            made = common | {
                "author": {name: PERSON[name] for name in ("username", "name")}
                | {"id": author["id"], "state": "active"},
                "system": False,
                "noteable_id": 2,
                "noteable_type": "MergeRequest",
                "project_id": 5,
                "noteable_iid": 7,
            }
        self.comments.append(made)
        return made


def github_user(author: Json) -> Json:
    addresses = (
        "avatar html followers following gists starred subscriptions organizations repos events "
        "received_events"
    )
    return {
        **{f"{name}_url": URL for name in addresses.split()},
        **{name: author[name] for name in ("id", "login", "type")},
        "node_id": "n",
        "gravatar_id": "",
        "url": URL,
        "site_admin": False,
    }


class _Handler(BaseHTTPRequestHandler):
    server: Forge
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        parts = urlsplit(self.path)
        prefix = urlsplit(self.server.url).path
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.requests.append(f"{self.command} {self.path}")
        route = self.server.contract.operation(self.command, parts.path.removeprefix(prefix))
        if route is None or not parts.path.startswith(prefix):
            self.server.mistakes.append(f"{self.command} {self.path}: no such operation")
            self._send(404, {"message": "Not Found"})
            return
        operation, names = route
        content = json.loads(body) if body else None
        query = dict(parse_qsl(parts.query))
        mistakes = self.server.contract.mistakes(
            operation, {name: unquote(value) for name, value in names.items()}, query, content
        )
        mistakes += self._wrong_headers(with_body=bool(body))
        if mistakes:
            self.server.mistakes += mistakes
            status, answer = 422, {"message": "Validation Failed", "errors": mistakes}
        else:
            status, answer = self._answer(names, query, content)
            wrong = self.server.contract.answer_mistakes(operation, status, answer)
            self.server.mistakes += [f"the stub itself: {each}" for each in wrong]
        self._send(status, answer)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer  # noqa: N815 (the library's names)

    def _wrong_headers(self, *, with_body: bool) -> list[str]:
        expected = {"content-type": "application/json"} if with_body else {}
        if self.server.kind == "github":
            # https://docs.github.com/rest: a version that is named stays what it is.
            expected |= {
                "accept": "application/vnd.github+json",
                "x-github-api-version": "2022-11-28",
            }
        return [
            f"{name}: {self.headers[name]}, not {value}"
            for name, value in expected.items()
            if self.headers[name] != value
        ]

    def _answer(
        self, names: dict[str, str], query: dict[str, str], content: Json
    ) -> tuple[int, Json]:
        """Answer a request that is well formed, as the token allows."""
        token = str(self.headers["authorization"]).removeprefix("Bearer ")
        ours = {"owner": "owner", "repo": "repository", "id": "5"}
        ours |= {"issue_number": "7", "merge_request_iid": "7"}
        if token not in {TOKEN, READS, JOB} or (token == JOB and self.server.kind == "gitlab"):
            answer: tuple[int, Json] = 401, {"message": "Bad credentials"}
        elif (token == JOB and not names) or (token == READS and self.command != "GET"):
            answer = 403, {"message": "Resource not accessible by integration"}
        elif any(ours.get(name, value) != value for name, value in names.items()):
            answer = 404, {"message": "Not Found"}
        elif not names:
            answer = 200, self._person()
        elif self.command == "GET":
            size, page = int(query.get("per_page", 20)), int(query.get("page", 1))
            answer = 200, self.server.comments[size * (page - 1) : size * page]
        elif self.command == "POST":
            answer = 201, self.server.add(content["body"], BOT if token == JOB else PERSON)
        else:
            comment = self.server.comments[int(names.get("comment_id") or names["note_id"]) - 1]
            comment["body"] = content["body"]
            answer = 200, comment
        return answer

    def _person(self) -> Json:
        if self.server.kind == "gitlab":
            return {name: PERSON[name] for name in ("id", "username", "name")} | {"state": "active"}
        numbers = dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0)
        more = dict.fromkeys(("name", "company", "blog", "location", "email", "hireable", "bio"))
        times = {"created_at": WHEN, "updated_at": WHEN}
        return github_user(PERSON) | numbers | more | times | {"user_view_type": "public"}

    def _send(self, status: int, content: Json) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def forge_of(kind: str) -> Iterator[Forge]:
    """Run a stub; at its end, fail for whatever was asked that is not documented."""
    with Forge(kind) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
    assert not server.mistakes
