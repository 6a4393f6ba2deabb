"""The answers that the OpenAPI document shows are those that the service gives to its examples.

`RPRIME_TEST_RECORD=1 pytest tests/http/test_openapi_answers.py` writes them anew; the OpenAPI file
is then generated again.
"""

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from rprime.report.formats import FORMATS
from rprime.routes.descriptions import ANSWERS, EVALUATION, SHORTENED
from tests.history_service import ServeApp, keeping
from tests.http.test_openapi_examples import DOCUMENT, asked_untouched, bodies

RECORDS = "RPRIME_TEST_RECORD" in os.environ
PROBLEM = "application/problem+json"
TEXTS = [entry for entry in FORMATS if entry.name != "html"]
"""Formats that are shown beside JSON. The first lines of HTML are style sheets."""
PICTURES = ("image/png", "image/svg+xml")
"""Without an example, but for the badge: a picture is no text, and hundreds of kilobytes long."""
VARYING = {
    "created_at": "2026-01-31T12:00:00Z",
    "updated_at": "2026-01-31T12:00:00Z",
    "changed_at": "2026-01-31T12:00:00Z",
    "at": "2026-01-31T12:00:00Z",
    "newest": "2026-01-31T12:00:00Z",
    "changed": 1_769_860_800_000,
    "request_id": "0b9f6a1c4d2e4f0f8a7c5e3b1d9f7a5c",
}
"""Members that differ from answer to answer."""
TIME = r"\d{4}-\d\d-\d\d([ T])\d\d:\d\d:\d\d"
LONGEST_TEXT = 2_000
"""Characters of a rendering that are shown."""
ASKED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bad_request": ("POST", "/v1/evaluate", {
        "headers": {"Idempotency-Key": "x" * 256},
        "json": {"confusion_matrix": [[8, 2], [1, 9]], "project": "digits"}}),
    "baseline_not_found": ("POST", "/v1/evaluate", {"json": {
        "confusion_matrix": [[8, 2], [1, 9]], "project": "digits", "model": "svc",
        "baseline": {"alias": "champoin"}}}),
    "candidate_not_found": ("POST", "/v1/compare", {"json": {
        "candidate": {"version": "3", "project": "digits"},
        "baseline": {"alias": "champion", "project": "digits"}}}),
    "evaluation_aliased": ("DELETE", "/v1/evaluations/01k9d3hv5gw2zj4t8x6c7m1n0q", {}),
    "invalid_request": ("POST", "/evaluate", {"json": {
        "confusion_matrix": [[8, 2], [-1, 9]], "confidense": 0.9, "indices": ["acuracy"]}}),
    "not_acceptable": ("POST", "/evaluate", {
        "json": {"confusion_matrix": [[8, 2], [1, 9]]}, "headers": {"Accept": "image/gif"}}),
    "not_found": ("GET", "/v1/projects/digit/evaluations", {}),
    "precondition_failed": ("PUT", "/v1/projects/digits/aliases/champion", {
        "headers": {"If-None-Match": "*"},
        "json": {"evaluation": "01k9d3hv5gw2zj4t8x6c7m1n0p"}}),
    "precondition_required": ("PUT", "/v1/projects/digits/aliases/champion", {
        "json": {"evaluation": "01k9d3hv5gw2zj4t8x6c7m1n0p"}}),
    "unreadable_body": ("POST", "/evaluate", {
        "content": '{"y_true": ["cat"', "headers": {"Content-Type": "application/json"}}),
    "unsupported_encoding": ("POST", "/evaluate", {
        "content": "{}",
        "headers": {"Content-Type": "application/json", "Content-Encoding": "br"}}),
    "unsupported_media_type": ("POST", "/evaluate", {
        "content": "{}", "headers": {"Content-Type": "application/yaml"}}),
}  # fmt: skip
"""A request that has each problem as its answer."""
FURTHER: dict[str, tuple[str, str, dict[str, Any]]] = {
    "evaluate": ("POST", "/v1/evaluate", {"json": {
        "confusion_matrix": [[48, 2], [3, 47]], "labels": ["cat", "dog"], "project": "digits",
        "model": "svc", "version": "3", "baseline": {"alias": "champion"},
        "gates": {"rules": [{"index": "accuracy", "max_drop": 0.02}]}}}),
    "putAlias": ("PUT", "/v1/projects/digits/aliases/candidate", {
        "headers": {"If-None-Match": "*"}, "json": {"evaluation": EVALUATION}}),
    "evaluateBatch": ("POST", "/v1/evaluate/batch", {"json": {"requests": [
        {"confusion_matrix": [[8, 2], [1, 9]]}, {"confusion_matrix": [[8, -2], [1, 9]]}]}}),
}  # fmt: skip
"""Requests whose answers have another status than those of the examples."""
EVALUATED = {"gate"}
"""The examples of a request to evaluate whose answers are shown."""
STATES = {
    *("body_too_large", "evaluation_deleted", "idempotency_key_reused", "idempotency_key_running"),
    *("internal_error", "no_store", "overloaded", "project_quota_exceeded"),
    *("stopping", "store_full", "store_unavailable"),
    *("forbidden", "too_many_requests", "unauthorized"),
}
"""Problems that come from the state of the service, its limits or its keys, not from a request."""


