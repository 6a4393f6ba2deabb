"""Which columns of files are read, which of them are slices, and which population is meant."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from rprime.commands.exit_status import refuse
from rprime.commands.mappings import read_mapping

Json = dict[str, Any]

_SLICE = re.compile(r"(?:([^=(),]+)=)?\s*(?:cut\(([^(),]+),([^()]+)\)|([^=(),]+))")


def chosen_members(
    columns: str | None,
    slices: Sequence[str],
    crossings: Sequence[str] = (),
    population: str | None = None,
    *,
    option: str = "--slice",
) -> Json:
    """Return the members of a request that options stand for; `option` is that of the slices.

    Parameters
    ----------
    columns
        The columns to read, as `y_true=label,y_pred=prediction`; None: all.
    slices
        Columns, as `region` or `age_band=cut(age, 18, 30, 50)`.
    crossings
        Names of slices that are combined, as `region,age_band`.
    population
        A file, `uniform` or JSON.
    """
    read = _columns(columns or "")
    cuts: dict[str, int | list[float]] = {}
    for text in slices:
        match = _SLICE.fullmatch(text.strip())
        if match is None:
            refuse(f"{option} {text}: a column is named as region, or as cut(age, 18, 30, 50)")
        name, source, edges, plain = (part and part.strip() for part in match.groups())
        name = name or source or plain
        if f"slice:{name}" in read:
            refuse(f"{option} {text}: there is a slice {name} already")
        read[f"slice:{name}"] = source or plain
        if edges is not None:
            cuts[name] = _cut(f"{option} {text}", edges)
    found: Json = {"columns": read, "slice_cuts": cuts}
    found["slice_crossings"] = [[part.strip() for part in each.split(",")] for each in crossings]
    found["population"] = population and _population(population)
    return {name: value for name, value in found.items() if value}


def _columns(columns: str) -> dict[str, str]:
    pairs = [part.strip().partition("=") for part in columns.split(",") if part.strip()]
    found = {name.strip(): (source if sign else name).strip() for name, sign, source in pairs}
    if len(found) < len(pairs):
        refuse("--columns: a column is named twice")
    return found


def _cut(text: str, edges: str) -> int | list[float]:
    try:
        numbers = [float(edge) for edge in edges.split(",")]
    except ValueError:
        refuse(f"{text}: a cut is at numbers")
    alone = len(numbers) == 1 and numbers[0].is_integer() and "." not in edges
    return int(numbers[0]) if alone else numbers


def _population(text: str) -> Json:
    if text == "uniform":
        return {"prevalence": text}
    if not text.lstrip().startswith("{"):
        if not Path(text).exists():
            refuse(f"--population {text}: there is no such file; else it is uniform, or JSON")
        found = read_mapping(Path(text), "a population")
    else:
        try:
            found = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            refuse(f"--population is not valid JSON: {error}")
    # Shares by class need no other name.
    return found if {"prevalence", "strata", "shares"} & set(found) else {"prevalence": found}
