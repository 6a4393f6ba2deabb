"""The catalog as the pages show it: in words, on a small table, and what moves it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import numpy as np
import orjson

from rprime.core.arrays import Array
from rprime.core.catalog import INDICES
from rprime.core.evaluate import evaluate
from rprime.core.index import Index
from rprime.core.index_names import canonical
from rprime.core.intervals.methods import INTERVALS
from rprime.core.options import Options
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import compute
from rprime.report.heat_map import count_table
from rprime.report.marks import Axis
from rprime.report.score_charts import Chart, Line, Panel
from rprime.report.text import decimal, explained
from rprime.report.view import term
from rprime.schemas.report import IndexEntry, index_entry

INVARIANCES = {
    "class_order": "the classes are renamed or reordered",
    "scale": "all counts are multiplied by one factor",
    "prevalence": "the proportions of the true classes change, each class treated as before",
    "own_prevalence": "the proportion of its own class changes, that class treated as before",
    "transposition": "truth and predictions are exchanged",
}
"""What an index may stay the same under, where the classifier stays the same."""
_DRAWN = {
    "roc_auc": "roc",
    "average_precision": "precision_recall",
    "brier_score": "reliability",
    "log_loss": "reliability",
    "expected_calibration_error": "reliability",
    "area_under_risk_coverage": "risk_coverage",
}
"""The figures that show what indices of scores measure, by the ends of their keys."""
_WEIGHT = "The macro average counts each class alike, the weighted one by its items."
_POOL = (
    "The micro average pools the counts of all classes, the macro average counts each class alike."
)
_AVERAGES = {
    "macro": (("weighted", _WEIGHT), ("micro", _POOL)),
    "weighted": (("macro", _WEIGHT),),
    "micro": (("macro", _POOL),),
}
"""What the other averages of an index differ in."""

LABELS = ("A", "B", "C")
COUNTS = np.array([[45.0, 4, 1], [6, 22, 2], [0, 5, 15]])
STEPS = np.linspace(0, 1, 41)


@dataclass(frozen=True)
class CatalogEntry:
    """An index of the catalog."""

    term: dict[str, Any]
    facts: IndexEntry
    index: Index

    @property
    def neighbours(self) -> list[tuple[str, str, str]]:
        """Keys and names of indices that it is taken for, with the difference in a sentence."""
        key, scope = self.index.key, self.facts.scope
        sentences = _said()[scope]
        neighbours = dict(sentences.get(key, {}))
        neighbours |= {other: texts[key] for other, texts in sentences.items() if key in texts}
        for kind, text in _AVERAGES.get(self.index.reads, ()):
            neighbours.setdefault(key.replace(self.index.reads, kind, 1), text)
        names = {other.key: other.name for other in INDICES if other.scope == scope}
        neighbours.pop(key, None)
        return [(other, names[other], text) for other, text in neighbours.items() if other in names]

    @cached_property
    def example(self) -> dict[str, Any] | None:
        """It on a small table, and on tables into which that changes step by step.

        The table as `heat`, the `values` by class, and `plots`: each a chart, what it is against,
        and it in words. None for an index that needs more than a table.
        """
        index = self.index
        if index.scored or index.needs is not None:
            return None
        options = Options(indices=("accuracy",), intervals=False)
        values = np.ravel(_values(index, COUNTS[None]))
        names = ("overall",) if index.scope == "overall" else LABELS
        return {
            "heat": count_table(evaluate(ConfusionTable.dense(COUNTS), LABELS, options)),
            "values": [(name, decimal(value)) for name, value in zip(names, values, strict=True)],
            "plots": [_plot(index, moved, tables) for moved, tables in _changing()],
        }

    def related(self, extent: str) -> list[tuple[str, bool]]:
        """Return the keys of indices that order models the same way, or the other way round.

        The extent is "always", or "same_test_set": among models on one test set. Each key has with
        it whether the two rise together.
        """
        relations = self.facts.properties.relations if self.facts.properties else []
        return [
            (relation.key, relation.rising) for relation in relations if relation.extent == extent
        ]

    @property
    def invariances(self) -> Iterator[tuple[str, bool]]:
        """What happens to the table, and whether the index stays the same."""
        for name, words in INVARIANCES.items():
            holds = getattr(self.facts.properties, name, None)
            if holds is not None:
                yield words, holds

    @property
    def words(self) -> str:
        """What a search looks at, in small letters."""
        f = self.facts
        parts = (f.name, f.key, *f.aliases, f.symbol, f.family, f.description, f.source)
        return " ".join(parts).lower()

    @property
    def interval(self) -> str:
        """How its interval is made."""
        name = self.facts.interval
        return "none" if name is None else INTERVALS[name].words

    @property
    def figure(self) -> str:
        """The name of the figure that shows what it measures, if any."""
        return next((name for end, name in _DRAWN.items() if self.index.key.endswith(end)), "")

    @property
    def undefined(self) -> str:
        """For which reasons it may not exist."""
        return "; ".join(explained(reason) for reason in self.facts.undefined_when)


@cache
def _said() -> dict[str, dict[str, dict[str, str]]]:
    """Read the differences of indices: by scope, and by the keys of both."""
    content = files("rprime").joinpath("data/neighbours.json").read_bytes()
    sentences: dict[str, dict[str, dict[str, str]]] = orjson.loads(content)
    return sentences


@cache
def catalog() -> tuple[CatalogEntry, ...]:
    """Describe every index."""
    return tuple(CatalogEntry(term(index), index_entry(index), index) for index in INDICES)


def entries_of(key: str) -> tuple[CatalogEntry, ...]:
    """Describe the index of a key or an alias, overall and of a class, as far as there are both."""
    return tuple(entry for entry in catalog() if entry.facts.key == canonical(key))


def _changing() -> Iterator[tuple[str, Array]]:
    """Say what changes step by step, and into which tables of as many items."""
    items, total = COUNTS[0].sum(), COUNTS.sum()
    confused = np.tile(COUNTS, (STEPS.size, 1, 1))
    confused[:, 0] = np.outer(1 - STEPS, COUNTS[0]) + np.outer(STEPS, [0, items, 0])
    yield "Share of A that is predicted as B", confused
    share = np.clip(STEPS, 0.01, 0.99)
    factors = np.stack((share / items, *[(1 - share) / (total - items)] * 2), axis=-1)
    frequent = COUNTS * factors[..., None] * total
    yield "Share of A among all items, each class treated as before", frequent


def _values(index: Index, tables: Array) -> Array:
    """Compute an index, shape (n,) or (n, k); NaN where it does not exist."""
    selection = select(Options(indices=(index.key,)))
    computed = compute(ConfusionTable.dense(tables), Options(), selection)
    if index.scope == "overall":
        values = computed.overall[selection.overall_place[index.key]]
    else:
        values = computed.per_class[selection.place[index.key]]
    return np.asarray(np.where(np.isfinite(values), values, np.nan))


def _plot(index: Index, moved: str, tables: Array) -> tuple[Chart, str, str]:
    """Return lines, one a class, against what is moved, and in words where they start and end."""
    values = _values(index, tables).reshape(STEPS.size, -1)[:, :2]
    axis = Axis.around(values.ravel().tolist(), index.range)
    names = LABELS if index.scope == "class" else (index.name,)
    lines, words = [], []
    for style, (name, column) in enumerate(zip(names, values.T, strict=False)):
        defined = np.isfinite(column)
        if defined.any():
            y = column[defined]
            lines.append(Line(f"Class {name}", "", style, STEPS[defined], y))
            words.append(f"{name} from {decimal(float(y[0]))} to {decimal(float(y[-1]))}")
    panel = Panel("", "", "", tuple(lines), top=axis.high, bottom=axis.low)
    said = f"{index.name} against: {moved}. {'; '.join(words)}"
    return Chart("", "", (panel,), (), ()), moved, said
