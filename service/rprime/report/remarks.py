"""Remarks: what must be known beside a value, such as the items or classes that it leaves out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rprime.core.arrays import Array
from rprime.core.evaluate import Evaluation
from rprime.core.index import Index
from rprime.core.quantities import plural
from rprime.report.decimals import percent

MOST_NAMED = 5
"""Classes named in one remark; the others are counted."""
Kind = Literal["classified", "excluded", "counted_as_zero", "options"]
MARK: dict[Kind, str] = {"classified": "†", "excluded": "‡", "counted_as_zero": "‡", "options": "¶"}


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark on a value: some words, then the names of classes.

    `classified`: the index is computed on the classified items alone; `excluded`: an average
    leaves classes out; `counted_as_zero`: it counts the precision of classes as 0; `options`:
    in a list, those of one evaluation are not the default.
    """

    kind: Kind
    before: str
    labels: tuple[str, ...] = ()
    unnamed: int = 0
    """How many more classes there are than named."""

    @property
    def mark(self) -> str:
        """What stands beside the value."""
        return MARK[self.kind]

    @property
    def classes(self) -> int:
        """How many classes it names or counts."""
        return len(self.labels) + self.unnamed

    def text(self, write: Callable[[str], str]) -> str:
        """Return it as a sentence without a full stop; `write` makes a class name fit to show."""
        named = ", ".join(map(write, self.labels))
        more = f" and {plural(self.unnamed, 'class')} more" if self.unnamed else ""
        return f"{self.before}{named}{more}"


Remarks = tuple[Remark, ...]


def remarks_of(evaluation: Evaluation) -> Callable[[Index], Remarks]:
    """Return what tells the remarks on each index of an evaluation."""
    universe, values, labels = _universe(evaluation), evaluation.values, evaluation.labels
    left_out, counted = ~evaluation.at(values.defined), values.counted_as_zero
    zero = None if counted is None else evaluation.at(counted)

    def remarks(entry: Index) -> Remarks:
        notes = [universe] if universe and classified_only(entry, evaluation) else []
        for key in entry.of if entry.reads in ("macro", "weighted", "means") else ():
            row = values.selection.place[key]
            if zero is not None:
                notes += _named("counted_as_zero", "with a precision of 0 for ", zero[row], labels)
            # A class without items weighs nothing in a weighted average.
            if entry.reads != "weighted":
                notes += _named("excluded", "mean without ", left_out[row], labels)
        return tuple(dict.fromkeys(notes))

    return remarks


def classified_only(entry: Index, evaluation: Evaluation) -> bool:
    """Whether an index leaves out unclassified items that the evaluation has."""
    table, cost = evaluation.table, evaluation.options.cost
    if not table.has_omissions:
        return False
    priced = entry.needs == "cost" and cost is not None and cost.shape[-1] == table.k
    return priced or entry.universe == "classified"


def marks(remarks: Remarks) -> str:
    """Return the marks of remarks, to stand beside a value."""
    return "".join(dict.fromkeys(remark.mark for remark in remarks))


def _universe(evaluation: Evaluation) -> Remark | None:
    table = evaluation.table
    if not table.has_omissions:
        return None
    if table.unclassified is None or not table.unclassified.any() or not table.total:
        return Remark("classified", "without spurious predictions")
    share = 1 - float(table.unclassified.sum() / table.total)
    return Remark("classified", f"on the classified items alone, {percent(round(share, 4))} of all")


def _named(kind: Kind, before: str, where: Array, labels: Sequence[str]) -> list[Remark]:
    places = np.flatnonzero(where).tolist()
    if not places:
        return []
    named = tuple(labels[i] for i in places[:MOST_NAMED])
    return [Remark(kind, before, named, len(places) - len(named))]
