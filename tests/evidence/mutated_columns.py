"""Bodies of columns, mutated as a seed says, and read."""

import io
import random

from rprime import evidence
from rprime.evidence import MEDIA_TYPES
from rprime.settings import Limits
from tests.evidence import mutated_parquet
from tests.evidence.mutated_requests import MUTATIONS, WRITERS

LIMITS = Limits(sparse_classes=1000, other_body_bytes=1 << 20)
VALID = {MEDIA_TYPES[media_type]: write() for media_type, write in WRITERS.items()}
STRUCTURED = 0.7
"""The share of Parquet files that are mutated page by page: other damage seldom gets that far."""


def read(kind: evidence.Kind, body: bytes) -> None:
    document = evidence.read_columns(kind, io.BytesIO(body), b"", LIMITS)
    evidence.read(document, Limits())


def mutant(kind: evidence.Kind, seed: int) -> bytes:
    chance = random.Random(seed)  # noqa: S311 (no secret)
    if kind == "parquet" and chance.random() < STRUCTURED:
        return mutated_parquet.mutant(chance)
    body, other = VALID[kind], chance.choice(sorted(VALID.values()))
    for _ in range(chance.randint(1, 6)):
        body = chance.choice(MUTATIONS)(chance, body, other)
    return body
