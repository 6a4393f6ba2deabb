"""Parse a JSON body and take its large arrays out."""

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from types import NoneType
from typing import Any

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.problems.problem import Problem, UnknownMember, invalid, refuse

_OF_TABLES = ("confusion_matrix", "cells", "unclassified", "spurious", "class_items")
_OF_ITEMS = ("y_true", "y_pred", "y_score", "sample_weight", "inclusion_probability", "groups")
EVIDENCE = (*_OF_TABLES, *_OF_ITEMS, "item_id", "slices", "labels")
MATRICES = ("cost", "cell_weights", "kappa_weights")
ARRAYS = EVIDENCE + MATRICES
"""Names of the arrays that bypass Pydantic."""
_ARRAYS_OF = {"options": MATRICES}
_NESTED = frozenset({dict, list})
_PIECE = 1 << 18
_NO_MEMORY = "Not enough memory"
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_LINES = (
    "Objects line by line are JSON lines: send them as `application/x-ndjson`, or call the file "
    ".jsonl."
)
_ROWS = "Objects of items or counts are JSON lines: `jq -c '.[]' rows.json > rows.jsonl`."
_TABLE = 'A table, for example, is {"confusion_matrix": [[5, 1], [2, 7]]}.'
OPTIONAL_ARRAYS = frozenset(ARRAYS) - {"confusion_matrix", "cells", "y_true", "y_pred", "y_score"}


@dataclass
class Document:
    """A JSON object and the large arrays that were taken out of it."""

    rest: dict[str, Any]
    """The object without its arrays; small."""
    arrays: dict[str, Any] = field(default_factory=dict)
    """As parsed and unchecked."""
    names: tuple[str, ...] = ()
    """Of all its members, in their order."""
    pointer: str = ""
    """JSON pointer to the object in the body."""
    inner: "dict[str, Document]" = field(default_factory=dict)
    """The objects in it with arrays of their own; they are not in ``rest`` either."""
    without_booleans: bool = False
    """Whether the arrays are proven to hold no `true` or `false`, which Python would take for 1
    and 0. If not, every element has to be checked."""
    warnings: list[Any] = field(default_factory=list)
    """What was not read, for the report."""


@dataclass(frozen=True, eq=False)
class ArraysBody:
    """A JSON body in which marks stand for large arrays, so that these are not written as text."""

    body: bytes
    arrays: dict[str, Any]
    """By their marks, as the readers of evidence take them."""

    def put_back(self, members: dict[str, Any]) -> None:
        """Replace the marks among members, and among their slices, by the arrays."""
        for name, value in members.items():
            if isinstance(value, str) and value in self.arrays:
                members[name] = self.arrays[value]
        if isinstance(slices := members.get("slices"), dict):
            self.put_back(slices)


Body = bytes | ArraysBody


def parse(
    body: Body,
    depth: int = 8,
    inner: tuple[str, ...] = ("baseline",),
    arrays: tuple[str, ...] = ARRAYS,
) -> Document:
    """Parse a JSON object in UTF-8.

    Parameters
    ----------
    depth
        Deepest nesting allowed.
    inner
        Names of members that may be objects with arrays of their own.
    arrays
        Names of the arrays of the object itself. Others are left to the model, which refuses them.

    Raises
    ------
    Problem
        400 if it is not JSON, or nested too deeply; 422 if it is not an object, or an object in it
        has a name twice.
    """
    text = body.body if isinstance(body, ArraysBody) else body
    content = loads(text)
    document = _lift(content, inner, arrays)
    _check(text, content, depth, [document])
    if isinstance(body, ArraysBody):
        for part in (document, *document.inner.values()):
            body.put_back(part.arrays)
    return document


