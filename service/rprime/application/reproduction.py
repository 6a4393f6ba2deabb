"""Compare the printed results of the R' papers with those of the engine for their tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.core.catalog import find
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.studies import (
    DiscriminationLine,
    TracedIndex,
    agreements,
    disagreements,
    discriminate,
)
from rprime.core.table import ConfusionTable
from rprime.core.values import compute

LABATUT = "Labatut, Cherifi 2011"
ZHANG = "Zhang, Su, Dou 2021"
CHINESE = "Zhang, Su, Dou 2021, in Chinese"
# The names of the printed averages in the data.
KEYS = {"recall_macro": "macro_recall", "precision_macro": "macro_precision"}
HIGH, FAR = 0.97, 0.14
"""What is close, for correlations and root mean squared differences of table 6."""
K = 3
IMBALANCES = (0.0, 0.5, 1.0)
CLOSE = 1e-9
"""Largest distance of two crossings that are the same."""

Found = tuple[str, bool, str]
"""The text of a claim, whether it holds, and the numbers."""
Improved = Sequence[tuple[Any, Any]]
"""Counts before and after an improvement."""


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, whether it holds, and the numbers that show it."""

    source: str
    text: str
    holds: bool
    numbers: str


def check_claims(models: Mapping[str, Any], improved: Improved) -> tuple[Claim, ...]:
    """Check every claim.

    Given are the values of ten models by index, as the R' paper prints them, and improved tables.
    """
    claims = {
        ZHANG: (*_of_zhang(models, improved), *_about_the_estimator(), _about_the_bound()),
        CHINESE: (_about_imbalance(),),
        LABATUT: _of_labatut(),
    }
    return tuple(Claim(source, *result) for source, all_ in claims.items() for result in all_)


def _of_zhang(models: Mapping[str, Any], improved: Improved) -> Iterator[Found]:
    """Yield claims about R'."""
    others = list(models["agreement_with_r_prime"]["correlation"])
    values = _values_of(models, others)
    pairs = [pair for pair in agreements(values) if pair.a == "r_prime"]
    pearson = min(_number(pair.pearson) for pair in pairs)
    rmse = max(_number(pair.rmse) for pair in pairs)
    text = "Over ten models R' is close to AP, P, R, F-1 and kappa: table 6"
    numbers = f"correlations from {pearson:.4f}, root mean squared differences up to {rmse:.4f}"
    yield text, pearson > HIGH and rmse < FAR, numbers
    opposed = {
        pair.b: pair.count
        for pair in disagreements(values, [1] * len(values), 0)
        if pair.a == "r_prime"
    }
    text = "R' orders the models as macro recall and kappa do"
    reversals = {name: opposed.get(name, 0) for name in others}
    numbers = ", ".join(f"{KEYS.get(name, name)} {n}" for name, n in reversals.items())
    yield (
        text,
        reversals["recall_macro"] == reversals["kappa"] == 0,
        f"pairs ordered otherwise: {numbers}",
    )
    tables = [ConfusionTable.dense(np.array(counts)) for pair in improved for counts in pair]
    keys = ("r_prime", "accuracy")
    options = Options(indices=keys)
    computed = [compute(table, options, select(options)) for table in tables]
    overall, accuracy = ([float(v.lookup("overall", key)) for v in computed] for key in keys)
    distance = max(abs(a - b) for a, b in zip(overall, accuracy, strict=True))
    text = "The overall R' differs from the accuracy (AP of table 6: .9703, .1398)"
    numbers = f"largest difference {distance:.1g} in {len(tables)} tables; AP is recall of class 0"
    yield text, distance > CLOSE, numbers
    classes = [v.lookup("class", "r_prime") for v in computed]
    weak = [
        (row[low := row < whole], later[low])
        for row, whole, later in zip(classes[::2], overall[::2], classes[1::2], strict=True)
    ]
    before, after = (np.concatenate(side) for side in zip(*weak, strict=True))
    text = "Classes with an R' below the overall one show what to improve: each of them rises"
    numbers = f"{(after > before).sum()} of {before.size} rise in {len(improved)} improvements"
    numbers += f", by {(after - before).mean():.3f} in the mean"
    yield text, bool((after > before).all()), numbers


