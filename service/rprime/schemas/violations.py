"""Validate the members of a document, and say where and how they break the contract."""

from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rprime.problems.problem import MOST_VIOLATIONS, UnknownMember, Violation, pointer
from rprime.schemas import fields_at, request_fields
from rprime.schemas.document import OPTIONAL_ARRAYS, Document
from rprime.schemas.fields import NO_NULL
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
                violations.append(Violation(f"{part.pointer}/{name}", "null", NO_NULL))
    try:
        return model.model_validate(document.rest)
    except ValidationError as error:
        violations.extend(_violations(error, model, document))
        return None


def _violations(
    error: ValidationError, model: type[BaseModel], document: Document
) -> Iterator[Violation]:
    errors = error.errors(include_url=False, include_input=False)
    for found in errors[:MOST_VIOLATIONS]:
        place = _without_union_tags(found["loc"], document)
        if found["type"] == "extra_forbidden":
            yield _unknown(place, model, document)
        elif found["type"] == "unknown_index":
            yield UnknownMember(_place(place), found["type"], found["msg"], found["ctx"]["name"])
        else:
            yield Violation(_place(place), found["type"], _sentence(found["msg"]))


def _sentence(text: str) -> str:
    return text if text.endswith(("?", ".")) else f"{text}."


def _place(location: tuple[int | str, ...]) -> str:
    """Return the pointer of a place, up to the first name that is not a field of a request."""
    known = request_fields()
    parts: list[int | str] = []
    for part in location:
        if isinstance(part, str) and part not in known:
            break
        parts.append(part)
    return pointer(*parts)


def _unknown(
    location: tuple[int | str, ...], model: type[BaseModel], document: Document
) -> Violation:
    """Say which member of an object is unknown, and what it may be."""
    *outer, name = location
    names = list(document.names) if not outer else list(_within(document.rest, outer))
    number = names.index(str(name)) + 1
    detail = f"Member {number} of the object has a name that is not known here."
    known = fields_at(model, tuple(outer))
    place = _place(tuple(outer))
    return UnknownMember(place, "unknown_field", f"{detail} {hint(str(name), known)}", str(name))


def _without_union_tags(
    location: tuple[int | str, ...], document: Document
) -> tuple[int | str, ...]:
    """Drop the names of union members from a location, since they are not in the document."""
    content: Any = document.rest
    parts = []
    for i, part in enumerate(location):
        if not isinstance(content, dict):
            is_place = isinstance(part, int)
        else:
            # Only the last part can name a missing member.
            is_place = part in content or i == len(location) - 1
        if is_place:
            parts.append(part)
            content = _member(content, part)
    return tuple(parts)


def _within(content: Any, location: list[int | str]) -> Any:  # noqa: ANN401 (any JSON value)
    for part in location:
        content = _member(content, part)
    return content


def _member(content: Any, part: int | str) -> Any:  # noqa: ANN401 (any JSON value)
    if isinstance(content, dict):
        return content.get(part)
    return content[part] if isinstance(content, list) and isinstance(part, int) else None
