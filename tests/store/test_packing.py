from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rprime.core.items import Items
from rprime.core.slices.slices import SliceColumn
from rprime.core.table import ConfusionTable
from rprime.store import new_id, packing
from rprime.store.compression import digest_bytes, digest_text, expand, sealed, squeeze
from rprime.store.errors import StoreNewerError
from tests.store import samples

COUNTS = st.one_of(
    st.integers(0, 255), st.integers(0, 2**53 - 1), st.just(0), st.floats(0, 1e6, width=32)
).map(float)


ID, OTHER = new_id(), new_id()


def unpacked(blob: bytes, k: int) -> ConfusionTable:
    return packing.unpack_table(blob, ID, k)


@st.composite
def tables(draw: st.DrawFn) -> ConfusionTable:
    k = draw(st.integers(1, 6))
    counts = draw(arrays(np.float64, (k, k), elements=COUNTS))
    vectors = [draw(st.none() | arrays(np.float64, k, elements=COUNTS)) for _ in range(2)]
    weighted = draw(st.booleans())
    if draw(st.booleans()):
        return ConfusionTable.dense(counts, *vectors, weighted=weighted)
    rows, columns = np.nonzero(counts)
    return ConfusionTable.sparse(
        rows,
        columns,
        counts[rows, columns],
        k,
        unclassified=vectors[0],
        spurious=vectors[1],
        weighted=weighted,
    )


@given(tables())
def test_a_table_comes_back_as_it_was(table: ConfusionTable) -> None:
    assert samples.same_table(unpacked(packing.pack_table(table, ID), table.k), table)


@pytest.mark.parametrize("k", [50, 300])
def test_large_tables_come_back_and_are_small(k: int) -> None:
    for table in (samples.table(1, k), samples.sparse_table(1, k)):
        blob = packing.pack_table(table, ID)
        assert samples.same_table(unpacked(blob, k), table)
        assert len(blob) < k * k


def test_a_table_of_another_evaluation_is_refused() -> None:
    with pytest.raises(ValueError, match="checksum"):
        packing.unpack_table(packing.pack_table(samples.table(), OTHER), ID, 3)


def test_a_ten_by_ten_table_takes_two_hundred_bytes() -> None:
    assert len(packing.pack_table(samples.table(1, 10), ID)) == 206


@given(
    st.integers(0, 60),
    st.sampled_from([1, 2, 254, 255, 256, 65_535, 65_536]),
    st.booleans(),
    st.booleans(),
)
def test_items_come_back_as_they_were(n: int, k: int, more: bool, ids: bool) -> None:
    generator = np.random.default_rng(n)
    true = generator.integers(0, k, n).astype(np.min_scalar_type(k))
    predicted = generator.integers(0, k + 1, n).astype(np.min_scalar_type(k))
    groups, weights = (
        (generator.integers(0, 1000, n), generator.random(n)) if more else (None, None)
    )
    names = generator.integers(0, 1 << 63, n).astype(np.uint64) * 2 + 1 if ids else None
    items = Items(true, predicted, groups, weights, names)
    kept, columns = packing.unpack_items(packing.pack_items(items))
    assert columns == {}
    assert np.array_equal(kept.true, true)
    assert np.array_equal(kept.predicted, predicted)
    assert kept.predicted.dtype.kind == "u"
    for got, want in ((kept.groups, groups), (kept.weights, weights), (kept.ids, names)):
        assert got is want is None or np.array_equal(np.asarray(got), np.asarray(want))


@pytest.mark.parametrize("values", [1, 2, 255, 256, 300])
def test_columns_come_back_as_they_were(values: int) -> None:
    """Also where the code of an item in no slice takes a larger type than any of the items has."""
    names = tuple(f"ü{i}" for i in range(values))
    codes = np.arange(50, dtype=np.min_scalar_type(values)) % min(values + 1, 7)
    columns = {"a=b": SliceColumn(names, codes), "b": SliceColumn(("x",), 1 - codes % 2)}
    items = Items(np.zeros(50, np.uint8), np.zeros(50, np.uint8))
    _, kept = packing.unpack_items(packing.pack_items(items, columns))
    assert samples.same_columns(columns, kept)
    for column in kept.values():
        assert np.minimum(column.codes, len(column.values)).dtype == column.codes.dtype


