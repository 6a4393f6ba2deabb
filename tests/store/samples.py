"""Evaluations to store."""

import hashlib
from concurrent.futures import Future
from dataclasses import fields
from typing import Any

import numpy as np

from rprime.core.items import Items, table_of
from rprime.core.scores.curves import ScoreSummary
from rprime.core.scores.scores import Scores
from rprime.core.slices.slices import SliceColumn, Slices
from rprime.core.table import ConfusionTable
from rprime.store import Idempotency, NewEvaluation, Outcome, Store, Stored
from rprime.store.packing import Columns

LABELS = ("cat", "dog", "naïve bird")
FINGERPRINT = "ab" * 32


def table(seed: int = 0, k: int = 3) -> ConfusionTable:
    generator = np.random.default_rng(seed)
    return ConfusionTable.dense(generator.integers(0, 40, (k, k)) + 300 * np.eye(k))


def sparse_table(seed: int = 0, k: int = 3) -> ConfusionTable:
    generator = np.random.default_rng(seed)
    codes = generator.choice(k * k, 4, replace=False)
    counts = generator.integers(1, 70_000, 4)
    return ConfusionTable.sparse(codes // k, codes % k, counts, k)


def kept_items(n: int = 50, k: int = 3) -> Items:
    generator = np.random.default_rng(n)
    true = generator.integers(0, k, n).astype(np.uint8)
    predicted = np.where(generator.random(n) < 0.8, true, generator.integers(0, k + 1, n))
    groups = generator.integers(0, 9, n).astype(np.uint16)
    weights = generator.random(n)
    ids = generator.integers(0, 1 << 63, n).astype(np.uint64)
    return Items(true, predicted.astype(np.uint8), groups, weights, ids)


def score_summary(n: int = 60, k: int = 3) -> ScoreSummary:
    generator = np.random.default_rng(n)
    return ScoreSummary.of(Scores(np.arange(n) % k, generator.dirichlet(np.ones(k), n)))


def slices(seed: int = 0, k: int = 3) -> Slices:
    """Slices of two columns and their crossing, their columns not in the order of their names."""
    generator = np.random.default_rng(seed)
    regions, devices = ("EU", "US"), ("ios", "w=b")
    names = [{"region": r} for r in regions] + [{"device": d} for d in devices]
    names += [{"region": r, "device": d} for r in regions for d in devices]
    counts = generator.integers(0, 400, (len(names), k, k))
    return Slices(tuple(names), ConfusionTable.dense(counts, generator.integers(0, 9, (8, k))))


def sliced(n: int = 60, k: int = 3) -> dict[str, Any]:
    """Items with the slices of two columns, one of them with items in no slice."""
    generator = np.random.default_rng(n)
    true, predicted = generator.integers(0, k, n), generator.integers(0, k + 1, n)
    values = {"region": ("EU", "US"), "büro": ("1", "2", "nobody")}
    columns = {
        name: SliceColumn(categories, generator.integers(0, size, n).astype(np.uint8))
        for (name, categories), size in zip(values.items(), (3, 2), strict=True)
    }
    crossing = tuple(columns)
    slices = Slices.of_items(columns, [crossing], true * (k + 1) + predicted, k)
    items = Items(true.astype(np.uint8), predicted.astype(np.uint8))
    return {"items": items, "slices": slices, "table": table_of(items, k)}


def same_columns(first: Columns, other: Columns) -> bool:
    """Whether the items are in the same slices."""
    pairs = zip(first.items(), other.items(), strict=True)
    return all(
        (name, a.values) == (named, b.values)
        and np.array_equal(np.minimum(a.codes, len(a.values)), b.codes)
        for (name, a), (named, b) in pairs
    )


def digest(text: object) -> str:
    return "sha256:" + hashlib.sha256(str(text).encode()).hexdigest()


def evaluation(number: int = 0, **overrides: Any) -> NewEvaluation:
    members: dict[str, Any] = {
        "project": "animals",
        "labels": LABELS,
        "table": table(number),
        "input_digest": digest(number),
        "engine_version": "0.1.0",
        "version": f"1.{number}",
    }
    items, k = overrides.get("items"), len(overrides.get("labels", LABELS))
    if items is not None and max(items.true.max() + 1, items.predicted.max()) <= k:
        members["table"] = table_of(items, k)
    return NewEvaluation(**members | overrides)


def put(
    store: Store, new: NewEvaluation, *, idempotency: Idempotency | None = None
) -> Future[Stored]:
    """Store an evaluation; the future resolves when all of it is on the disk."""
    outcomes = store.put_many([store.pack(new, idempotency=idempotency)])
    future: Future[Stored] = Future()
    future.set_running_or_notify_cancel()

    def settle(batch: Future[list[Outcome]]) -> None:
        (outcome,) = batch.result()
        if isinstance(outcome, Stored):
            future.set_result(outcome)
        else:
            future.set_exception(outcome)

    outcomes.add_done_callback(settle)
    return future


def same_table(first: ConfusionTable, other: ConfusionTable) -> bool:
    """Whether two tables hold the same counts, dense or sparse alike."""
    pairs: list[tuple[Any, Any]] = [
        (first.cells.counts, other.cells.counts),
        (first.unclassified, other.unclassified),
        (first.spurious, other.spurious),
        (getattr(first.cells, "rows", None), getattr(other.cells, "rows", None)),
        (getattr(first.cells, "columns", None), getattr(other.cells, "columns", None)),
    ]
    return (
        type(first.cells) is type(other.cells)
        and first.weighted == other.weighted
        and all(a is b or np.array_equal(a, b) for a, b in pairs)
    )


def same_items(first: Items, other: Items) -> bool:
    """Whether two sets of items have the same codes, groups, weights and ids."""
    for field in fields(Items):
        a, b = getattr(first, field.name), getattr(other, field.name)
        if (a is None) != (b is None) or not (a is b or np.array_equal(a, b)):
            return False
    return True


def same_slices(first: Slices, other: Slices | None) -> bool:
    """Whether two sets of slices have the same names, in their order, and equal tables."""
    return (
        other is not None
        and [list(name.items()) for name in first.names] == [list(n.items()) for n in other.names]
        and same_table(first.tables, other.tables)
    )


def same_scores(first: ScoreSummary, other: ScoreSummary | None) -> bool:
    """Whether two summaries are equal, but for the last digits of thresholds."""
    return other is not None and all(
        np.allclose(a, b, rtol=1e-6, atol=0, equal_nan=True)
        for a, b in zip(vars(first).values(), vars(other).values(), strict=True)
    )
