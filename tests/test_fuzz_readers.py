"""Whatever bytes a reader of evidence gets: evidence, or one of the refusals that it documents."""

import gzip
import io
import random
from collections.abc import Callable
from contextlib import suppress

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzing import MUTATIONS, WRITERS
from rprime import evidence
from rprime.evidence import InvalidEvidenceError, TooLargeError, UnreadableBodyError
from rprime.evidence.streams import MEDIA_TYPES
from rprime.problems import Problem
from rprime.routes.body import Inflated

BOUNDS = evidence.Bounds(classes=1000, inflated=1 << 20, depth=8)
REFUSALS = (InvalidEvidenceError, TooLargeError, UnreadableBodyError)
VALID = {MEDIA_TYPES[media_type]: write() for media_type, write in WRITERS.items()}
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
}
SEEDS = st.lists(st.integers(0, 2**32), min_size=1, max_size=6)


def mutated(body: bytes, other: bytes, seeds: list[int]) -> bytes:
    """Mutate a body once for each seed, so that Hypothesis can leave some of them out."""
    for seed in seeds:
        chance = random.Random(seed)  # noqa: S311 (no secret)
        body = chance.choice(MUTATIONS)(chance, body, other)
    return body


def read(kind: evidence.Kind, body: bytes) -> None:
    question = evidence.ask(b"", BOUNDS)
    document = evidence.read_columns(kind, io.BytesIO(body), question, BOUNDS, lambda _: None)
    evidence.read(document, evidence.Limits())


@pytest.mark.parametrize("kind", VALID)
def test_the_bodies_are_valid(kind: evidence.Kind) -> None:
    read(kind, VALID[kind])


@pytest.mark.parametrize("kind", VALID)
@settings(max_examples=400)
@given(seeds=SEEDS, other=st.sampled_from(sorted(VALID)))
def test_columns_are_read_or_refused(
    kind: evidence.Kind, seeds: list[int], other: evidence.Kind
) -> None:
    with suppress(*REFUSALS):
        read(kind, mutated(VALID[kind], VALID[other], seeds))


@pytest.mark.parametrize("kind", VALID)
@given(body=st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(kind: evidence.Kind, body: bytes) -> None:
    with suppress(*REFUSALS):
        read(kind, body)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@settings(max_examples=400)
@given(seeds=SEEDS)
def test_compressed_bodies_are_inflated_or_refused(encoding: str, seeds: list[int]) -> None:
    body = VALID["csv"] * 30
    packed = PACKERS[encoding](body)
    assert Inflated(io.BytesIO(packed), encoding, lambda: 1 << 16).read() == body
    with suppress(Problem):
        found = Inflated(io.BytesIO(mutated(packed, packed, seeds)), encoding, lambda: 1 << 16)
        assert len(found.read()) <= 1 << 16
