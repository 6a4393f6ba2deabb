"""Validate the members of a document, and say where and how they break the contract."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache, reduce
from itertools import groupby, takewhile
from operator import attrgetter
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema

from rprime.core.index_names import LONGEST_NAME, nearest_name
from rprime.problems.problem import (
    MOST_VIOLATIONS,
    UnknownMember,
    Violation,
    error_sentence,
    member,
    pointer,
)
from rprime.schemas.document import OPTIONAL_ARRAYS, Document
from rprime.schemas.gate import OTHER_NAMES

Model = type[BaseModel]
Json = Mapping[str, Any]
ModelT = TypeVar("ModelT", bound=BaseModel)

_REFERENCE = "#/$defs/"
_OTHER_NAMES = {
    "confusion_matrix": "cm matrix",
    "gates": "rules",
    "groups": "group group_id",
    "index": "measure metric",
    "indices": "average metrics",
    "labels": "class_names target_names",
    "max_change": "equivalence equivalence_margin",
    "max_drop": "max_decrease max_regression tolerance",
    "max_value": "max max_threshold maximum",
    "min_value": "min min_threshold minimum",
    "item_id": "id ids item_ids sample_id sample_ids",
    "sample_weight": "weight weights sample_weights",
    "undecided": "inconclusive",
    "undefined": "zero_division",
    "y_pred": "labels_pred predictions y_hat yhat",
    "y_score": "predict_proba proba probabilities probas y_prob y_proba y_probas",
    "y_true": "labels_true y y_test target targets",
}
"""What names of the API are called in other libraries."""
_MEANT = {other: name for name, others in _OTHER_NAMES.items() for other in others.split()}


def validated(
    model: type[ModelT], document: Document, violations: list[Violation]
) -> ModelT | None:
    """Validate everything but the arrays of a document; None if it is invalid.

    The violations are added to those given, to be reported together with those of the arrays.
    """
    for part in (document, *document.inner.values()):
        for name in OPTIONAL_ARRAYS & part.arrays.keys():
            if part.arrays[name] is None:
                del part.arrays[name]
                text = error_sentence({"type": "null"}, member([name]))
                violations.append(Violation(f"{part.pointer}/{name}", "null", text))
    try:
        return model.model_validate(document.rest)
    except ValidationError as error:
        violations.extend(_joined(_violations(error, model, document)))
        return None


def _violations(error: ValidationError, model: Model, document: Document) -> Iterator[Violation]:
    errors = error.errors(include_url=False, include_input=False)
    for entry in errors[: MOST_VIOLATIONS + 1]:
        place = _without_union_tags(entry, document)
        named = _named(place)
        if entry["type"] == "extra_forbidden":
            yield _unknown(place, model, document)
        elif entry["type"] == "unknown_index":
            name = entry["ctx"]["name"]
            yield UnknownMember(pointer(*named), "unknown_index", entry["msg"], name)
        elif entry["type"] != "none_required":
            name = member(named, within=len(named) < len(place))
            yield Violation(pointer(*named), entry["type"], error_sentence(entry, name))


def _joined(violations: Iterable[Violation]) -> Iterator[Violation]:
    """Join the alternatives of one member, each a violation of Pydantic, into one sentence."""
    for _, same in groupby(violations, attrgetter("pointer")):
        first, *others = dict.fromkeys(same)
        subject, must, _ = first.detail.partition(" must be ")
        if must and all(other.detail.startswith(subject + must) for other in others):
            rules = (
                other.detail.removeprefix(subject + must).removesuffix(".") for other in others
            )
            others, text = [], " or ".join([first.detail.removesuffix("."), *rules])
            first = replace(first, detail=f"{text}.")
        yield from (first, *others)


def _named(location: tuple[int | str, ...]) -> list[int | str]:
    """Return the parts of a place, up to the first name that is not a field of a request."""
    fields = request_fields()
    return list(takewhile(lambda part: isinstance(part, int) or part in fields, location))


def _unknown(location: tuple[int | str, ...], model: Model, document: Document) -> Violation:
    """Say which member of an object is unknown, and what it may be."""
    *outer, name = location
    if len(outer) == 1 and outer[0] in document.inner:
        document, outer = document.inner[str(outer[0])], []
    names = document.names if not outer else list(reduce(_member, outer, document.rest))
    number = names.index(str(name)) + 1
    detail = f"Member {number} of the object has a name that is not known here."
    fields = fields_at(model, location[:-1])
    inner = (field for field in fields if name in fields_at(model, (*location[:-1], field)))
    hint = _hint(str(name), fields, next(inner, None))
    place = pointer(*_named(location[:-1]))
    return UnknownMember(place, "unknown_field", f"{detail} {hint}", str(name))


def _without_union_tags(error: Mapping[str, Any], document: Document) -> tuple[int | str, ...]:
    """Drop the names of union members from the place of an error: the document has none of them."""
    content: Any = document.rest
    location, is_missing = error["loc"], error["type"] == "missing"
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


def _hint(name: str, names: Sequence[str], inner: str | None) -> str:
    """Say what an unknown member of an object may be; `inner` has a member of this name.

    The name may have any length.
    """
    name = name[:LONGEST_NAME].lower()
    meant = _MEANT.get(name)
    if inner is not None and meant not in names:
        return f"It belongs in `{inner}`."
    return f"Did you mean `{meant}`?" if meant in names else nearest_name(name, names)


@lru_cache(maxsize=256)
def fields_at(model: Model, place: tuple[int | str, ...]) -> tuple[str, ...]:
    """Return the names that an object of a request may have, at the place of the object."""
    from rprime.schemas.published import OF_REST  # noqa: PLC0415 (all models, for a violation)

    models = OF_REST.get(model, (model,))
    references, schema = _schemas(models)
    nodes = [references[model, "validation"] for model in models]
    for part in place:
        nodes = [child for node in _options(nodes, schema) for child in _children(node, part)]
    names = (name for node in _options(nodes, schema) for name in node.get("properties", ()))
    return tuple(dict.fromkeys(names))


@cache
def request_fields() -> frozenset[str]:
    """Return every field name of requests, nested ones included."""
    from rprime.schemas.published import REQUESTS  # noqa: PLC0415 (as above)

    definitions = _schemas(REQUESTS)[1]
    names = (name for node in definitions.values() for name in node.get("properties", ()))
    return frozenset([*names, *OTHER_NAMES])


@cache
def _schemas(models: tuple[Model, ...]) -> tuple[Any, Json]:
    references, schema = models_json_schema([(model, "validation") for model in models])
    return references, schema["$defs"]


def _options(nodes: Sequence[Json], definitions: Json) -> Iterator[Json]:
    """Follow references and unions."""
    for node in nodes:
        if "$ref" in node:
            yield from _options([definitions[node["$ref"].removeprefix(_REFERENCE)]], definitions)
        yield node
        for union in ("anyOf", "oneOf", "allOf"):
            yield from _options(node.get(union, ()), definitions)


def _children(node: Json, part: int | str) -> Iterator[Json]:
    if isinstance(part, int):
        schema = node.get("items")
    else:
        members = node.get("properties", {})
        schema = members.get(part) or members.get(OTHER_NAMES.get(part, ""))
        schema = schema or node.get("additionalProperties")
    if isinstance(schema, dict):
        yield schema
