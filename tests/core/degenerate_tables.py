"""Random tables, the degenerate ones first, in stacks of one number of classes."""

from collections.abc import Callable

import numpy as np

from rprime.core.arrays import Array

Draw = Callable[[np.random.Generator, int], Array]


def _margin(rng: np.random.Generator, k: int) -> Array:
    """Numbers of items of the classes, some of them 0."""
    sizes = rng.choice([1, 2, 3, 7, 23, 47, 100, 997, 10_000], k)
    return np.asarray(sizes * (rng.random(k) < rng.choice([0.5, 0.8, 1.0])))


def _constant_predictor(rng: np.random.Generator, k: int) -> Array:
    counts = np.zeros((k, k))
    counts[:, rng.integers(k)] = _margin(rng, k)
    return counts


def _one_cell(rng: np.random.Generator, k: int) -> Array:
    counts = np.zeros((k, k))
    counts[tuple(rng.integers(0, k, 2))] = rng.choice([1, 2, 29, 30, 1000])
    return counts


def _emptied(rng: np.random.Generator, k: int) -> Array:
    """Some classes without items, some never predicted."""
    counts = _any(rng, k)
    counts[rng.random(k) < 0.4] = 0
    counts[:, rng.random(k) < 0.4] = 0
    return counts


def _any(rng: np.random.Generator, k: int) -> Array:
    most = rng.choice([2, 4, 12, 60, 1000])
    return rng.integers(0, most, (k, k)) + np.diag(rng.integers(0, 3 * most, k))


def _all_wrong(rng: np.random.Generator, k: int) -> Array:
    counts = _any(rng, k)
    np.fill_diagonal(counts, 0)
    return counts


def _permuted_labels(rng: np.random.Generator, k: int) -> Array:
    return np.diag(_margin(rng, k))[rng.permutation(k)]


def _on_a_border(rng: np.random.Generator, k: int) -> Array:
    """Shares of tenths, as kappa = 1/5 or accuracy = 4/5."""
    size, tenths = rng.choice([10, 30, 70, 1000, 2900]), rng.integers(0, 11)
    right = np.diag(np.full(k, size * tenths // 10))
    wrong = (size - size * tenths // 10) // (k - 1)
    return np.asarray(right + wrong * (1 - np.eye(k)))


KINDS: dict[str, Draw] = {
    "constant predictor": _constant_predictor,
    "constant truth": lambda rng, k: _constant_predictor(rng, k).T,
    "one cell": _one_cell,
    "empty rows and columns": _emptied,
    "outer product": lambda rng, k: np.outer(_margin(rng, k), rng.integers(0, 9, k)),
    "diagonal": lambda rng, k: np.diag(_margin(rng, k)),
    "all wrong": _all_wrong,
    "permuted labels": _permuted_labels,
    "on a border": _on_a_border,
    "nearly empty": lambda rng, k: _any(rng, k) * (rng.random((k, k)) < 0.3),
    "any": _any,
}


def stacks(seed: int, number: int, sizes: tuple[int, ...] = (2, 3, 4, 9)) -> list[Array]:
    """Draw about so many tables of whole counts, one stack (n, k, k) for each number of classes."""
    rng = np.random.default_rng(seed)
    rounds = max(number // (len(KINDS) * len(sizes)), 1)
    return [
        np.array([draw(rng, k) for _ in range(rounds) for draw in KINDS.values()], dtype=np.float64)
        for k in sizes
    ]


def omissions(seed: int, counts: Array) -> tuple[Array, Array]:
    """Draw unclassified and spurious items of each class, (n, k) each, none in most tables."""
    rng = np.random.default_rng(seed)
    items = rng.choice([0, 0, 0, 1, 7, 40], (2, *counts.shape[:-1]))
    items[rng.random((2, len(counts))) < 0.6] = 0
    return items[0].astype(np.float64), items[1].astype(np.float64)
