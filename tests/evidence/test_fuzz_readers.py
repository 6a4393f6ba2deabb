"""Whatever bytes a reader of evidence gets: evidence, or one of the refusals that it documents."""

import gzip
import io
import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress

import httpx
import pyarrow as pa
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from rprime import evidence
from rprime.problems.problem import Problem
from rprime.server.inflating import Inflated
from tests.evidence import mutated_columns, mutated_parquet
from tests.evidence.mutated_requests import MUTATIONS
from tests.http.column_bodies import fault, send
from tests.services import Serve

PACKERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstandard.compress}
INFLATED = int(os.environ.get("RPRIME_TEST_INFLATED", "100"))
SEEDS = st.lists(st.integers(0, 2**32), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def limited(serve: Serve) -> Iterator[httpx.Client]:
    """Return a service that reads little."""
    with serve(RPRIME_STORE="none", RPRIME_LIMITS_OTHER_BODY_BYTES=str(1 << 20)) as client:
        yield client


@pytest.mark.parametrize("kind", mutated_columns.VALID)
def test_the_bodies_are_valid(kind: evidence.Kind) -> None:
    mutated_columns.read(kind, mutated_columns.VALID[kind])


def test_parquet_files_put_together_again_are_valid() -> None:
    for parts in mutated_parquet.FILES:
        mutated_columns.read("parquet", parts.whole())


@pytest.mark.parametrize("kind", mutated_columns.VALID)
def test_columns_are_read_or_refused(limited: httpx.Client, kind: evidence.Kind) -> None:
    # A range of its own for each run of the tests; a failure tells the seed.
    start = random.randrange(2**32)  # noqa: S311 (no secret)
    for seed in range(start, start + 200):
        response = send(limited, kind, mutated_columns.mutant(kind, seed))
        assert response.status_code in {200, 400, 413, 422}, (seed, response.text)


def test_metadata_that_end_pyarrow_are_refused(limited: httpx.Client) -> None:
    """At a flat column with a histogram of repetition levels pyarrow terminates."""
    sink = io.BytesIO()
    table = pa.table({"y_true": ["a", "b"], "y_pred": ["a", "b"]})
    pyarrow.parquet.write_table(table, sink, use_dictionary=False)
    repetition_definition = bytes.fromhex("190619260004")
    definition_repetition = bytes.fromhex("192600041906")
    assert sink.getvalue().count(repetition_definition) == 2
    body = sink.getvalue().replace(repetition_definition, definition_repetition)
    response = send(limited, "parquet", body)
    assert fault(response) == (400, "", "unreadable_body")
    assert "ended the process" in response.json()["detail"]
    assert (
        'rprime_workers_ended_total{kind="large_requests",reason="SIGABRT"}'
        in limited.get("/metrics").text
    )


@pytest.mark.parametrize("kind", mutated_columns.VALID)
@given(body=st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(kind: evidence.Kind, body: bytes) -> None:
    with suppress(Problem):
        mutated_columns.read(kind, body)


def mutated(body: bytes, seeds: list[int]) -> bytes:
    """Mutate a body once for each seed, so that Hypothesis can leave some of them out."""
    for seed in seeds:
        chance = random.Random(seed)  # noqa: S311 (no secret)
        body = chance.choice(MUTATIONS)(chance, body, body)
    return body


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@settings(max_examples=INFLATED)
@given(seeds=SEEDS)
def test_compressed_bodies_are_inflated_or_refused(encoding: str, seeds: list[int]) -> None:
    body = mutated_columns.VALID["csv"] * 30
    packed = PACKERS[encoding](body)
    assert Inflated(io.BytesIO(packed), encoding, lambda: 1 << 16).read() == body
    with suppress(Problem):
        stream = Inflated(io.BytesIO(mutated(packed, seeds)), encoding, lambda: 1 << 16)
        assert len(stream.read()) <= 1 << 16
