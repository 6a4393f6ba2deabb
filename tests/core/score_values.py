"""Scores and their values by key, for tests of the core."""

from typing import Any

import numpy as np

from rprime.core.evaluate import Evaluation, evaluate
from rprime.core.options import Options
from rprime.core.scores.scores import Scores
from rprime.core.table import ConfusionTable
from tests.core.comparison_sides import names, table_of


def softmax(values: Any) -> Any:
    shares = np.exp(values - values.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def drawn(rng: np.random.Generator, n: int, k: int, sharp: float = 1.0) -> Scores:
    """Draw probabilities that are higher for the true class, every class with some items."""
    true = np.append(np.repeat(np.arange(k), 2), rng.integers(0, k, n - 2 * k)).astype(np.uint8)
    values = rng.standard_normal((n, k))
    values[np.arange(n), true] += sharp
    return Scores(true, softmax(values))


def evaluated(scores: Scores, **options: Any) -> Evaluation:
    if "indices" not in options:
        options = {"families": ("all",)} | options
    table = table_of(scores.true, scores.top, scores.k)
    if scores.weights is not None:
        cells = scores.true.astype(np.intp) * scores.k + scores.top
        counts = np.bincount(cells, scores.weights, scores.k**2).reshape(scores.k, scores.k)
        table = ConfusionTable.dense(counts, weighted=True)
    return evaluate(table, names(scores.k), Options(**options), scores=scores)


def values(evaluation: Evaluation) -> dict[tuple[str, str], Any]:
    """The values of indices that read scores, NaN where undefined."""
    per_class = zip(evaluation.selection.per_class, evaluation.per_class, strict=True)
    whole = zip(evaluation.selection.overall, evaluation.overall, strict=True)
    return {(e.scope, e.key): v for e, v in (*per_class, *whole) if e.scored}