def _about_the_estimator() -> Iterator[Found]:
    """Yield property 1, equations 24 and 25, for tables with and without omissions."""
    counts = np.array([[50, 10], [5, 35]])
    for unclassified, condition in ((0, "where every item has a prediction"), (20, "otherwise")):
        table = ConfusionTable.dense(counts, unclassified=np.array([unclassified, 0]))
        r_prime, accuracy = _overall(table, "r_prime", "accuracy")
        total = counts.sum() + unclassified
        text = f"R' is an unbiased estimator of AP: property 1, {condition}"
        numbers = (
            f"{unclassified} of {total} items unclassified: R' {r_prime:.3f}, AP {accuracy:.3f}"
        )
        yield text, abs(r_prime - accuracy) < CLOSE, numbers


def _about_the_bound() -> Found:
    """Check equations 15 to 18 on random tables of three classes, of which one may be empty."""
    keys = ("r_prime", "prevalence", "predicted_prevalence")
    counts = np.random.default_rng(1).poisson([0.5, 3, 20], (500, 3, 3))
    values = [_of_classes(ConfusionTable.dense(table), *keys) for table in counts if table.any()]
    r_prime, prevalence, predicted = np.concatenate(values, axis=1)
    slack = np.nanmin([r_prime - (prevalence - predicted), 1 - r_prime])
    text = "R' of a class lies between P(m) - P(s) and 1: equations 15 to 18"
    return (
        text,
        bool(slack > -CLOSE),
        f"{len(values)} random tables, nearest distance {abs(slack):.1g}",
    )


def _about_imbalance() -> Found:
    """Check the end of section 4.4 on a class that is never predicted."""
    tables = (np.array([[0, rare], [0, 100 - rare]]) for rare in (10, 50))
    rare, frequent = (_of_classes(ConfusionTable.dense(table), "r_prime")[0, 0] for table in tables)
    text = "R' of a class is not influenced by unequal sample counts: section 4.4"
    numbers = (
        f"a class that is never predicted: {rare:.2f} at 10 %, {frequent:.2f} at 50 % of items"
    )
    return text, bool(abs(rare - frequent) < CLOSE), numbers


def _overall(table: ConfusionTable, *keys: str) -> list[float]:
    options = Options(indices=keys)
    values = compute(table, options, select(options))
    return [float(values.lookup("overall", key)) for key in keys]


def _of_classes(table: ConfusionTable, *keys: str) -> Array:
    """Return the values of each index, shape (n_keys, k)."""
    options = Options(indices=keys)
    values = compute(table, options, select(options))
    return np.array([values.lookup("class", key) for key in keys])


def _of_labatut() -> Iterator[Found]:
    yield from _about_overall_indices()
    yield from _about_lines_of_classes()
    yield from _about_crossings_of_classes()
    yield _about_means()
    equal, unequal = ([_crossing("accuracy", p=p, k=k) for k in (3, 10)] for p in (0.0, 1.0))
    text = "The number of classes has a stronger effect when the classes are unbalanced"
    numbers = f"c_x of accuracy for k = 3, 10: {_shown(equal)} at p = 0, {_shown(unequal)} at p = 1"
    yield text, unequal[1] - unequal[0] > equal[1] - equal[0], numbers


def _about_overall_indices() -> Iterator[Found]:
    overall = ("accuracy", "kappa", "scott_pi_true_margin", "maxwell_re")
    ends = {key: [_crossing(key, p=p) for p in IMBALANCES] for key in (*overall, "csi")}
    first = [ends[key][0] for key in overall]
    text = "With equal classes, accuracy, kappa, SPC and MRE discriminate alike; CSI is stricter"
    holds = _same(first) and ends["csi"][0] > first[0]
    yield text, holds, f"c_x at c_y = 0: {_shown(first)}; CSI {ends['csi'][0]:.3f}"
    alike = [ends[key] for key in overall if key != "kappa"]
    text = "With unequal classes, accuracy, SPC and MRE still discriminate alike, kappa does not"
    holds = all(_same(row) for row in zip(*alike, strict=True)) and not _same(
        (ends["kappa"][2], ends["accuracy"][2])
    )
    numbers = f"p = 0, 0.5, 1: accuracy {_shown(ends['accuracy'])}; kappa {_shown(ends['kappa'])}"
    yield text, holds, numbers


def _about_lines_of_classes() -> Iterator[Found]:
    f1, jaccard = (_line(key, 1).coordinates for key in ("f1", "jaccard"))
    distance = float(abs(f1 - jaccard).max())
    text = "F1 and Jaccard of a class order classifiers alike"
    yield text, distance < CLOSE, f"largest distance of their lines {distance:.1g}"
    recall = _line("recall", 1).coordinates
    distance = float(abs(recall[:, 0] - recall[:, 1]).max())
    text = "Recall of the misclassified class discriminates only by c, its line is y = x"
    yield text, distance < CLOSE, f"largest distance {distance:.1g}"
    keys = (("precision", 1), ("specificity", 1), ("negative_predictive_value", 2), ("recall", 2))
    prefers = [_line(key, c, p=p).prefers for key, c in keys for p in IMBALANCES]
    text = "PPV and TNR of class 1, NPV and TPR of class 2 always prefer the series y"
    yield text, set(prefers) == {"y"}, f"{prefers.count('y')} of {len(prefers)} prefer y"


