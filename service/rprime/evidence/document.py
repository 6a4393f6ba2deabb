"""Parse a JSON body and take its large arrays out."""

import json
from dataclasses import dataclass, field
from typing import Any

import orjson

from rprime.evidence.errors import UnreadableBodyError, kind_of, refuse

ARRAYS = (
    "confusion_matrix",
    "cells",
    "unclassified",
    "spurious",
    "y_true",
    "y_pred",
    "y_score",
    "sample_weight",
    "groups",
    "labels",
    "cost",
    "cell_weights",
    "kappa_weights",
)
"""Names of the arrays that bypass Pydantic."""


@dataclass
class Document:
    """A JSON object and the large arrays that were taken out of it.

    Parameters
    ----------
    rest
        The object without its arrays; small.
    arrays
        The arrays by name, as parsed and unchecked.
    names
        Names of all its members, in their order.
    pointer
        JSON pointer to the object in the body.
    inner
        The objects in it with arrays of their own; they are not in ``rest`` either.
    without_booleans
        Whether the arrays are proven to hold no `true` or `false`, which Python would take for
        1 and 0. If not, every element has to be checked.
    """

    rest: dict[str, Any]
    arrays: dict[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    pointer: str = ""
    inner: "dict[str, Document]" = field(default_factory=dict)
    without_booleans: bool = False

    def all_arrays(self) -> list[Any]:
        """Return all arrays, including those of the inner objects."""
        within = (array for part in self.inner.values() for array in part.arrays.values())
        return [*self.arrays.values(), *within]

    def settle(self, *, without_booleans: bool) -> None:
        """Remove the placeholders of the arrays, here and in the inner objects."""
        self.without_booleans = without_booleans
        for name in self.arrays:
            del self.rest[name]
        for part in self.inner.values():
            part.settle(without_booleans=without_booleans)


def parse(body: bytes, depth: int = 8, inner: tuple[str, ...] = ("baseline",)) -> Document:
    """Parse a JSON object.

    Parameters
    ----------
    body
        UTF-8.
    depth
        Deepest nesting allowed.
    inner
        Names of members that may be objects with arrays of their own.

    Raises
    ------
    UnreadableBodyError
        If it is not JSON, or nested too deeply.
    InvalidEvidenceError
        If it is not an object, or an object in it has a name twice.
    """
    return _parse(body, depth, None, inner)[0]


def parse_batch(body: bytes, most: int, depth: int = 8) -> tuple[Document, list[Document]]:
    """Parse a JSON object with an array ``requests`` of objects.

    Parameters
    ----------
    body
        UTF-8.
    most
        Largest number of objects.
    depth
        Deepest nesting allowed, the outer object included.

    Returns
    -------
    The outer object without ``requests``, and the objects. Their pointers are empty, because
    each gets its own answer.
    """
    outer, *requests = _parse(body, depth, most, ("baseline",))
    return outer, requests


def _parse(body: bytes, depth: int, most: int | None, inner: tuple[str, ...]) -> list[Document]:
    content = _loads(body)
    if not isinstance(content, dict):
        raise refuse("", "not_an_object", f"The body is an object, not {kind_of(content)}.")
    members = [] if most is None else _requests(content, most)
    documents = [_lift(member, inner) for member in (content, *members)]
    arrays = [document.all_arrays() for document in documents]
    _check_depth(content, depth)
    skeleton = orjson.dumps(content)
    _check_names(body, skeleton, arrays)
    without_booleans = _without_booleans(body, skeleton)
    for document in documents:
        document.settle(without_booleans=without_booleans)
    if most is not None:
        del content["requests"]
    return documents


def _loads(body: bytes) -> Any:  # noqa: ANN401 (any JSON value)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise UnreadableBodyError(f"The body is not valid JSON: see {place}.") from None


def _requests(content: dict[str, Any], most: int) -> list[dict[str, Any]]:
    requests = content.get("requests")
    if not isinstance(requests, list) or not 1 <= len(requests) <= most:
        raise refuse("/requests", "not_a_batch", f"`requests` is an array of 1 to {most} objects.")
    for number, request in enumerate(requests):
        if not isinstance(request, dict):
            detail = f"A request is an object, not {kind_of(request)}."
            raise refuse(f"/requests/{number}", "not_an_object", detail)
    return requests


def _lift(content: dict[str, Any], inner: tuple[str, ...], pointer: str = "") -> Document:
    """Take the arrays out, leaving a 0 in place of each.

    Inner objects cannot nest, so deep nesting cannot exhaust the stack.
    """
    names = [name for name in ARRAYS if name in content]
    if isinstance(content.get("kappa_weights"), str):
        names.remove("kappa_weights")
    arrays = {name: content[name] for name in names}
    content.update(dict.fromkeys(names, 0))
    parts = {
        name: _lift(content[name], (), f"{pointer}/{name}")
        for name in inner
        if isinstance(content.get(name), dict)
    }
    return Document(content, arrays, tuple(content), pointer, parts)


def _check_depth(content: dict[str, Any], depth: int) -> None:
    level: list[Any] = [content]
    for _ in range(depth):
        level = [part for whole in level for part in _parts(whole)]
        if not level:
            return
    raise UnreadableBodyError(f"The body is nested more than {depth} levels deep.")


def _parts(whole: dict[str, Any] | list[Any]) -> list[Any]:
    inner = whole.values() if isinstance(whole, dict) else whole
    return [part for part in inner if isinstance(part, dict | list)]


def _check_names(body: bytes, skeleton: bytes, arrays: list[Any]) -> None:
    """Refuse an object that has a name twice: the parser would silently keep the last.

    Every name is followed by a colon, so a body with no more colons than the parsed content has
    no name twice. The body is parsed again only if an escaped colon could hide one.
    """
    parsed = skeleton.count(b":")
    escaped = b"\\" in body and b"\\u003" in body
    if not escaped and not _has_more(body, b":", parsed):
        return
    try:
        if escaped or body.count(b":") > parsed + orjson.dumps(arrays).count(b":"):
            json.loads(body, object_pairs_hook=_distinct)
    except (RecursionError, orjson.JSONEncodeError):
        # Python's `json` and `orjson.dumps` allow less nesting than `orjson.loads`.
        raise UnreadableBodyError("The body is nested too deeply.") from None


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        detail = "An object in the body has the same name twice. Keep one of the two."
        raise refuse("", "duplicate_name", detail)


def _without_booleans(body: bytes, skeleton: bytes) -> bool:
    """Prove by the letters r and s, which no number has, that the arrays hold no booleans.

    An escape could be an r or s of the skeleton that is not in the body, so a backslash prevents
    the proof.
    """
    return b"\\" not in body and not any(
        _has_more(body, letter, skeleton.count(letter)) for letter in (b"r", b"s")
    )


def _has_more(body: bytes, mark: bytes, times: int) -> bool:
    """Whether a mark occurs more than `times` times; `find` is 15 times faster than `count`."""
    place = -1
    for _ in range(times + 1):
        place = body.find(mark, place + 1)
        if place < 0:
            return False
    return True
