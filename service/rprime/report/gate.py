"""The JSON of a gate's verdict."""

from collections.abc import Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any

import orjson

from rprime.core.gates.result import GateResult, Result

Json = dict[str, Any]
MEMBERS = tuple(field.name.removesuffix("_") for field in fields(Result))
_values_of = attrgetter(*(field.name for field in fields(Result)))


def render_gate(result: GateResult, more: Mapping[str, Json | None]) -> bytes:
    """Render a verdict as the JSON document of the contract; `more` adds members."""
    document: Json = {
        "verdict": result.verdict,
        "judged": result.judged,
        "message": result.message,
        "alpha": result.alpha,
        "look": result.look,
        "budget": result.budget,
        "results": [dict(zip(MEMBERS, _values_of(one), strict=True)) for one in result.results],
    }
    return orjson.dumps({**document, **more})
