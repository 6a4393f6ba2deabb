"""Validate the members of a document, and say where and how they break the contract."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rprime.problems.problem import MOST_VIOLATIONS, UnknownMember, Violation, pointer
from rprime.problems.sentences import member, sentence
from rprime.schemas import fields_at, request_fields
from rprime.schemas.document import OPTIONAL_ARRAYS, Document
from rprime.schemas.members import hint

ModelT = TypeVar("ModelT", bound=BaseModel)


def validated(
    model: type[ModelT], document: Document, violations: list[Violation]
) -> ModelT | None:
    """Validate everything but the arrays of a document.

    Parameters
    ----------
    model
        The model of its members.
    violations
        Receives the violations, to report them together with those of the arrays.

    Returns
    -------
    None if it is invalid.
    """
    for part in (document, *document.inner.values()):
        for name in OPTIONAL_ARRAYS & part.arrays.keys():
            if part.arrays[name] is None:
                del part.arrays[name]
                text = sentence({"type": "null"}, member([name]))
                violations.append(Violation(f"{part.pointer}/{name}", "null", text))
    try:
        return model.model_validate(document.rest)
    except ValidationError as error:
        violations.extend(_joined(_violations(error, model, document)))
        return None


def _violations(
    error: ValidationError, model: type[BaseModel], document: Document
) -> Iterator[Violation]:
    errors = error.errors(include_url=False, include_input=False)
    for found in errors[:MOST_VIOLATIONS]:
        place = _without_union_tags(found, document)
        named = _named(place)
        if found["type"] == "extra_forbidden":
            yield _unknown(place, model, document)
        elif found["type"] == "unknown_index":
            yield UnknownMember(
                pointer(*named), "unknown_index", found["msg"], found["ctx"]["name"]
            )
        elif found["type"] != "none_required":
            name = member(named, within=len(named) < len(place))
            yield Violation(pointer(*named), found["type"], sentence(found, name))


def _joined(found: Iterable[Violation]) -> Iterator[Violation]:
    """Join the alternatives of one member, each a violation of Pydantic, into one sentence."""
    for _, same in groupby(found, attrgetter("pointer")):
        first, *others = dict.fromkeys(same)
        subject, must, _ = first.detail.partition(" must be ")
        if must and all(one.detail.startswith(subject + must) for one in others):
            rules = (one.detail.removeprefix(subject + must).removesuffix(".") for one in others)
            others, text = [], " or ".join([first.detail.removesuffix("."), *rules])
            first = replace(first, detail=f"{text}.")
        yield from (first, *others)


def _named(location: tuple[int | str, ...]) -> list[int | str]:
    """Return the parts of a place, up to the first name that is not a field of a request."""
    known = request_fields()
    parts: list[int | str] = []
    for part in location:
        if isinstance(part, str) and part not in known:
            break
        parts.append(part)
    return parts


def _unknown(
    location: tuple[int | str, ...], model: type[BaseModel], document: Document
) -> Violation:
    """Say which member of an object is unknown, and what it may be."""
    *outer, name = location
    names = list(document.names) if not outer else list(reduce(_member, outer, document.rest))
    number = names.index(str(name)) + 1
    detail = f"Member {number} of the object has a name that is not known here."
    known = fields_at(model, tuple(outer))
    place = pointer(*_named(tuple(outer)))
    return UnknownMember(place, "unknown_field", f"{detail} {hint(str(name), known)}", str(name))


def _without_union_tags(found: Mapping[str, Any], document: Document) -> tuple[int | str, ...]:
    """Drop the names of union members from the place of an error: the document has none of them."""
    content: Any = document.rest
    location, is_missing = found["loc"], found["type"] == "missing"
    parts = []
    for i, part in enumerate(location):
        if not isinstance(content, dict):
            is_place = isinstance(part, int)
        else:
            is_place = part in content or (is_missing and i == len(location) - 1)
        if is_place:
            parts.append(part)
            content = _member(content, part)
    return tuple(parts)


def _member(content: Any, part: int | str) -> Any:  # noqa: ANN401 (any JSON value)
    if isinstance(content, dict):
        return content.get(part)
    return content[part] if isinstance(content, list) and isinstance(part, int) else None
