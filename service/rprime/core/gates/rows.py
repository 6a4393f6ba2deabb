"""The results of a rule among the rows of its evidence: one row for each class, or only one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import FloatArray
from rprime.core.gates.rules import Rule
from rprime.core.gates.targets import ResultLabels

LabelPositions = NDArray[np.intp]


@dataclass(frozen=True)
class Rows:
    """The results of a rule among the rows of its evidence.

    Parameters
    ----------
    labels
        Of the results.
    positions
        Row of each result, -1 where there is none.
    left_out
        Classes that the rule leaves out: they have too few items.
    """

    labels: ResultLabels
    positions: LabelPositions
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, rule: Rule, known: tuple[str, ...], items: FloatArray, others: tuple[str, ...] = ()
    ) -> "Rows":
        """Choose the classes that a rule is about; "all" means those with items.

        Parameters
        ----------
        known
            The classes that have a row each.
        items
            Of each row.
        others
            Further classes, which "all" leaves out.
        """
        if rule.classes is None:
            exists = items.size > 0 and items[0] > 0
            return cls((None,), np.array([0 if exists else -1], dtype=np.intp))
        count = dict(zip(known, items.tolist(), strict=True))
        everything = rule.classes == "all"
        wanted = known if everything else rule.classes
        out = {n for n in wanted if everything or count.get(n)}
        out = {name for name in out if count[name] < max(rule.min_items, everything)}
        kept: ResultLabels = tuple(name for name in wanted if name not in out) or (None,)
        row: dict[str | None, int] = {name: i for i, name in enumerate(known) if count[name]}
        positions = np.array([row.get(name, -1) for name in kept], dtype=np.intp)
        left_out = tuple(name for name in wanted if name in out)
        return cls(kept, positions, left_out + (others if everything else ()))

    def without(self, labels: tuple[str, ...], few: tuple[int, ...]) -> "Rows":
        """Name the classes that an average leaves out; without any left there is no row."""
        if not few:
            return self
        names = tuple(labels[i] for i in few)
        positions = self.positions if len(few) < len(labels) else np.full_like(self.positions, -1)
        return replace(self, positions=positions, left_out=names)

    def each(self, of_rows: Sequence[str], absent: Callable[[str | None], str]) -> tuple[str, ...]:
        """Return the word for each result."""
        return tuple(
            of_rows[i] if i >= 0 else absent(label)
            for i, label in zip(self.positions, self.labels, strict=True)
        )