@pytest.fixture(scope="module")
def stored(serve_app: ServeApp, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path_factory.mktemp("answers")) as client:
        yield client


def shortened(value: Any, name: str = "") -> Any:
    """Cut lists and texts, leave two classes, round numbers, and fix what varies."""
    if name in VARYING and isinstance(value, str | int):
        return VARYING[name]
    if isinstance(value, dict):
        kept = list(value.items())[: 2 if name == "per_class" else None]
        return {key: shortened(part, key) for key, part in kept}
    if isinstance(value, list):
        most = 2 if any(isinstance(part, dict | list) for part in value) else 3
        return [shortened(part, name) for part in value[:most]]
    return round(value, 4) if isinstance(value, float) else value


def content_of(answer: httpx.Response) -> Any:
    kind, text = answer.headers["content-type"], answer.text
    if "location" in answer.headers:  # of a new evaluation, whose id varies
        text = text.replace(answer.headers["location"].rpartition("/")[2], EVALUATION)
    if kind.startswith(("application/json", PROBLEM)):
        return shortened(json.loads(text))
    if kind.startswith("application/x-ndjson"):
        lines = (shortened(json.loads(line)) for line in text.splitlines())
        return "".join(f"{json.dumps(line)}\n" for line in lines)
    return re.sub(TIME, r"2026-01-31\g<1>12:00:00", text)[:LONGEST_TEXT]


def resolved(example: dict[str, Any]) -> dict[str, Any]:
    """Return an example, which may stand among the components."""
    if "$ref" not in example:
        return example
    name = example["$ref"].removeprefix("#/components/examples/")
    found: dict[str, Any] = DOCUMENT["components"]["examples"][name]
    return found


def test_an_answer_has_one_example() -> None:
    recorded = json.loads(ANSWERS.read_text(encoding="utf-8"))["answers"]
    for name, statuses in recorded.items():
        for status, answers in statuses.items():
            for media, examples in answers.items():
                assert len(examples) == 1, (name, status, media)


def cases() -> Iterator[Any]:
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            yield pytest.param(method, path, operation, id=operation["operationId"])


def renderings(
    stored: httpx.Client, method: str, path: str, operation: dict[str, Any]
) -> Iterator[tuple[str, httpx.Response]]:
    """Yield the answers of an operation in all formats but JSON and HTML, by their names."""
    success = operation["responses"].get("200", {}).get("content", {})
    if "{suffix}" in path:
        for entry in TEXTS:
            suffix = entry.suffix
            yield entry.name, asked_untouched(stored, method, path, "", "", suffix=suffix)
    elif success.keys() >= {entry.media_type for entry in TEXTS}:
        shown = {name: (media, body) for name, media, body in bodies(operation)}
        media, body = shown.get("gate", ("", ""))
        for entry in TEXTS:
            accept = entry.media_type
            yield entry.name, asked_untouched(stored, method, path, media, body, accept=accept)
            if shown:
                verb, address, request = FURTHER["evaluate"]
                headers = {"Accept": accept}
                yield entry.name, stored.request(verb, address, **request, headers=headers)


