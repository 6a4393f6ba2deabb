"""The indices that are rational in the cells, in exact fractions, written from their definitions.

An implementation of its own: it shares no code with `rprime`, only the keys of the catalog. A value
is None where a denominator is 0. Roots of rational numbers are `Root`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

Number = Any
"""A fraction, or None."""


@dataclass(frozen=True)
class Root:
    """A signed root of a fraction: sign(square) |square|^(1 / order), order 2 or 4."""

    square: Fraction
    order: int = 2

    def __float__(self) -> float:
        """Return the nearest float, but for the last digits."""
        top, bottom = abs(self.square.numerator), self.square.denominator
        scaled = top * 10**120 // bottom
        for _ in range(self.order // 2):
            scaled = isqrt(scaled)
        size = Fraction(scaled, 10 ** (120 // self.order))
        return float(size if self.square >= 0 else -size)


def ratio(numerator: Any, denominator: Any) -> Number:
    """Divide; None by 0."""
    return None if denominator == 0 else Fraction(numerator) / Fraction(denominator)


def root(square: Number, order: int = 2, sign: int = 1) -> Root | None:
    """Take a root of a number that may be undefined."""
    return None if square is None else Root(sign * square, order)


@dataclass(frozen=True)
class OneClass:
    """The counts of one class against the rest."""

    tp: Fraction
    fn: Fraction
    fp: Fraction
    tn: Fraction
    total: Fraction
    beta: Fraction = Fraction(1)

    @property
    def m(self) -> Fraction:
        """Items."""
        return self.tp + self.fn

    @property
    def s(self) -> Fraction:
        """Predictions."""
        return self.tp + self.fp

    @property
    def others(self) -> Fraction:
        """Items of other classes."""
        return self.fp + self.tn

    @property
    def rejected(self) -> Fraction:
        """Items that are not predicted as the class."""
        return self.fn + self.tn


def _mean(*parts: Number) -> Number:
    return None if None in parts else sum(parts, Fraction(0)) / len(parts)


def _sum(*parts: Number) -> Number:
    return None if None in parts else sum(parts, Fraction(0))


def _product(*parts: Number) -> Number:
    result = Fraction(1)
    for part in parts:
        if part is None:
            return None
        result *= part
    return result


def _minus(number: Number) -> Number:
    return None if number is None else -number


def _f_beta(c: OneClass) -> Number:
    square = c.beta * c.beta
    return ratio((1 + square) * c.tp, (1 + square) * c.tp + square * c.fn + c.fp)


def _correlation(c: OneClass) -> Root | None:
    cross = c.tp * c.tn - c.fp * c.fn
    return root(
        ratio(cross * cross, c.m * c.s * c.others * c.rejected), sign=-1 if cross < 0 else 1
    )


def _quotient(above: Number, below: Number) -> Number:
    return None if above is None or below is None else ratio(above, below)


RATES: dict[str, Callable[[OneClass], Any]] = {
    "r_prime": lambda c: _sum(ratio(c.tp, c.m), _minus(ratio(c.s - c.m, c.total))),
    "r": lambda c: _sum(ratio(c.tp, c.m), _minus(ratio(c.s, c.total))),
    "recall": lambda c: ratio(c.tp, c.m),
    "precision": lambda c: ratio(c.tp, c.s),
    "specificity": lambda c: ratio(c.tn, c.others),
    "negative_predictive_value": lambda c: ratio(c.tn, c.rejected),
    "false_positive_rate": lambda c: ratio(c.fp, c.others),
    "false_negative_rate": lambda c: ratio(c.fn, c.m),
    "false_discovery_rate": lambda c: ratio(c.fp, c.s),
    "false_omission_rate": lambda c: ratio(c.fn, c.rejected),
    "prevalence": lambda c: ratio(c.m, c.total),
    "predicted_prevalence": lambda c: ratio(c.s, c.total),
    "f1": lambda c: ratio(2 * c.tp, c.m + c.s),
    "f_beta": _f_beta,
    "jaccard": lambda c: ratio(c.tp, c.tp + c.fp + c.fn),
    "kulczynski": lambda c: _mean(ratio(c.tp, c.m), ratio(c.tp, c.s)),
    "fowlkes_mallows": lambda c: root(_product(ratio(c.tp, c.m), ratio(c.tp, c.s))),
    "icsi": lambda c: _sum(ratio(c.tp, c.m), ratio(c.tp, c.s), Fraction(-1)),
    "informedness": lambda c: _sum(ratio(c.tp, c.m), ratio(c.tn, c.others), Fraction(-1)),
    "markedness": lambda c: _sum(ratio(c.tp, c.s), ratio(c.tn, c.rejected), Fraction(-1)),
    "class_mcc": _correlation,
    "class_balanced_accuracy": lambda c: _mean(ratio(c.tp, c.m), ratio(c.tn, c.others)),
    "g_mean": lambda c: root(_product(ratio(c.tp, c.m), ratio(c.tn, c.others))),
    "positive_likelihood_ratio": lambda c: _quotient(ratio(c.tp, c.m), ratio(c.fp, c.others)),
    "negative_likelihood_ratio": lambda c: _quotient(ratio(c.fn, c.m), ratio(c.tn, c.others)),
    "diagnostic_odds_ratio": lambda c: ratio(c.tp * c.tn, c.fp * c.fn),
    "lift": lambda c: ratio(c.total * c.tp, c.m * c.s),
    "conditional_kappa_true": lambda c: ratio(c.total * c.tp - c.m * c.s, c.m * (c.total - c.s)),
    "conditional_kappa_predicted": lambda c: ratio(
        c.total * c.tp - c.m * c.s, c.s * (c.total - c.m)
    ),
    "class_quantity_disagreement": lambda c: ratio(abs(c.m - c.s), c.total),
    "class_allocation_disagreement": lambda c: ratio(2 * min(c.fp, c.fn), c.total),
    "true_positives": lambda c: c.tp,
    "false_positives": lambda c: c.fp,
    "false_negatives": lambda c: c.fn,
    "true_negatives": lambda c: c.tn,
    "detection_rate": lambda c: ratio(c.tp, c.total),
    "class_accuracy": lambda c: ratio(c.tp + c.tn, c.m + c.others),
    "class_error_rate": lambda c: ratio(c.fp + c.fn, c.m + c.others),
    "class_kappa": lambda c: ratio(
        2 * (c.tp * c.tn - c.fp * c.fn), c.s * c.others + c.m * c.rejected
    ),
    "yule_q": lambda c: ratio(c.tp * c.tn - c.fp * c.fn, c.tp * c.tn + c.fp * c.fn),
    "braun_blanquet": lambda c: ratio(c.tp, max(c.m, c.s)),
    "overlap_coefficient": lambda c: ratio(c.tp, min(c.m, c.s)),
    "sorgenfrei": lambda c: _product(ratio(c.tp, c.m), ratio(c.tp, c.s)),
    "quadratic_mean": lambda c: root(
        _mean(
            _product(ratio(c.tp, c.m), ratio(c.tp, c.m)),
            _product(ratio(c.tp, c.s), ratio(c.tp, c.s)),
        )
    ),
}
CLASSIFIED = {
    *("class_mcc", "lift", "conditional_kappa_true", "conditional_kappa_predicted", "class_kappa"),
    *("class_quantity_disagreement", "class_allocation_disagreement", "yule_q"),
    "absolute_rank_error",
}
"""Keys of the indices of the classified items."""
WITHOUT_AVERAGES = {
    *("true_positives", "false_positives", "false_negatives", "true_negatives"),
    *("prevalence", "predicted_prevalence", "share_of_errors", "lift"),
    *("positive_likelihood_ratio", "negative_likelihood_ratio", "diagnostic_odds_ratio"),
    *("class_quantity_disagreement", "class_allocation_disagreement"),
}
NEVER_PREDICTED: dict[str, Callable[[OneClass], Number]] = {
    "precision": lambda _: Fraction(0),
    "false_discovery_rate": lambda _: Fraction(1),
    "kulczynski": lambda _: Fraction(0),
    "fowlkes_mallows": lambda _: Fraction(0),
    "icsi": lambda _: Fraction(-1),
    "markedness": lambda c: _minus(ratio(c.fn, c.rejected)),
    "overlap_coefficient": lambda _: Fraction(0),
    "sorgenfrei": lambda _: Fraction(0),
    "quadratic_mean": lambda _: Fraction(0),
}
"""What a class that has items and is never predicted adds to averages."""
RATIONAL_MEANS = [key for key in RATES if key not in {"fowlkes_mallows", "class_mcc", "g_mean"}]


@dataclass(frozen=True)
class ExactTable:
    """One table of whole numbers."""

    counts: Sequence[Sequence[int]]
    unclassified: Sequence[int]
    spurious: Sequence[int]
    beta: Fraction = Fraction(1)

    @property
    def k(self) -> int:
        """Number of classes."""
        return len(self.counts)

    @property
    def classified(self) -> "ExactTable":
        """The cells alone."""
        return ExactTable(self.counts, [0] * self.k, [0] * self.k, self.beta)

    def support(self) -> list[Fraction]:
        """Items of each class."""
        return [
            Fraction(sum(row) + u) for row, u in zip(self.counts, self.unclassified, strict=True)
        ]

    def predicted(self) -> list[Fraction]:
        """Predictions of each class."""
        columns = zip(*self.counts, strict=True)
        return [Fraction(sum(c) + s) for c, s in zip(columns, self.spurious, strict=True)]

    def one(self, i: int) -> OneClass:
        """One class against the rest."""
        m, s, tp = self.support()[i], self.predicted()[i], Fraction(self.counts[i][i])
        total = sum(self.support(), Fraction(0))
        tn = total + sum(self.spurious) - m - s + tp
        return OneClass(tp, m - tp, s - tp, tn, total, self.beta)

    def classes(self) -> dict[str, list[Any]]:
        """The per-class values of all rational indices and their roots."""
        inside = self.classified
        errors = [self.one(i).fn for i in range(self.k)]
        shares = [ratio(wrong, sum(errors)) for wrong in errors]
        distances = [
            sum(abs(i - j) * Fraction(n) for j, n in enumerate(row))
            for i, row in enumerate(self.counts)
        ]
        ranks = [ratio(d, m) for d, m in zip(distances, inside.support(), strict=True)]
        return {"share_of_errors": shares, "absolute_rank_error": ranks} | {
            key: [rate((inside if key in CLASSIFIED else self).one(i)) for i in range(self.k)]
            for key, rate in RATES.items()
        }

    def averages(self) -> dict[str, Number]:
        """The macro and weighted averages of the rational indices."""
        averages: dict[str, Number] = {}
        support = self.support()
        for key, values in self.classes().items():
            if key in WITHOUT_AVERAGES:
                continue
            table = self.classified if key in CLASSIFIED else self
            parts: list[Number] = []
            for i, value in enumerate(values):
                c = self.one(i)
                if value is None and c.m and not c.s and key in NEVER_PREDICTED:
                    parts.append(NEVER_PREDICTED[key](c))
                else:
                    parts.append(value)
            if any(isinstance(part, Root) for part in parts):
                continue
            inside = table.support()
            there = [p for p, m in zip(parts, inside, strict=True) if p is not None and m]
            averages[f"macro_{key}"] = ratio(sum(there), len(there))
            pairs = [(p, m) for p, m in zip(parts, support, strict=True) if m]
            sums = _sum(*(_product(p, m) for p, m in pairs))
            averages[f"weighted_{key}"] = None if sums is None else ratio(sums, sum(support))
        return averages

    def micro(self) -> dict[str, Number]:
        """The same ratios on the pooled counts."""
        parts = [self.one(i) for i in range(self.k)]
        sums = {name: sum(getattr(c, name) for c in parts) for name in ("tp", "fn", "fp", "tn")}
        pooled = OneClass(**sums, total=parts[0].total, beta=self.beta)
        keys = (
            *("recall", "precision", "specificity", "negative_predictive_value", "f1", "f_beta"),
            *("false_positive_rate", "false_negative_rate", "false_discovery_rate"),
            *("false_omission_rate", "jaccard"),
        )
        return {f"micro_{key}": RATES[key](pooled) for key in keys}

    def overall(self) -> dict[str, Any]:
        """The overall values that are rational in the cells, and roots of such."""
        return {
            **self.averages(),
            **self.micro(),
            **self._shares(),
            **self.classified.agreement(),
            **self.classified.association(),
            **self.classified.ordinal(),
        }

    def ordinal(self) -> dict[str, Any]:
        """Errors in ranks, and the rank correlations by all pairs of items."""
        m, s, cells = (
            self.support(),
            self.predicted(),
            [(i, j) for i in range(self.k) for j in range(self.k)],
        )
        w, counts = sum(m), {(i, j): Fraction(self.counts[i][j]) for i, j in cells}
        surplus = sum(
            counts[a] * counts[b] * (1 if (a[0] - b[0]) * (a[1] - b[1]) > 0 else -1)
            for a in cells
            for b in cells
            if a[0] != b[0] and a[1] != b[1]
        )
        true, predicted = (w * w - sum(x * x for x in margin) for margin in (m, s))
        square = ratio(surplus * surplus, true * predicted)
        return {
            "mean_absolute_rank_error": ratio(sum(abs(i - j) * counts[i, j] for i, j in cells), w),
            "off_by_one_accuracy": ratio(sum(counts[i, j] for i, j in cells if abs(i - j) <= 1), w),
            "somers_d": ratio(surplus, true),
            "kendall_tau_b": root(square, sign=-1 if surplus < 0 else 1),
        }

    def _shares(self) -> dict[str, Any]:
        m, s = self.support(), self.predicted()
        w, right = sum(m), Fraction(sum(self.counts[i][i] for i in range(self.k)))
        answered = Fraction(sum(map(sum, self.counts)))
        wrong = sum(s) - right
        recalls = [ratio(self.counts[i][i], m[i]) for i in range(self.k) if m[i]]
        precisions = [ratio(self.counts[i][i], s[i]) or Fraction(0) for i in range(self.k) if m[i]]
        recall, precision = (ratio(sum(x), len(x)) for x in (recalls, precisions))
        harmonic: Number = None
        if recall is not None and precision is not None:
            both = recall + precision
            harmonic = 2 * recall * precision / both if both else Fraction(0)
        classes = len(recalls)
        return {
            "accuracy": ratio(right, w),
            "error_rate": ratio(w - right, w),
            "r_prime": ratio(w - wrong, w),
            "coverage": ratio(answered, w),
            "accuracy_on_answered": ratio(right, answered),
            "no_information_rate": ratio(max(m), w),
            "balanced_accuracy": recall,
            "f1_of_macro_averages": harmonic,
            "csi": None if recall is None or precision is None else recall + precision - 1,
            "adjusted_balanced_accuracy": None
            if recall is None
            else ratio(recall - Fraction(1, classes), 1 - Fraction(1, classes)),
        }

    def agreement(self) -> dict[str, Any]:
        """Agreement corrected for chance, and the disagreements."""
        m, s, k = self.support(), self.predicted(), self.k
        a = [Fraction(self.counts[i][i]) for i in range(k)]
        w, right = sum(m), sum(a)
        products = sum(x * y for x, y in zip(m, s, strict=True))
        true, predicted = (sum(x * x for x in margin) for margin in (m, s))
        attainable = sum(map(min, m, s))
        both = ratio(true + 2 * products + predicted, 4 * w * w)
        observed = ratio(right, w)
        agreement: dict[str, Any] = {
            "kappa": ratio(w * right - products, w * w - products),
            "kappa_max": ratio(w * attainable - products, w * w - products),
            "scott_pi_true_margin": ratio(w * right - true, w * w - true),
            "peirce_skill_score": ratio(w * right - products, w * w - true),
            "mcc": root(
                ratio((w * right - products) ** 2, (w * w - true) * (w * w - predicted)),
                sign=-1 if w * right < products else 1,
            ),
            "bangdiwala_b": None
            if not w
            else (ratio(sum(x * x for x in a), products) if products else Fraction(0)),
            "quantity_disagreement": ratio(
                sum(abs(x - y) for x, y in zip(m, s, strict=True)), 2 * w
            ),
            "allocation_disagreement": ratio(attainable - right, w),
        }
        chance = {
            "scott_pi": both,
            "maxwell_re": Fraction(1, k),
            "gwet_ac1": None if both is None or k == 1 else (1 - both) / (k - 1),
        }
        for key, share in chance.items():
            defined = observed is not None and share is not None
            agreement[key] = ratio(observed - share, 1 - share) if defined else None
        alpha = None if both is None else ratio((2 * w - 1) * (1 - observed), 2 * w * (1 - both))
        agreement["krippendorff_alpha"] = None if alpha is None else 1 - alpha
        for key, power in (("linear_weighted_kappa", 1), ("quadratic_weighted_kappa", 2)):
            seen = [
                (abs(i - j) ** power, self.counts[i][j], m[i] * s[j])
                for i in range(k)
                for j in range(k)
            ]
            loss = ratio(w * sum(v * n for v, n, _ in seen), sum(v * e for v, _, e in seen))
            agreement[key] = None if loss is None else 1 - loss
        pairs = [
            (self.counts[i][j], self.counts[j][i])
            for i in range(k)
            for j in range(i)
            if self.counts[i][j] + self.counts[j][i]
        ]
        bowker = sum((Fraction((x - y) ** 2, x + y) for x, y in pairs), Fraction(0))
        return agreement | {"bowker_chi2": bowker if w else None}

    def weighted_kappa(self, weights: Sequence[Sequence[int]]) -> Number:
        """Agreement corrected for chance, with any weights of the confusions."""
        m, s, w = self.support(), self.predicted(), sum(self.support())
        cells = [(i, j) for i in range(self.k) for j in range(self.k)]
        seen = sum(weights[i][j] * Fraction(self.counts[i][j]) for i, j in cells)
        loss = ratio(w * seen, sum(weights[i][j] * m[i] * s[j] for i, j in cells))
        return None if loss is None else 1 - loss

    def costs(self, cost: Sequence[Sequence[int]]) -> dict[str, Number]:
        """The mean cost, and that as a share of the cheapest constant prediction.

        A last column, if there is one more than classes, is the cost of unclassified items.
        """
        priced = self if len(cost[0]) > self.k else self.classified
        rows = [[*row, u] for row, u in zip(priced.counts, priced.unclassified, strict=True)]
        spent = sum(
            c * Fraction(n)
            for prices, row in zip(cost, rows, strict=True)
            for c, n in zip(prices, row, strict=False)
        )
        m = priced.support()
        cheapest = min(
            sum(prices[j] * items for prices, items in zip(cost, m, strict=True))
            for j in range(self.k)
        )
        return {
            "expected_cost": ratio(spent, sum(m)),
            "normalized_expected_cost": ratio(spent, cheapest),
        }

    def association(self) -> dict[str, Any]:
        """Measures of association and of pairs of items."""
        m, s, k = self.support(), self.predicted(), self.k
        w = sum(m)
        rows, columns = (sum(x > 0 for x in margin) for margin in (m, s))
        cells = [(Fraction(self.counts[i][j]), i, j) for i in range(k) for j in range(k)]
        squared = ratio(sum(n * n / (m[i] * s[j]) for n, i, j in cells if n), 1)
        chi2 = None if not w or squared is None else w * (squared - 1)
        free = (rows - 1) * (columns - 1)
        by_column = sum(max(row[j] for row in self.counts) for j in range(k))
        by_row = sum(max(row) for row in self.counts)
        guess = max(m), max(s)
        over = (sum(n * n / s[j] for n, _, j in cells if n), sum(x * x for x in m))
        across = (sum(n * n / m[i] for n, i, _ in cells if n), sum(x * x for x in s))
        pairs = [sum(x * (x - 1) for x in part) for part in (m, s, [n for n, _, _ in cells])]
        true, predicted, both = pairs
        every = w * (w - 1)
        same = true == predicted == both
        chance = ratio(true * predicted, every)
        measures: dict[str, Any] = {
            "chi2": chi2,
            "phi": root(_quotient(chi2, w)),
            "cramers_v": root(_quotient(chi2, w * min(rows - 1, columns - 1))),
            "tschuprows_t": root(None if chi2 is None else ratio((chi2 / w) ** 2, free), order=4),
            "contingency_coefficient": None if chi2 is None else root(ratio(chi2, chi2 + w)),
            "chi2_degrees_of_freedom": Fraction(free) if w else None,
            "goodman_kruskal_lambda_true": ratio(by_column - guess[0], w - guess[0]),
            "goodman_kruskal_lambda_predicted": ratio(by_row - guess[1], w - guess[1]),
            "goodman_kruskal_lambda_symmetric": ratio(
                by_column + by_row - sum(guess), 2 * w - sum(guess)
            ),
            "goodman_kruskal_tau_true": ratio(w * over[0] - over[1], w * w - over[1]),
            "goodman_kruskal_tau_predicted": ratio(w * across[0] - across[1], w * w - across[1]),
        }
        if not w:
            return measures
        return measures | {
            "rand_index": Fraction(1) if same else 1 - (true + predicted - 2 * both) / every,
            "adjusted_rand_index": Fraction(1)
            if same
            else ratio(both - chance, (true + predicted) / 2 - chance),
            "pair_fowlkes_mallows": Fraction(1)
            if same
            else (root(ratio(both * both, true * predicted)) if both else Fraction(0)),
        }
