"""The document of the overall indices of scores that a store keeps of an evaluation."""

import math
from typing import Any

import orjson

from rprime.core.index import CODE, REASONS
from rprime.core.scores.kept import MISSING, KeptScores, KeptValue

Json = dict[str, Any]


def write_score_values(kept: KeptScores) -> bytes:
    """Write indices of scores as JSON, each with its standard error, interval and reason."""
    overall = {key: _written(kept, key) for key in sorted(kept.values)}
    return orjson.dumps({"quantile": kept.quantile, "overall": overall})


def _written(kept: KeptScores, key: str) -> Json:
    found = kept.of(key)
    document: Json = {"value": _finite(found.value)}
    if not math.isnan(found.low):
        document |= {
            "standard_error": kept.standard_error(key),
            "interval": [found.low, found.high],
        }
    if found.low_reliability:
        document["low_reliability"] = True
    return document | ({"reason": REASONS[found.code]} if found.code else {})


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def read_score_values(document: bytes) -> KeptScores:
    """Read what `write_score_values` wrote; a ValueError or the like for anything else."""
    found = orjson.loads(document)
    quantile = float(found["quantile"])
    if not 0 < quantile < math.inf:
        raise ValueError("the quantile of the intervals is not positive")
    return KeptScores(quantile, {key: _read(one) for key, one in found["overall"].items()})


def _read(one: Json) -> KeptValue:
    value = math.nan if one["value"] is None else float(one["value"])
    low, high = one.get("interval") or (math.nan, math.nan)
    code = CODE.get(one.get("reason", ""), MISSING.code)
    little = bool(one.get("low_reliability", False))
    return KeptValue(value, float(low), float(high), code, little)
