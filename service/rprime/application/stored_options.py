"""The options and gates of a stored evaluation, to compute its report again."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from rprime.core.index import Index
from rprime.core.options import SCORE_OPTIONS, Options
from rprime.core.populations.population import Population
from rprime.core.slices.evaluation import asked_indices
from rprime.evidence.tables import MATRICES
from rprime.schemas.gate import Gates

if TYPE_CHECKING:
    # Imports the database driver, which a service without a store does not need.
    from rprime.store import BaselineQuery

_WRITTEN = orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY
_DEFAULTS = Options()
_NOT_KEPT = ("top_confusions", "classes", *SCORE_OPTIONS)
"""Not stored: listing options belong to each report, and scores are not stored."""
SHAPING = ("beta", "cell_weights", "exact", "sampling", "undefined")
"""Options that change values or intervals of a table, whatever indices are asked for."""
_KEPT = tuple(name for name in Options.__dataclass_fields__ if name not in _NOT_KEPT)


@dataclass(frozen=True, eq=False, kw_only=True)
class StoreRequest:
    """What a request stores beside the evidence.

    Parameters
    ----------
    asked
        The options and the gates, written by `write_options`.
    reference, anchor, prevalence_of
        The stored baselines that the request and its gate name, and the id of the evaluation whose
        prevalence the population has.
    id
        Of the evaluation, where the answer needs it before the evaluation is stored.
    payload
        The body or a digest of it.
    """

    project: str
    asked: bytes
    reference: "BaselineQuery | None"
    anchor: "BaselineQuery | None" = None
    prevalence_of: str | None = None
    id: str | None = None
    is_first: bool = False
    keeps_slices: bool = False
    payload: bytes = b""


def write_options(options: Options, gates: Gates | None) -> bytes:
    """Write options and gates as JSON, the same bytes for the same request."""
    document: dict[str, Any] = {"options": _changed(options)}
    if gates is not None:
        document["gates"] = gates.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return orjson.dumps(document, option=_WRITTEN)


def with_options(content: bytes, options: Options) -> bytes:
    """Write other options beside the same gates."""
    document = orjson.loads(content) | {"options": _changed(options)}
    return orjson.dumps(document, option=_WRITTEN)


def _changed(options: Options) -> dict[str, Any]:
    pairs = ((name, getattr(options, name)) for name in _KEPT)
    return {
        name: value
        for name, value in pairs
        if isinstance(value, np.ndarray) or value != getattr(_DEFAULTS, name)
    }


def read_options(content: bytes, top_confusions: int) -> Options:
    """Read the options that `write_options` wrote."""
    members = _read(content)
    matrices: dict[str, Any] = {
        name: np.array(members[name]) for name in MATRICES if isinstance(members.get(name), list)
    }
    others: dict[str, Any] = {"top_confusions": top_confusions}
    for name in ("indices", "families"):
        if members.get(name) is not None:
            others[name] = tuple(members[name])
    if (population := members.get("population")) is not None:
        counts = population["counts"]
        arrays = {
            "shares": np.array(population["shares"]),
            "names": tuple(population["names"]),
            "counts": None if counts is None else np.array(counts),
        }
        others["population"] = Population(**population | arrays)
    return Options(**members | matrices | others)


def asks_every_result(options: bytes) -> bool:
    """Whether the gates that were written ask for all results."""
    gates: dict[str, Any] = orjson.loads(options).get("gates") or {}
    return gates.get("results") == "all"


def comparison_options(content: bytes, top_confusions: int) -> tuple[Options, tuple[str, ...]]:
    """Return the options that a stored candidate is compared by, and the indices of its slices.

    They are those of its report, so that a comparison finds in the slices what the report does;
    but the summary is compared besides, and the population is chosen apart.
    """
    options = read_options(content, top_confusions)
    families = tuple(dict.fromkeys(("summary", *options.families)))
    return replace(options, families=families, population=None), asked_indices(options)


def stored_prevalence_of(content: bytes) -> Population | None:
    """Return the prevalence that a stored evaluation is about, which others can be compared at."""
    population = read_options(content, 0).population
    return population if population is not None and population.strata == "true" else None


@lru_cache(maxsize=256)
def shaping_options(content: bytes) -> bytes:
    """Keep of the written options those that a series honours; the same bytes for the same ones."""
    members = _read(content)
    return orjson.dumps({"options": {name: members[name] for name in SHAPING if name in members}})


def shaping_text(content: bytes, index: Index) -> str:
    """Name the options that make values of an index incomparable; "" for the default ones."""
    members = _read(content)
    named = {
        f"beta {members.get('beta', 1):g}": "beta" in members
        and "f_beta" in {index.key, *index.of},
        "cell weights": "cell_weights" in members,
        f"undefined as {members.get('undefined')}": "undefined" in members and bool(index.of),
    }
    return ", ".join(text for text, holds in named.items() if holds)


@lru_cache(maxsize=256)
def _read(content: bytes) -> dict[str, Any]:
    members: dict[str, Any] = orjson.loads(content)["options"]
    return members
