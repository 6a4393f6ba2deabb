"""Compare the printed results of the R' paper with those of the engine for its tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import orjson

from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.studies.correlation import agreements
from rprime.core.table import ConfusionTable
from rprime.core.values import compute

DATA = "data/beyond_ap_tables.json"
DECIMALS = 4
"""Indices that the paper prints."""

# The names of the printed averages in the data.
_KEYS = {"recall_macro": "macro_recall", "precision_macro": "macro_precision"}


@dataclass(frozen=True, slots=True)
class PrintedResult:
    """One printed number.

    Parameters
    ----------
    table
        The table of the paper.
    index
        A key of the catalog, or a coefficient between two indices.
    class_
        The class; None for overall indices.
    published, computed
        The printed number, to four decimals, and ours in full precision.
    """

    table: str
    index: str
    class_: str | None
    published: float
    computed: float

    @property
    def reproduced(self) -> bool:
        """Whether the computed number rounds to the printed one."""
        return round(self.computed, DECIMALS) == self.published


@dataclass(frozen=True)
class Reproduction:
    """All printed numbers, and the known errata of the paper.

    Parameters
    ----------
    errata, conventions
        Explanations by the table they apply to.
    """

    source: str
    results: tuple[PrintedResult, ...]
    errata: tuple[tuple[str, str], ...]
    conventions: tuple[tuple[str, str], ...]

    @property
    def reproduced(self) -> int:
        """How many numbers agree with the print."""
        return sum(result.reproduced for result in self.results)

    @property
    def tables(self) -> list[str]:
        """The tables with numbers, in the order of the paper's data."""
        return list(dict.fromkeys(result.table for result in self.results))


def reproduce() -> Reproduction:
    """Run the published tables through the engine."""
    data = _data()
    cases = {_title(name): case for name, case in data["matrices"].items()}
    models = data["ten_models"]
    results = [result for title, case in cases.items() for result in _of_table(title, case)]
    sources = {**cases, "Table 5": models}
    return Reproduction(
        data["source"],
        (*results, *_of_models(models)),
        tuple((title, case["erratum"]) for title, case in sources.items() if "erratum" in case),
        tuple(data["conventions"].items()),
    )


def printed_table(name: str) -> tuple[tuple[str, ...], ConfusionTable]:
    """Return the classes and the counts of a table of the paper."""
    case = _data()["matrices"][name]
    return tuple(case["classes"]), ConfusionTable.dense(np.array(case["counts"]))


def _data() -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(files("rprime").joinpath(DATA).read_bytes())
    return found


def _title(name: str) -> str:
    table, *words = name.removeprefix("table").split("_")
    return f"Table {table}, {' '.join(words)}"


def _of_table(title: str, case: dict[str, Any]) -> Iterator[PrintedResult]:
    keys = {_KEYS.get(name, name): published for name, published in case["overall"].items()}
    options = Options(indices=(*keys, "r_prime"))
    table = ConfusionTable.dense(np.array(case["counts"]))
    values = compute(table, options, select(options))
    for key, published in keys.items():
        yield PrintedResult(title, key, None, published, float(values.lookup("overall", key)))
    computed = values.lookup("class", "r_prime").tolist()
    for row in zip(case["classes"], case["r_prime_per_class"], computed, strict=True):
        yield PrintedResult(title, "r_prime", *row)


def _of_models(models: dict[str, Any]) -> Iterator[PrintedResult]:
    """Correlate the printed values of ten models; the paper has no tables of them."""
    printed = models["agreement_with_r_prime"]
    others = list(printed["correlation"])
    values = np.array([models[name] for name in ("r_prime", *others)])
    found = {others[pair.b - 1]: pair for pair in agreements(values) if pair.a == 0}
    for name, published in printed["correlation"].items():
        label = f"Pearson correlation of r_prime and {_KEYS.get(name, name)}"
        yield PrintedResult("Table 6", label, None, published, found[name].pearson)
    for name, published in printed["rmse"].items():
        label = f"root mean squared difference of r_prime and {_KEYS.get(name, name)}"
        yield PrintedResult("Table 6", label, None, published, found[name].rmse)
