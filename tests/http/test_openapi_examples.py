"""Every operation of the OpenAPI document succeeds as it is shown."""

import json
import re
import shlex
from collections.abc import Iterator
from html import unescape
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.history_service import ServeApp, keeping

DOCUMENT: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "openapi" / "openapi.json").read_text(encoding="utf-8")
)
HISTORY: str = DOCUMENT["paths"]["/v1/import"]["post"]["requestBody"]["content"][
    "application/x-ndjson"
]["example"]
LINES = {"Content-Type": "application/x-ndjson"}


def bodies(operation: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the media type and the content of each example of a body."""
    for media, content in operation.get("requestBody", {"content": {}})["content"].items():
        examples = content.get("examples", {}).items()
        shown = {name: example["value"] for name, example in examples}
        shown |= {"answer": content["example"]} if "example" in content else {}
        for name, value in shown.items():
            yield name, media, value if isinstance(value, str) else json.dumps(value)


def cases() -> Iterator[Any]:
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            shown = list(bodies(operation))
            # A body of which nothing is shown cannot be sent untouched.
            assert shown or "requestBody" not in operation, path
            for place, (_, media, body) in enumerate(shown or [("", "", "")]):
                name = f"{operation['operationId']}-{place}"
                yield pytest.param(method, path, media, body, id=name)


CASES = list(cases())


@pytest.fixture(scope="module")
def stored(serve_app: ServeApp, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path_factory.mktemp("examples")) as client:
        yield client


@pytest.mark.parametrize(("method", "path", "media", "body"), CASES)
def test_an_operation_succeeds_untouched(
    stored: httpx.Client, method: str, path: str, media: str, body: str
) -> None:
    answer = asked_untouched(stored, method, path, media, body)
    assert answer.is_success, answer.text
    assert answer.headers.get("content-type", "") != "application/problem+json"
    if answer.status_code == 207:
        assert [result["status"] for result in answer.json()["results"]] == [200, 200]


def asked_untouched(
    stored: httpx.Client,
    method: str,
    path: str,
    media: str,
    body: str,
    *,
    accept: str = "",
    **parameters: str,
) -> httpx.Response:
    """Ask as the document shows it, of the history that its example of an import has."""
    stored.delete("/v1/projects/digits")
    imported = stored.post("/v1/import", content=HISTORY, headers=LINES)
    assert imported.is_success, imported.text
    headers, query = {"Content-Type": media} if media else {}, {}
    for parameter in DOCUMENT["paths"][path][method].get("parameters", ()):
        # What the page of the API fills in; a parameter of JSON has an empty object at least.
        assert "content" not in parameter, parameter["name"]
        value = parameter.get("example", parameter.get("schema", {}).get("default"))
        value = parameters.get(parameter["name"], value)
        if value is None:
            assert not parameter.get("required"), parameter["name"]
        elif parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", str(value))
        elif parameter["in"] == "header":
            headers[parameter["name"]] = value
        else:
            query[parameter["name"]] = value
    headers |= {"Accept": accept} if accept else {}
    return stored.request(method, path, params=query, headers=headers, content=body)


def test_every_kind_of_evidence_and_format_has_an_example(stored: httpx.Client) -> None:
    content = DOCUMENT["paths"]["/evaluate"]["post"]["requestBody"]["content"]
    kinds = {"confusion_matrix", "labels", "cells", "scores", "baseline", "gate", "slices"}
    assert kinds <= content.pop("application/json")["examples"].keys()
    assert content.pop("text/csv")["examples"].keys() == {"labels", "scores", "baseline"}
    assert content.pop("application/x-ndjson")["examples"].keys() == {"labels"}
    assert len(content) == 3
    for media, binary in content.items():
        codes = re.findall("`([^`]+)`", binary["schema"]["description"])
        file = BytesIO()
        names: dict[str, Any] = {"file": file}
        exec("import numpy, pyarrow, pyarrow.ipc, pyarrow.parquet", names)  # noqa: S102 (as below)
        for code in reversed(codes):
            exec(code, names)  # noqa: S102 (the text of the document is what is tested)
        headers = {"Content-Type": media}
        answer = stored.post("/evaluate", content=file.getvalue(), headers=headers)
        assert answer.json()["labels"] == ["cat", "dog"], media


def test_a_command_of_the_page_sends_what_the_document_shows(stored: httpx.Client) -> None:
    page = unescape(stored.get("/docs").text)
    commands = re.findall(r"<pre tabindex=\"0\"><code>(curl .*?)</code></pre>", page, re.DOTALL)
    assert len(commands) == len(CASES)
    for command in commands:
        imported = stored.post("/v1/import", content=HISTORY, headers=LINES)
        assert imported.is_success, imported.text
        answer = sent(stored, shlex.split(command.replace("\\\n", "")))
        assert answer.is_success, (command, answer.text)
        stored.delete("/v1/projects/digits")


def sent(client: httpx.Client, words: list[str]) -> httpx.Response:
    """Send what a command of curl sends."""
    options = {"-X": [""], "-H": [], "--data-binary": [""]}
    rest = iter(words[1:])
    addresses = []
    for word in rest:
        if word in options:
            options[word].append(next(rest))
        else:
            addresses.append(word)
    body, headers = options["--data-binary"][-1], dict(h.split(": ", 1) for h in options["-H"])
    method = options["-X"][-1] or ("POST" if body else "GET")
    return client.request(method, *addresses, headers=headers, content=body)
