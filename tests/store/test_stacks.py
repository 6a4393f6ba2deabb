from dataclasses import replace

import numpy as np

from rprime.core.table import ConfusionTable
from rprime.store import Filters, Store, evaluations
from tests.store import samples


def test_a_history_is_one_stack_oldest_first(store: Store) -> None:
    evaluations = [
        samples.evaluation(i, model="m", branch="b", test_set="t", verdict="pass")
        for i in range(30)
    ]
    for new in evaluations:
        samples.put(store, new).result()
    [stack] = store.tables("animals")
    assert stack.ids == tuple(new.id for new in evaluations)
    assert stack.versions == tuple(f"1.{i}" for i in range(30))
    assert stack.labels == samples.LABELS
    assert {*stack.models, *stack.test_sets, *stack.verdicts} == {"m", "t", "pass"}
    for i, new in enumerate(evaluations):
        assert np.array_equal(stack.table.cells.counts[i], new.table.cells.counts)


def test_tables_of_different_kinds_are_apart(store: Store) -> None:
    weighted = ConfusionTable.dense(np.eye(3) * 0.5, weighted=True)
    evaluations = [
        samples.evaluation(0),
        samples.evaluation(1, labels=("x", "y", "z")),
        samples.evaluation(2, table=weighted),
        samples.evaluation(3, table=samples.sparse_table(3)),
        samples.evaluation(4, table=samples.sparse_table(4)),
    ]
    for new in evaluations:
        samples.put(store, new).result()
    parts = list(store.tables("animals"))
    assert sorted(len(stack.ids) for stack in parts) == [1, 1, 1, 2]
    by_id = {i: stack.table[place] for stack in parts for place, i in enumerate(stack.ids)}
    for new in evaluations:
        got, want = by_id[new.id], new.table
        assert got.weighted == want.weighted
        assert np.array_equal(got.support, want.support)
        assert np.array_equal(got.predicted, want.predicted)
        assert np.array_equal(got.correct, want.correct)


def test_omissions_of_some_are_zeros_of_the_others(store: Store) -> None:
    cells = np.arange(9.0).reshape(3, 3)
    tables = [
        ConfusionTable.dense(cells),
        ConfusionTable.dense(cells, np.array([1, 0, 2])),
        ConfusionTable.dense(cells * 100, None, np.array([0, 70_000, 0])),
        ConfusionTable.dense(cells * 1e9, np.array([1, 2, 3]), np.array([4, 5, 6])),
    ]
    for i, table in enumerate(tables):
        samples.put(store, samples.evaluation(i, table=table)).result()
    [stack] = store.tables("animals")
    for i, table in enumerate(tables):
        assert np.array_equal(stack.table.support[i], table.support)
        assert np.array_equal(stack.table.predicted[i], table.predicted)


def test_filters_and_the_newest_ones(store: Store) -> None:
    for i in range(10):
        samples.put(store, samples.evaluation(i, test_set="a" if i % 2 else "b")).result()
    [stack] = store.tables("animals", Filters(test_set="a"), newest=3)
    assert stack.versions == ("1.5", "1.7", "1.9")
    assert list(store.tables("animals", Filters(test_set="c"))) == []


def test_a_history_beyond_the_memory_comes_in_several_stacks(store: Store) -> None:
    k = 1000
    few = [
        samples.evaluation(i, labels=tuple(map(str, range(k))), table=_diagonal(k, i))
        for i in range(10)
    ]
    for new in few:
        samples.put(store, new).result()
    parts = list(store.tables("animals"))
    assert [len(stack.ids) for stack in parts] == [9, 1]
    assert all(len(s.ids) * k * k <= evaluations.MOST_CELLS * 1.1 for s in parts)
    assert float(parts[1].table.cells.counts[0, 5, 5]) == 10


def _diagonal(k: int, number: int) -> ConfusionTable:
    return ConfusionTable.dense(np.eye(k) * (number + 1))


def test_a_slice_has_a_history_of_its_own(store: Store) -> None:
    crossing = (("device", "w=b"), ("region", "US"))
    parts = [samples.slices(i) for i in range(5)]
    less = replace(parts[3], names=parts[3].names[:4], tables=parts[3].tables[[0, 1, 2, 3]])
    for i, slices in enumerate([*parts[:3], less, None, parts[4]]):
        samples.put(store, samples.evaluation(i, slices=slices, model=str(i % 2))).result()
    samples.put(store, samples.evaluation(7, slices=parts[0], project="plants")).result()
    [stack] = store.tables("animals", Filters(slice=crossing))
    assert stack.versions == ("1.0", "1.1", "1.2", "1.5")
    for table, slices in zip(stack.table.cells.counts, (*parts[:3], parts[4]), strict=True):
        assert np.array_equal(table, slices.tables.cells.counts[7])
    [newest] = store.tables("animals", Filters(slice=crossing), newest=2)
    assert newest.ids == stack.ids[2:]
    named = Filters(slice=(("region", "EU"),), model="1")
    assert store.count("animals", named) == 3
    assert [item.version for item in store.page("animals", named).items] == ["1.5", "1.3", "1.1"]
    assert not list(store.tables("animals", Filters(slice=(("region", "Asia"),))))
    assert store.slice_names("animals") == parts[4].names