def live_answers(
    stored: httpx.Client, method: str, path: str, operation: dict[str, Any]
) -> dict[str, Any]:
    """Return what the service answers to each example, by status, media type and its name."""
    live: dict[str, Any] = {}
    operation_id = operation["operationId"].removesuffix("V1")
    answers = [
        (name, asked_untouched(stored, method, path, media, body))
        for name, media, body in list(bodies(operation))
        or ([] if "{suffix}" in path else [("answer", "", "")])
        # Columns have the answers of JSON.
        if media in {"", "application/json", "application/x-ndjson"}
        and (operation_id != "evaluate" or name in EVALUATED)
    ]
    if operation_id in FURTHER:
        verb, address, request = FURTHER[operation_id]
        answers.append(("answer", stored.request(verb, address, **request)))
    answers += renderings(stored, method, path, operation)
    for name, answer in answers:
        kind = answer.headers.get("content-type", "").partition(";")[0]
        if answer.content and (kind not in PICTURES or operation_id == "getBadgeSvg"):
            status = live.setdefault(str(answer.status_code), {})
            status.setdefault(kind, {name: content_of(answer)})
    return live


def check(group: str, name: str, live: Any) -> None:
    """Compare with what was recorded, or record it."""
    recorded = json.loads(ANSWERS.read_text(encoding="utf-8")) if ANSWERS.exists() else {}
    if RECORDS:
        recorded.setdefault(group, {})[name] = live
        ordered = {key: dict(sorted(part.items())) for key, part in sorted(recorded.items())}
        ANSWERS.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    assert (recorded[group].get(name) == live) or RECORDS, f"record them: {__doc__}"


@pytest.mark.parametrize(("method", "path", "operation"), list(cases()))
def test_the_answers_shown_are_real(
    stored: httpx.Client, method: str, path: str, operation: dict[str, Any]
) -> None:
    if (name := operation["operationId"]) == "getMetrics":
        pytest.skip("metrics count what the process has done, so that no two answers are equal")
    live = live_answers(stored, method, path, operation)
    check("answers", "evaluate" if name == "evaluateV1" else name, live)
    for status, answers in ({} if RECORDS else live).items():
        for media, examples in answers.items():
            content = operation["responses"][status]["content"][media]
            shown = {n: resolved(example) for n, example in content["examples"].items()}
            assert {n: example["value"] for n, example in shown.items()} == examples
            assert all(example["summary"] == SHORTENED for example in shown.values())


@pytest.mark.parametrize("code", ASKED)
def test_the_problems_shown_are_real(stored: httpx.Client, code: str) -> None:
    method, path, request = ASKED[code]
    asked_untouched(stored, "get", "/livez", "", "")  # imports the history
    answer = stored.request(method, path, **request)
    document = shortened(answer.json())
    assert document["code"] == code
    check("problems", code, document)


def shown_contents() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    for operations in DOCUMENT["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                for media, content in response.get("content", {}).items():
                    yield operation["operationId"], status, media, content


def test_every_operation_shows_an_answer() -> None:
    succeeded = {
        (name, status): media for name, status, media, _ in shown_contents() if status < "400"
    }
    shown = {
        (name, status)
        for name, status, _, content in shown_contents()
        if content.get("examples") or content.get("example")
    }
    of_pictures = {place for place in succeeded if place[0].endswith("Figure")}
    assert succeeded.keys() - shown == of_pictures | {("getMetrics", "200")}


def test_every_answer_shown_fits_its_schema() -> None:
    for name, status, media, content in shown_contents():
        if media in {"application/json", PROBLEM}:
            schema = content["schema"] | {"components": DOCUMENT["components"]}
            for example in content.get("examples", {}).values():
                value = resolved(example)["value"]
                errors = list(Draft202012Validator(schema).iter_errors(value))
                assert not errors, (name, status, errors[0].message)


def test_every_problem_shown_is_real_or_comes_from_the_state_of_the_service() -> None:
    codes = {
        code
        for _, status, _, content in shown_contents()
        if status >= "400"
        for code in content["examples"]
    }
    assert codes == ASKED.keys() | STATES
