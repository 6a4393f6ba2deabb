"""The members of requests, and the one that an unknown name may mean."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

Model = type[BaseModel]
Json = Mapping[str, Any]

LONGEST_NAME = 64
"""Characters of an unknown name that are compared with the known ones."""
MOST_LISTED = 16
"""Most names that are listed where none is near."""
_REFERENCE = "#/$defs/"
_MEANT = {
    "average": "indices",
    "class_names": "labels",
    "metric": "index",
    "metrics": "indices",
    "max": "max_value",
    "min": "min_value",
    "predictions": "y_pred",
    "predict_proba": "y_score",
    "proba": "y_score",
    "probabilities": "y_score",
    "probas": "y_score",
    "target_names": "labels",
    "weights": "sample_weight",
    "y_prob": "y_score",
    "y_proba": "y_score",
    "y_probas": "y_score",
    "zero_division": "undefined",
}
"""Names of other libraries, and what they are called here."""


def hint(name: str, known: Sequence[str]) -> str:
    """Say what an unknown member of an object may be.

    Parameters
    ----------
    name
        The unknown name, of any length.
    known
        The names of the members that the object may have.
    """
    name = name[:LONGEST_NAME].lower()
    meant = _MEANT.get(name)
    near = [meant] if meant in known else get_close_matches(name, known, n=1)
    near = near or [one for one in known if name and one.startswith(name)]
    if near:
        return f"Did you mean `{near[0]}`?"
    if len(known) > MOST_LISTED:
        return "Leave it out; /docs lists the names."
    return f"Known here: {', '.join(f'`{one}`' for one in known)}."


@lru_cache(maxsize=256)
def member_names(models: tuple[Model, ...], place: tuple[int | str, ...]) -> tuple[str, ...]:
    """Return the names of the members that an object of a request may have.

    Parameters
    ----------
    models
        Models of which the request is one.
    place
        Names and positions that lead to the object.
    """
    references, schema = _schemas(models)
    nodes = [references[model, "validation"] for model in models]
    for part in place:
        nodes = [child for node in _options(nodes, schema) for child in _children(node, part)]
    names = (name for node in _options(nodes, schema) for name in node.get("properties", ()))
    return tuple(dict.fromkeys(names))


@cache
def all_member_names(models: tuple[Model, ...]) -> frozenset[str]:
    """Return the names of all members of requests, nested ones included."""
    definitions = _schemas(models)[1]
    return frozenset(name for node in definitions.values() for name in node.get("properties", ()))


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
        found = node.get("items")
    else:
        found = node.get("properties", {}).get(part) or node.get("additionalProperties")
    if isinstance(found, dict):
        yield found
