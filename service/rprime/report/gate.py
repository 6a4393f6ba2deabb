"""The JSON of a gate's verdict."""

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

import orjson

from rprime.core.gates.result import GateResult, Result

Json = dict[str, Any]
NOTHING: Mapping[str, Json | None] = MappingProxyType({})
MEMBERS = tuple((field.name, field.name.removesuffix("_")) for field in fields(Result))


def render_gate(result: GateResult, more: Mapping[str, Json | None] = NOTHING) -> bytes:
    """Render a verdict as the JSON document of the contract; `more` adds members."""
    return orjson.dumps({**gate_document(result), **more})


def gate_document(result: GateResult) -> Json:
    """Return a verdict as the object of the contract."""
    return {
        "verdict": result.verdict,
        "judged": result.judged,
        "message": result.message,
        "alpha": result.alpha,
        "look": result.look,
        "budget": result.budget,
        "results": [result_document(one) for one in result.results],
    }


def result_document(result: Result) -> Json:
    """Return one result, its members named as in the contract."""
    return {member: getattr(result, name) for name, member in MEMBERS}