def test_a_column_of_four_values_takes_a_third_of_a_byte_for_an_item() -> None:
    generator = np.random.default_rng(0)
    true, region = (generator.integers(0, k, 100_000).astype(np.uint8) for k in (10, 4))
    items = Items(true, true)
    columns = {"region": SliceColumn(("a", "b", "c", "d"), region)}
    more = len(packing.pack_items(items, columns)) - len(packing.pack_items(items))
    assert more < 33_000


def test_too_many_columns_are_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    members = samples.sliced()
    items, columns = members["items"], members["slices"].columns
    monkeypatch.setattr(packing, "MOST_COLUMN_BYTES", 2 * 60 - 1)
    kept, slice_columns = packing.unpack_items(packing.pack_items(items, columns))
    assert samples.same_items(kept, items)
    assert slice_columns == {}
    monkeypatch.setattr(packing, "MOST_COLUMN_BYTES", 2 * 60)
    assert len(packing.unpack_items(packing.pack_items(items, columns))[1]) == 2


def test_right_predictions_cost_next_to_nothing() -> None:
    generator = np.random.default_rng(0)
    true = generator.integers(0, 10, 100_000).astype(np.uint8)
    blob = packing.pack_items(Items(true, true))
    assert len(blob) < 50_000


def test_packed_items_and_scores_of_a_newer_version_are_not_called_damaged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as later:
        later.setattr(packing, "PACKED_VERSION", packing.PACKED_VERSION + 1)
        items = packing.pack_items(samples.kept_items())
        scores = packing.pack_scores(samples.score_summary(k=5))
    for unpack, blob in ((packing.unpack_items, items), (packing.unpack_scores, scores)):
        with pytest.raises(StoreNewerError):
            unpack(blob)


@pytest.mark.parametrize("probabilities", [True, False])
def test_scores_of_version_3_get_the_edges_that_their_bins_had(
    monkeypatch: pytest.MonkeyPatch, *, probabilities: bool
) -> None:
    summary = samples.score_summary(k=5)
    sums = summary.reliability[2:] if probabilities else np.empty((3, 0))
    monkeypatch.setattr(packing, "PACKED_VERSION", 3)
    blob = packing.pack_scores(replace(summary, reliability=sums))
    monkeypatch.undo()
    upgraded = packing.unpack_scores(blob)
    upgraded.check(5)
    assert upgraded.reliability.shape == (5, sums.shape[1])
    if probabilities:
        assert upgraded.reliability == pytest.approx(summary.reliability)


@pytest.mark.parametrize(
    "text", ["sha256:" + "ab" * 32, "ab" * 32, "AB" * 32, "", "ü", "sha256:short", "ab" * 31 + "g0"]
)
def test_digests_come_back_as_they_were(text: str) -> None:
    assert digest_text(digest_bytes(text)) == text


def test_a_sha_takes_33_bytes() -> None:
    assert len(digest_bytes("sha256:" + "ab" * 32)) == 33


@given(st.binary(max_size=300).map(lambda data: b"{" + data) | st.none())
def test_squeezed_json_comes_back(data: bytes | None) -> None:
    assert expand(squeeze(data)) == data


def test_a_table_in_a_form_of_the_future_is_refused_by_name() -> None:
    packed = packing.pack_table(samples.table(), "id")
    later = sealed(bytes([packed[0] | 16]) + packed[1:-4], "id")
    with pytest.raises(StoreNewerError, match="newer rprime"):
        packing.unpack_table(later, "id", 3)
