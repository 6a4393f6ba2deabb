"""What is known of a rule before it is tested: its results among the rows of its evidence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rprime.core.arrays import FloatArray
from rprime.core.comparison.compare import Pairing
from rprime.core.comparison.difference import REASONS, Difference
from rprime.core.comparison.mover import MoverLimits
from rprime.core.gates.rules import Rule
from rprime.core.gates.sliced import Slice
from rprime.core.gates.verdict import Against, Codes, VerdictCode

Statistic = Difference | MoverLimits
"""Values or differences with limits and p-values, shape (..., n)."""
Positions = NDArray[np.intp]
CLASSES_DIFFER = REASONS.index("classes_differ")


@dataclass(frozen=True)
class Rows:
    """The results of a rule among the rows of its evidence: one for each class, or only one.

    `labels` are their classes, None for a single number; `positions` their rows, -1 where there is
    none; `left_out` the classes that the rule leaves out because they have too few items.
    """

    labels: tuple[str | None, ...]
    positions: Positions
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, rule: Rule, known: tuple[str, ...], items: FloatArray, others: tuple[str, ...] = ()
    ) -> "Rows":
        """Choose the classes that a rule is about; "all" means those with items.

        The `known` classes have a row each; `others` are further ones, which "all" leaves out.
        """
        if rule.classes is None:
            return cls.single(exists=items.size > 0 and bool(rule.confusion is None or items[0]))
        count = dict(zip(known, items.tolist(), strict=True))
        everything = rule.classes == "all"
        wanted = known if everything else rule.classes
        out = {n for n in wanted if everything or count.get(n)}
        out = {name for name in out if count[name] < max(rule.min_items, everything)}
        kept = tuple(name for name in wanted if name not in out) or (None,)
        row: dict[str | None, int] = {name: i for i, name in enumerate(known) if count[name]}
        positions = np.array([row.get(name, -1) for name in kept], dtype=np.intp)
        left_out = tuple(name for name in wanted if name in out)
        return cls(kept, positions, left_out + (others if everything else ()))

    @classmethod
    def single(cls, *, exists: bool) -> "Rows":
        """Return the single result of a rule about one number, which may have no row."""
        return cls((None,), np.array([0 if exists else -1], dtype=np.intp))

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


@dataclass(frozen=True, eq=False, kw_only=True)
class Draft:
    """What is known of a rule before it is tested: a column for each row of its evidence.

    `fixed` has codes of `VerdictCode` where no test decides the verdict. `against` is what the
    differences are from, None for values; `slice` the part of the items, None for all. Results
    have `reasons`, empty where the evidence decides, and `methods`; none where nobody asks. What is
    not there has `hints` at the names that may be meant, by the class.
    """

    rule: Rule
    rows: Rows
    statistic: Statistic
    fixed: Codes
    items: FloatArray
    against: Against | None = None
    reasons: tuple[str, ...] = ()
    methods: tuple[str | None, ...] = ()
    pairing: Pairing | None = None
    slice: Slice | None = None
    hints: Mapping[str | None, str] = field(default_factory=dict[str | None, str])

    def at(self, position: int) -> "Draft":
        """Return one table of the last axis of a stack of these."""
        here = (..., position, slice(None))
        return replace(
            self, statistic=self.statistic[here], fixed=self.fixed[here], items=self.items[here]
        )


def draft_of(
    rule: Rule,
    rows: Rows,
    statistic: Statistic,
    items: FloatArray,
    *,
    comparable: bool = True,
    **more: Any,  # noqa: ANN401 (other members of the draft)
) -> Draft:
    """Hold values or differences against the limit of a rule.

    A value that only the candidate lacks is `undefined`; one that the baseline lacks too is no
    evidence, unless it takes scores that were not sent. Differences of sides that are not
    `comparable` decide nothing. `more` are other members of the draft.
    """
    if isinstance(statistic, Difference):
        fixed = _fixed_differences(statistic) if comparable else VerdictCode.not_comparable
    else:
        exists = np.isfinite(statistic.candidate)
        fixed = np.where(exists, VerdictCode.undecided, VerdictCode.undefined)
    codes = np.full(statistic.value.shape, fixed, dtype=np.uint8)
    return Draft(rule=rule, rows=rows, statistic=statistic, fixed=codes, items=items, **more)


def _fixed_differences(known: Difference) -> Codes | VerdictCode:
    """Return the verdicts on differences that no test decides, shape (..., m)."""
    if np.isfinite(known.value).all() and not known.reasons.any():
        return VerdictCode.undecided
    missing = ~np.isfinite(known.value) | known.undefined
    undefined_before = np.isnan(known.baseline) & ~known.undefined
    code = np.where(undefined_before, VerdictCode.inconclusive, VerdictCode.undefined)
    fixed = np.where(missing, code, VerdictCode.undecided)
    return np.where(known.reasons == CLASSES_DIFFER, VerdictCode.not_comparable, fixed)
