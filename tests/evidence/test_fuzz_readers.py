"""Whatever bytes a reader of evidence gets: evidence, or one of the refusals that it documents."""

import gzip
import io
import os
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from rprime import evidence
from rprime.problems.problem import Problem
from rprime.server.body import Inflated
from tests.evidence import mutated_columns, mutated_parquet
from tests.evidence.mutated_requests import MUTATIONS

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
}
SEEDS = st.lists(st.integers(0, 2**32), min_size=1, max_size=6)


def apart(*arguments: str) -> None:
    """Run Python in a process of its own, since what ends there may be the whole process."""
    command = [sys.executable, *arguments]
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=path, capture_output=True, text=True, check=False)
    assert not done.returncode, f"after {done.stdout[-20:]!r}: {done.stderr[-2000:]}"


@pytest.mark.parametrize("kind", mutated_columns.VALID)
def test_the_bodies_are_valid(kind: evidence.Kind) -> None:
    mutated_columns.read(kind, mutated_columns.VALID[kind])


def test_parquet_files_put_together_again_are_valid() -> None:
    for parts in mutated_parquet.FILES:
        mutated_columns.read("parquet", parts.whole())


@pytest.mark.parametrize("kind", mutated_columns.VALID)
def test_columns_are_read_or_refused(kind: evidence.Kind) -> None:
    # A range of its own for each run of the tests; the process tells which.
    start = random.randrange(2**32)  # noqa: S311 (no secret)
    apart("-m", mutated_columns.__name__, kind, str(start), "200")


def test_metadata_that_contradict_themselves_end_no_process(tmp_path: Path) -> None:
    """Give a flat column a histogram of repetition levels, at which pyarrow terminates."""
    script = tmp_path / "contradicting.py"
    script.write_text(CONTRADICTING)
    apart(str(script))


CONTRADICTING = """
import io
import pyarrow as pa
import pyarrow.parquet

from tests.evidence import mutated_columns

sink = io.BytesIO()
table = pa.table({"y_true": ["a", "b"], "y_pred": ["a", "b"]})
pa.parquet.write_table(table, sink, use_dictionary=False)
repetition_definition = bytes.fromhex("1906" "19260004")
definition_repetition = bytes.fromhex("19260004" "1906")
assert sink.getvalue().count(repetition_definition) == 2
body = sink.getvalue().replace(repetition_definition, definition_repetition)
mutated_columns.read("parquet", body)
"""


@pytest.mark.parametrize("kind", mutated_columns.VALID)
@given(body=st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(kind: evidence.Kind, body: bytes) -> None:
    with suppress(*mutated_columns.REFUSALS):
        mutated_columns.read(kind, body)


def mutated(body: bytes, seeds: list[int]) -> bytes:
    """Mutate a body once for each seed, so that Hypothesis can leave some of them out."""
    for seed in seeds:
        chance = random.Random(seed)  # noqa: S311 (no secret)
        body = chance.choice(MUTATIONS)(chance, body, body)
    return body


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@settings(max_examples=400)
@given(seeds=SEEDS)
def test_compressed_bodies_are_inflated_or_refused(encoding: str, seeds: list[int]) -> None:
    body = mutated_columns.VALID["csv"] * 30
    packed = PACKERS[encoding](body)
    assert Inflated(io.BytesIO(packed), encoding, lambda: 1 << 16).read() == body
    with suppress(Problem):
        found = Inflated(io.BytesIO(mutated(packed, seeds)), encoding, lambda: 1 << 16)
        assert len(found.read()) <= 1 << 16
