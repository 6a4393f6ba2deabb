"""The API reference: operations and schemas of the OpenAPI document, as their pages show them."""

import re
import shlex
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import quote, urlencode

import orjson

Json = dict[str, Any]
TypePart = tuple[Literal["text", "code", "schema"], str]
"""A piece of the words for a type; a schema by its name."""

ORIGIN = "http://127.0.0.1:8000"
"""In place of which a page writes its own address."""
_BOUNDS = (
    ("", "minimum", "maximum"),
    (" characters", "minLength", "maxLength"),
    (" members", "minItems", "maxItems"),
)
_ALIKE = 20
"""From so many members of one type on, a schema has one row for them."""
_MOST_VALUES = 12
"""Of a type that has more, the first ones stand for all."""
_OK = 300
_NEXT = " \\\n    "
"""Continues a command in the next line."""


@lru_cache(maxsize=2)
def operations_of(contract: bytes, *, keys: bool) -> tuple[Json, ...]:
    """Return the operations by their tags: each tag with its `operations` as a page shows them.

    With keys the commands send one.
    """
    document = orjson.loads(contract)
    operations = [
        (operation["tags"], _operation(document, method, path, operation, keys=keys))
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    return tuple(
        tag | {"operations": [shown for tags, shown in operations if tag["name"] in tags]}
        for tag in document["tags"]
    )


def matching(tags: Iterable[Json], wanted: str) -> set[str]:
    """Return the operations that have all words in their path, name or description."""
    words = re.split(r"[\s-]+", wanted.lower())
    operations = (operation for tag in tags for operation in tag["operations"])
    return {o["id"] for o in operations if all(word in o["words"] for word in words)}


def _operation(document: Json, method: str, path: str, operation: Json, *, keys: bool) -> Json:
    parameters = operation.get("parameters", [])
    contents = operation.get("requestBody", {}).get("content", {})
    words = (method, path, operation["summary"], operation["operationId"])
    described = operation.get("description", "")
    return {
        "method": method.upper(),
        "path": path,
        "id": operation["operationId"],
        "summary": operation["summary"],
        "description": described,
        "scopes": sorted({s for way in operation.get("security", []) for s in way.get("key", [])}),
        "parameters": [_member(p["name"], p | p["schema"], p.get("required")) for p in parameters],
        "places": {parameter["name"]: parameter["in"] for parameter in parameters},
        "bodies": [(media, type_of(content["schema"])) for media, content in contents.items()],
        "commands": list(_commands(method, path, operation, key=keys and "security" in operation)),
        "answers": [
            _answer(document, status, answer)
            for status, answer in sorted(operation["responses"].items())
        ],
        "words": " ".join((*words, *described.replace("`", "").split())).lower(),
    }


def _answer(document: Json, status: str, answer: Json) -> Json:
    contents = answer.get("content", {})
    types = [(media, type_of(content.get("schema", {}))) for media, content in contents.items()]
    examples = [content.get("examples", {}) for content in contents.values()]
    fails = int(status) >= _OK
    first = next((one for of_media in examples for one in of_media.values()), None)
    return {
        "status": status,
        "description": answer["description"],
        "types": [] if fails else types,
        "problems": [code for of_media in examples for code in of_media] if fails else [],
        "example": "" if fails or first is None else _shown(_resolved(document, first)["value"]),
    }


def _resolved(document: Json, part: Json) -> Json:
    for name in part.get("$ref", "#").split("/")[1:]:
        document = document[name]
    return document if "$ref" in part else part


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _commands(method: str, path: str, operation: Json, *, key: bool) -> Iterator[tuple[str, str]]:
    """Yield a command for each example of a body, or one without a body, with what it shows."""
    contents = operation.get("requestBody", {}).get("content", {})
    head, headers = _request_line(method, path, operation)
    if key:
        head += _NEXT + '-H "Authorization: Bearer $RPRIME_KEY"'
    for media, content in contents.items():
        single = {"": {"value": content["example"]}} if "example" in content else {}
        for example in (content.get("examples", {}) | single).values():
            title = example.get("summary") or media
            yield title, head + _rest(headers | {"Content-Type": media}, example["value"])
    if not contents:
        yield "", head + _rest(headers, None)


def _request_line(method: str, path: str, operation: Json) -> tuple[str, dict[str, str]]:
    """Return the start of a command, with the examples of the parameters, and their headers."""
    examples: dict[str, dict[str, str]] = {"path": {}, "query": {}, "header": {}}
    for parameter in operation.get("parameters", []):
        if "example" in parameter:
            examples[parameter["in"]][parameter["name"]] = str(parameter["example"])
    for name, value in examples["path"].items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    query = f"?{urlencode(examples['query'])}" if examples["query"] else ""
    usual = "post" if "requestBody" in operation else "get"
    words = ["curl", *(() if method == usual else ("-X", method.upper()))]
    return " ".join((*words, shlex.quote(f"{ORIGIN}{path}{query}"))), examples["header"]


def _rest(headers: dict[str, str], body: object) -> str:
    """Return the headers and the body of a command."""
    words = [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in headers.items()]
    if body is not None:
        text = body if isinstance(body, str) else orjson.dumps(body).decode()
        words.append(f"--data-binary {shlex.quote(text)}")
    return "".join(_NEXT + word for word in words)


# Schemas


@lru_cache(maxsize=2)
def schemas_of(contract: bytes) -> tuple[Json, ...]:
    """Return the schemas by name, each with its members as a page shows them."""
    schemas = orjson.loads(contract)["components"]["schemas"]
    return tuple(
        {
            "name": name,
            "description": schema.get("description", ""),
            "members": _members(schema),
            "type": type_of(schema),
            "bounds": bounds_of(schema),
        }
        for name, schema in sorted(schemas.items())
    )


def _members(schema: Json) -> list[Json]:
    needed, properties = schema.get("required", ()), schema.get("properties", {})
    members = [_member(name, part, name in needed) for name, part in properties.items()]
    types = {tuple(member["type"]) for member in members}
    if len(members) < _ALIKE or len(types) > 1:
        return members
    names = f"{members[0]['name']} and {len(members) - 1} more"
    return [members[0] | {"name": names, "description": "Each by its key in the catalog."}]


def _member(name: str, part: Json, needed: object) -> Json:
    return {
        "name": name,
        "type": type_of(part),
        "required": bool(needed),
        "description": part.get("description", ""),
        "bounds": bounds_of(part),
    }


def type_of(schema: Json) -> list[TypePart]:
    """Say the type of a JSON schema in a few words."""
    if "$ref" in schema:
        return [("schema", schema["$ref"].rpartition("/")[2])]
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        shown: list[list[TypePart]] = [
            [("code", orjson.dumps(value).decode())] for value in values[:_MOST_VALUES]
        ]
        if len(values) > _MOST_VALUES:
            shown.append([("text", f"{len(values)} in all")])
        return _joined(shown, ", ")
    for union in ("anyOf", "oneOf", "allOf"):
        if union in schema:
            return _joined(map(type_of, schema[union]), " or ")
    return _plain(schema)


def _plain(schema: Json) -> list[TypePart]:
    kind = schema.get("type", "any")
    items, values = schema.get("items"), schema.get("additionalProperties")
    if kind == "array" and isinstance(items, dict):
        return [("text", "array of "), *type_of(items)]
    if kind == "object" and isinstance(values, dict):
        return [("text", "object of "), *type_of(values)]
    return [("text", " or ".join(kind) if isinstance(kind, list) else str(kind))]


def _joined(types: Iterable[list[TypePart]], between: str) -> list[TypePart]:
    distinct = list(dict.fromkeys(map(tuple, types)))
    parts = [part for one in distinct for part in (("text", between), *one)]
    return parts[1:]


def bounds_of(schema: Json) -> str:
    """Say in which bounds a value is, and what it is if it is left out."""
    texts = []
    for unit, least, most in _BOUNDS:
        low, high = schema.get(least), schema.get(most)
        if low is not None and high is not None:
            texts.append(f"{low:g} to {high:g}{unit}")
        elif low is not None or high is not None:
            bound = low if high is None else high
            texts.append(f"at {'least' if high is None else 'most'} {bound:g}{unit}")
    default = schema.get("default")
    if default not in (None, "", [], {}):
        texts.append(f"default `{orjson.dumps(default).decode()}`")
    return ", ".join(texts)
