"""Compare the printed results of the R' papers with those of the engine for their tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import orjson

from rprime.application.claims import KEYS, Claim, check_claims
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.studies.correlation import agreements
from rprime.core.table import ConfusionTable
from rprime.core.values import compute

DATA = "data/beyond_ap_tables.json"
CHINESE = "data/chinese_tables.json"
EQUATION_10 = (
    "Labatut, Cherifi 2011, equation 10",
    (
        "The printed factor (p - 1) / k is negative below p = 1. With (1 - p) / k, which is used "
        "here, the shares of the classes add up to 1, as the text's .52, .26, .13, .06 and .03 do. "
        "The text demands 0 < p < 1, and the figures use 0 and 1, too."
    ),
)
"""Place and text of an erratum that belongs to no table."""
PRINTED_TABLES = {
    "mnist": "table4_mnist_lenet5",
    "mnist_before": "table7_mnist_before",
    "mnist_after": "table7_mnist_after",
    "cifar10_before": "table8_cifar10_before",
    "cifar10_after": "table8_cifar10_after",
}
"""Confusion matrices of the English paper: the name for people, and that in the data."""
DECIMALS = 4
"""That the papers print."""


@dataclass(frozen=True, slots=True)
class PrintedResult:
    """One printed number, to four decimals, and ours in full precision.

    The index is a key of the catalog, or a coefficient between two indices; the class is None for
    overall indices; an erratum is known to contradict the paper's own counts.
    """

    table: str
    index: str
    class_: str | None
    published: float
    computed: float
    erratum: bool = False

    @property
    def reproduced(self) -> bool:
        """Whether the computed number rounds to the printed one."""
        return round(self.computed, DECIMALS) == self.published

    @property
    def mark(self) -> str:
        """How the two compare: same, erratum or differs."""
        return "same" if self.reproduced else "erratum" if self.erratum else "differs"


@dataclass(frozen=True)
class Reproduction:
    """All printed numbers, explanations by the table they apply to, and claims of the papers."""

    source: str
    results: tuple[PrintedResult, ...]
    errata: tuple[tuple[str, str], ...]
    conventions: tuple[tuple[str, str], ...]
    claims: tuple[Claim, ...]

    @property
    def summary(self) -> str:
        """The counts, in words."""
        marks = [result.mark for result in self.results]
        return (
            f"{self.reproduced} of {len(marks)} printed numbers are reproduced, "
            f"{marks.count('erratum')} is an erratum of the paper, "
            f"{marks.count('differs')} differ; {len(self.errata)} errata are listed. "
            f"{sum(claim.holds for claim in self.claims)} of {len(self.claims)} claims hold."
        )

    @property
    def sound(self) -> bool:
        """Whether every number is reproduced or an erratum."""
        return all(result.mark != "differs" for result in self.results)

    @property
    def reproduced(self) -> int:
        """How many numbers agree with the print."""
        return sum(result.reproduced for result in self.results)

    @property
    def tables(self) -> list[str]:
        """The tables with numbers, in the order of the data."""
        return list(dict.fromkeys(result.table for result in self.results))


def reproduce() -> Reproduction:
    """Run the published tables through the engine."""
    english, chinese = _data(DATA), _data(CHINESE)
    models = english["ten_models"]
    cases = {_title(name): case for name, case in english["matrices"].items()}
    cases |= {_in_chinese(_title(name)): case for name, case in chinese["matrices"].items()}
    results = [result for title, case in cases.items() for result in _of_table(title, case)]
    sources = {**cases, "Table 5": models}
    others = {_in_chinese(name): text for name, text in chinese["conventions"].items()}
    conventions = english["conventions"] | others
    errata = [(title, case["erratum"]) for title, case in sources.items() if "erratum" in case]
    explained = ((*errata, EQUATION_10), tuple(conventions.items()))
    claims = check_claims(models, _improved(english, chinese))
    source = f"{english['source']}; {chinese['source']}"
    return Reproduction(source, (*results, *_of_models(models)), *explained, claims)


def _improved(*papers: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Return the counts of each table before an improvement, and of the one after it."""
    cases = (case for paper in papers for case in paper["matrices"].items())
    counts = [case["counts"] for name, case in cases if name.endswith(("before", "after"))]
    return list(zip(counts[::2], counts[1::2], strict=True))


def _in_chinese(name: str) -> str:
    return f"Chinese paper, {name[0].lower()}{name[1:]}"


def printed_table(name: str) -> tuple[tuple[str, ...], ConfusionTable]:
    """Return the classes and the counts of a table of the paper."""
    case = _data(DATA)["matrices"][name]
    return tuple(case["classes"]), ConfusionTable.dense(np.array(case["counts"]))


def printed_request(name: str) -> dict[str, Any]:
    """Return the request that evaluates a table of the paper, by a name of `PRINTED_TABLES`."""
    labels, table = printed_table(PRINTED_TABLES[name])
    return {"labels": labels, "confusion_matrix": table.cells.counts.astype(int).tolist()}


def _data(path: str) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(files("rprime").joinpath(path).read_bytes())
    return document


def _title(name: str) -> str:
    table, *words = name.removeprefix("table").split("_")
    return f"Table {table}, {' '.join(words)}"


def _of_table(title: str, case: dict[str, Any]) -> Iterator[PrintedResult]:
    keys = {KEYS.get(name, name): published for name, published in case["overall"].items()}
    options = Options(indices=(*keys, "r_prime"))
    table = ConfusionTable.dense(np.array(case["counts"]))
    values = compute(table, options, select(options))
    for key, published in keys.items():
        yield PrintedResult(title, key, None, published, float(values.lookup("overall", key)))
    computed = values.lookup("class", "r_prime").tolist()
    printed = case.get("printed", {})
    # A model that predicts one class alone has no printed values of the classes.
    for row in zip(case["classes"], case["r_prime_per_class"], computed, strict=False):
        class_, published, value = row
        shown = printed.get(class_, published)
        yield PrintedResult(title, "r_prime", class_, shown, value, class_ in printed)


def _of_models(models: dict[str, Any]) -> Iterator[PrintedResult]:
    """Correlate the printed values of ten models; the paper has no tables of them."""
    printed = models["agreement_with_r_prime"]
    others = list(printed["correlation"])
    values = np.array([models[name] for name in ("r_prime", *others)])
    pairs = {others[pair.b - 1]: pair for pair in agreements(values) if pair.a == 0}
    for name, published in printed["correlation"].items():
        label = f"Pearson correlation of r_prime and {KEYS.get(name, name)}"
        yield PrintedResult("Table 6", label, None, published, pairs[name].pearson)
    for name, published in printed["rmse"].items():
        label = f"root mean squared difference of r_prime and {KEYS.get(name, name)}"
        yield PrintedResult("Table 6", label, None, published, pairs[name].rmse)