def parse_batch(body: bytes, most: int, depth: int = 8) -> list[Document]:
    """Parse a JSON object with an array ``requests`` of at most so many objects.

    The outer object counts for the depth. The pointers of the objects are empty, because each gets
    its own answer. 400 or 422 if the batch as a whole is invalid.
    """
    content = loads(body)
    members = content.get("requests")
    if not isinstance(members, list) or not 1 <= len(members) <= most:
        raise refuse("/requests", "not_a_batch", f"`requests` is an array of 1 to {most} objects.")
    for number, request in enumerate(members):
        if not isinstance(request, dict):
            detail = f"A request must be an object; this is {kind_of(request)}."
            raise refuse(f"/requests/{number}", "not_an_object", detail)
    outer, *requests = (_lift(member, ("baseline",), ARRAYS) for member in (content, *members))
    _check(body, content, depth, [outer, *requests])
    if len(outer.names) > 1:
        detail = "A batch has only `requests`; put options into each of them."
        raise refuse("", "unknown_field", detail)
    return requests


def from_json(content: bytes | str) -> Any:  # noqa: ANN401 - any JSON
    """Parse JSON; a `MemoryError` where there is no memory for it, which orjson calls bad JSON."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        if error.msg.startswith(_NO_MEMORY):
            raise MemoryError from None
        raise


def loads(body: bytes | str) -> dict[str, Any]:
    """Parse a JSON object without a look at its names and its depth."""
    try:
        content = from_json(body)
    except orjson.JSONDecodeError as error:
        rest = error.doc[error.pos :].lstrip("-")
        detail = f"The body is not valid JSON: see line {error.lineno}, column {error.colno}."
        # A large body is not copied: `doc`, which is empty if it is no text, is a copy already.
        undecoded = not error.doc.strip()
        if undecoded and not body.strip():
            detail = f"The body is empty. {_TABLE}"
        elif _is_line(error):
            detail += f" {_LINES}"
        elif not isinstance(body, str) and (undecoded or body.startswith(_MARKS)):
            detail = _fault_of_text(body)
        elif rest.startswith(("NaN", "Infinity")):
            detail += " JSON has no NaN and no Infinity; in `y_pred`, null is a missing prediction."
        raise unreadable(detail) from None
    if not isinstance(content, dict):
        are_items = isinstance(content, list) and bool(content) and isinstance(content[0], dict)
        hint = _ROWS if are_items else _TABLE
        detail = f"The body must be an object; this is {kind_of(content)}. {hint}"
        raise refuse("", "not_an_object", detail)
    return content


def _is_line(error: orjson.JSONDecodeError) -> bool:
    """Whether what is valid up to an error is an object on the first line, as in JSON lines."""
    before = error.doc[: error.pos].rstrip()
    return before.endswith("}") and before.count("\n") == 0 and error.doc[error.pos :][:1] == "{"


def unreadable(detail: str) -> Problem:
    """Return the problem of a body that does not have its format."""
    return Problem("unreadable_body", detail)


_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
"""How compressed bodies begin, which are no text and no format of columns."""


def packed(body: bytes) -> str | None:
    """Say of a compressed body without `Content-Encoding` that it needs it; else None."""
    coding = next((name for sign, name in _PACKED.items() if body.startswith(sign)), None)
    return coding and f"The body is {coding}: say so by `Content-Encoding: {coding}`."


def _fault_of_text(body: bytes) -> str:
    """Say why bytes, which orjson does not decode, are not the text of JSON."""
    if (fault := packed(body)) is not None:
        return fault
    if body.startswith(_MARKS):
        return "The body begins with a byte order mark (BOM). Send JSON in UTF-8 without it."
    try:
        body.decode()
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        return f"Line {line} of the body is not UTF-8; it may be Latin-1. Encode JSON in UTF-8."
    return "The body is not UTF-8. Encode JSON in UTF-8."


def _check(body: bytes, content: dict[str, Any], depth: int, documents: list[Document]) -> None:
    """Check what is left of a body without its arrays, and what that proves about them.

    The placeholders of the arrays are removed.
    """
    try:
        skeleton = orjson.dumps(content)
    except orjson.JSONEncodeError:  # it allows less nesting than `orjson.loads`
        raise _too_deep(depth) from None
    if skeleton.count(b"{") + skeleton.count(b"[") > depth:
        _check_depth(content, depth)
    # Every name is followed by a colon, so a body with no more colons than the parsed content has
    # no name twice. The body is parsed again only if an escaped colon could hide one.
    escaped = b"\\" in body
    count = body.count
    if len(body) > _PIECE:
        count = partial(occurrences, np.frombuffer(body, np.uint8))
    if (escaped and b"\\u003" in body) or count(b":") > skeleton.count(b":"):
        _check_names(body, skeleton, documents)
    # No number has the letters r and s. An escape could be an r or s of the skeleton that is not
    # in the body, so a backslash prevents the proof.
    without_booleans = not escaped and all(
        count(letter) <= skeleton.count(letter) for letter in (b"r", b"s")
    )
    for document in (part for whole in documents for part in (whole, *whole.inner.values())):
        document.without_booleans = without_booleans
        for name in document.arrays:  # their placeholders
            del document.rest[name]


def occurrences(letters: Array, letter: bytes) -> int:
    """Count a byte: in long texts some times faster than `bytes.count`, with little memory."""
    pieces = (letters[i : i + _PIECE] for i in range(0, letters.size, _PIECE))
    return sum(int(np.count_nonzero(piece == ord(letter))) for piece in pieces)


def _lift(
    content: dict[str, Any], inner: tuple[str, ...], array_names: tuple[str, ...], pointer: str = ""
) -> Document:
    """Take the arrays out, leaving a 0 in place of each.

    Inner objects cannot nest, so deep nesting cannot exhaust the stack.
    """
    names = [name for name in array_names if name in content]
    if "kappa_weights" in names and isinstance(content["kappa_weights"], str):
        names.remove("kappa_weights")
    arrays = {name: content[name] for name in names}
    content.update(dict.fromkeys(names, 0))
    slices = arrays.get("slices")
    if isinstance(slices, dict):  # its names are checked, too
        content["slices"] = {k: 0 if isinstance(v, list) else v for k, v in slices.items()}
    elif isinstance(slices, list):
        content["slices"] = slices
    parts = {
        name: _lift(content[name], (), _ARRAYS_OF.get(name, EVIDENCE), f"{pointer}/{name}")
        for name in inner
        if isinstance(content.get(name), dict)
    }
    return Document(content, arrays, tuple(content), pointer, parts)


def _check_depth(content: dict[str, Any], depth: int) -> None:
    level: list[Any] = [content]
    for _ in range(depth):
        parts = chain.from_iterable(p.values() if type(p) is dict else p for p in level)
        level = [part for part in parts if type(part) in _NESTED]
        if not level:
            return
    raise _too_deep(depth)


def _too_deep(depth: int) -> Problem:
    return unreadable(f"The body is nested more than {depth} levels deep.")


def _check_names(body: bytes, skeleton: bytes, documents: list[Document]) -> None:
    """Refuse an object that has a name twice: the parser would silently keep the last."""
    parsed, escaped = skeleton.count(b":"), b"\\u003" in body
    outer = (part for document in documents for part in (document, *document.inner.values()))
    arrays = [array for document in outer for array in _outside_skeleton(document)]
    try:
        if escaped or body.count(b":") > parsed + orjson.dumps(arrays).count(b":"):
            json.loads(body, object_pairs_hook=_distinct)
    except (RecursionError, orjson.JSONEncodeError):
        # Python's `json` and `orjson.dumps` allow less nesting than `orjson.loads`.
        raise unreadable("The body is nested too deeply.") from None


def _outside_skeleton(document: Document) -> Iterator[Any]:
    for name, value in document.arrays.items():
        if name != "slices":
            yield value
        elif isinstance(value, dict):  # its names are in the skeleton
            yield from (array for array in value.values() if isinstance(array, list))


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        places: dict[str, int] = {}
        again = next(i for i, name in enumerate(names) if places.setdefault(name, i) < i)
        both = f"members {places[names[again]] + 1} and {again + 1}"
        detail = f"An object in the body has the same name twice: {both}. Keep one of the two."
        raise invalid([UnknownMember("", "duplicate_name", detail, names[again])])


def kind_of(value: object) -> str:
    """Return the name of a value's JSON type, for messages that must not repeat the value."""
    return _KINDS.get(type(value), "a number")


_KINDS = {bool: "a boolean", dict: "an object", list: "an array", str: "a string", NoneType: "null"}