def _about_crossings_of_classes() -> Iterator[Found]:
    of_first = (("recall", 1), ("negative_predictive_value", 1))
    of_second = (("specificity", 2), ("precision", 2))
    kept, changed = (
        [[_crossing(key, c, p=p) for p in IMBALANCES] for key, c in keys]
        for keys in (of_first, of_second)
    )
    strict = [_crossing("icsi", 1), _crossing("icsi", 2)]
    ends = [_crossing("recall", 1), _crossing("precision", 2)]
    text = "ICSI lies between PPV and TPR: the one of them that has a line is to its left"
    holds = all(end < crossing < 1 for end, crossing in zip(ends, strict, strict=True))
    numbers = f"c_x at c_y = 0, classes 1 and 2: TPR, PPV {_shown(ends)}; ICSI {_shown(strict)}"
    yield text, holds, numbers
    text = "The balance of the classes p changes TNR and PPV of class 2, not TPR and NPV of class 1"
    holds = all(map(_same, kept)) and not any(map(_same, changed))
    numbers = f"NPV {_shown(kept[1])}; TNR {_shown(changed[0])}; PPV {_shown(changed[1])}"
    yield text, holds, f"p = 0, 0.5, 1: {numbers}"


def _about_means() -> Found:
    """Check section 7.2 on every class of random tables."""
    keys = ("sorgenfrei", "f1", "fowlkes_mallows", "kulczynski", "quadratic_mean")
    means = (*keys, "overlap_coefficient")
    tables = map(ConfusionTable.dense, np.random.default_rng(2).poisson(5, (200, 3, 3)) + 1.0)
    steps = np.diff(
        np.concatenate([_of_classes(table, *means) for table in tables], axis=1), axis=0
    )
    text = "TPR * PPV <= F1 <= geometric mean <= Kulczynski <= quadratic mean <= max of TPR and PPV"
    return text, bool((steps > -CLOSE).all()), f"{steps.shape[1]} classes of 200 random tables"


def _line(key: str, class_: int | None = None, *, p: float = 0.0, k: int = K) -> DiscriminationLine:
    index = find("class" if class_ else "overall", key)
    assert index is not None  # noqa: S101 (a key of the catalog)
    return discriminate([TracedIndex(index, class_)], k, [p], 101)[0]


def _crossing(key: str, class_: int | None = None, **at: Any) -> float:  # noqa: ANN401 (k and p)
    """Return the rate c_x of the classifier that is as good as one of c_y = 0."""
    points = _line(key, class_, **at).coordinates
    return float(points[points[:, 1].argmin(), 0])


def _same(numbers: Sequence[float]) -> bool:
    return max(numbers) - min(numbers) < CLOSE


def _shown(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.3f}" for number in numbers)


DATA = "data/beyond_ap_tables.json"
CHINESE_DATA = "data/chinese_tables.json"
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
    english, chinese = _data(DATA), _data(CHINESE_DATA)
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


def _values_of(models: Mapping[str, Any], others: Sequence[str]) -> dict[str, Array]:
    """Return the printed values of R' and of other indices, by name."""
    return {name: np.array(models[name]) for name in ("r_prime", *others)}


def _number(value: float | None) -> float:
    """Return a value, NaN where it is undefined, which is near to no printed one."""
    return np.nan if value is None else value


def _of_models(models: dict[str, Any]) -> Iterator[PrintedResult]:
    """Correlate the printed values of ten models; the paper has no tables of them."""
    printed = models["agreement_with_r_prime"]
    others = list(printed["correlation"])
    values = _values_of(models, others)
    pairs = {pair.b: pair for pair in agreements(values) if pair.a == "r_prime"}
    for name, published in printed["correlation"].items():
        label = f"Pearson correlation of r_prime and {KEYS.get(name, name)}"
        yield PrintedResult("Table 6", label, None, published, _number(pairs[name].pearson))
    for name, published in printed["rmse"].items():
        label = f"root mean squared difference of r_prime and {KEYS.get(name, name)}"
        yield PrintedResult("Table 6", label, None, published, _number(pairs[name].rmse))
