"""Measure the indices of scores against sorting alone and against scikit-learn.

    sh .ci/venv python tests/bench/scores.py [--items 1000000] [--classes 10] [--rounds 3]

Everything runs in this process, in turn within every round; printed are the medians of the times
and of the ratios within a round, and the largest memory held beyond the scores themselves.
"""

import argparse
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import metrics

from rprime.core.options import Options
from rprime.core.scores.ranking import rank
from rprime.core.scores.scores import Scores
from rprime.core.selection import select
from rprime.core.table import ConfusionTable
from rprime.core.values import compute

RANKING = (
    "roc_auc",
    "macro_roc_auc",
    "weighted_roc_auc",
    "average_precision",
    "hand_till_auc",
    "top_k_accuracy",
)


def drawn(n: int, k: int) -> Scores:
    """Draw probabilities that are higher for the true class."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, k, n).astype(np.uint8 if k < 256 else np.uint16)
    values = rng.standard_normal((n, k))
    values[np.arange(n), true] += 1.5
    np.exp(values, out=values)
    values /= values.sum(-1, keepdims=True)
    return Scores(true, values)


def fresh(scores: Scores) -> Scores:
    """Forget what was computed."""
    return Scores(scores.true, scores.values)


def ours(scores: Scores, keys: tuple[str, ...] | None) -> Any:
    """Compute indices of scores; None for all of them."""
    table = ConfusionTable.dense(np.eye(scores.k))
    options = Options(indices=keys)
    evaluation = compute(table, options, select(options, scored=True), fresh(scores))
    return evaluation.overall


def sorting(scores: Scores) -> None:
    """Sort the items by each class: what nothing that ranks can do without."""
    for code in range(scores.k):
        np.argsort(scores.values[:, code])


def theirs(scores: Scores) -> None:
    """Compute the same by scikit-learn, with as few calls as it takes."""
    y, s = scores.true, scores.values
    metrics.roc_auc_score(y, s, multi_class="ovr", average=None)
    one_hot = np.eye(scores.k, dtype=np.int8)[y]
    metrics.average_precision_score(one_hot, s, average=None)
    metrics.roc_auc_score(y, s, multi_class="ovo")
    metrics.top_k_accuracy_score(y, s, k=min(5, scores.k - 1), labels=range(scores.k))


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(scores: Scores, rounds: int) -> dict[str, list[float]]:
    """Time everything in turn, some rounds long."""
    calls: dict[str, Callable[[], object]] = {
        "one argsort per class": lambda: sorting(scores),
        "ranking measures": lambda: ours(scores, RANKING),
        "ranking measures with variances": lambda: rank(
            Scores(scores.true, scores.values), influences=True
        ),
        "all indices of scores": lambda: ours(scores, None),
        "ranking measures by scikit-learn": lambda: theirs(scores),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(seconds(call))
    return times


def memory(scores: Scores, keys: tuple[str, ...] | None) -> float:
    """Largest memory held at once beyond the scores, as a multiple of them."""
    tracemalloc.start()
    ours(scores, keys)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / scores.values.nbytes


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    scores = drawn(args.items, args.classes)
    times = measure(scores, args.rounds)
    base = times["one argsort per class"]
    print(f"{args.items} items, {args.classes} classes, {args.rounds} rounds")
    for name, durations in times.items():
        ratio = statistics.median(a / b for a, b in zip(durations, base, strict=True))
        print(f"{name:34} {statistics.median(durations):8.3f} s   {ratio:6.2f} x argsort")
    ranking, sklearn = times["ranking measures"], times["ranking measures by scikit-learn"]
    faster = statistics.median(b / a for a, b in zip(ranking, sklearn, strict=True))
    print(f"faster than scikit-learn: {faster:.1f} times")
    for name, keys in (("ranking measures", RANKING), ("all indices of scores", None)):
        print(f"memory of {name}: {memory(scores, keys):.2f} copies of the scores")


if __name__ == "__main__":
    main()
