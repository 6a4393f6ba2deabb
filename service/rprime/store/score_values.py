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
    score = kept.of(key)
    document: Json = {"value": _finite(score.value)}
    if not math.isnan(score.low):
        document |= {
            "standard_error": kept.standard_error(key),
            "interval": [score.low, score.high],
        }
    if score.low_reliability:
        document["low_reliability"] = True
    return document | ({"reason": REASONS[score.code]} if score.code else {})


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def read_score_values(document: bytes) -> KeptScores:
    """Read what `write_score_values` wrote; a ValueError or the like for anything else."""
    content = orjson.loads(document)
    quantile = float(content["quantile"])
    if not 0 < quantile < math.inf:
        raise ValueError("the quantile of the intervals is not positive")
    return KeptScores(quantile, {key: _read(score) for key, score in content["overall"].items()})


def _read(score: Json) -> KeptValue:
    value = math.nan if score["value"] is None else float(score["value"])
    low, high = score.get("interval") or (math.nan, math.nan)
    code = CODE.get(score.get("reason", ""), MISSING.code)
    little = bool(score.get("low_reliability", False))
    return KeptValue(value, float(low), float(high), code, little)
