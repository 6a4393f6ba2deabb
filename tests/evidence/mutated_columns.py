"""Bodies of columns, mutated as a seed says, and read; in a process of its own as a command.

    python -m tests.evidence.mutated_columns KIND START COUNT

It tells each seed before it reads the body, so the last one that it told is what ended it.
"""

import io
import random
import sys
from contextlib import suppress
from typing import cast

from rprime import evidence
from rprime.evidence import InvalidEvidenceError, TooLargeError, UnreadableBodyError
from rprime.evidence.streams import MEDIA_TYPES
from tests.evidence import mutated_parquet
from tests.evidence.mutated_requests import MUTATIONS, WRITERS

BOUNDS = evidence.Bounds(classes=1000, inflated=1 << 20, depth=8)
REFUSALS = (InvalidEvidenceError, TooLargeError, UnreadableBodyError)
VALID = {MEDIA_TYPES[media_type]: write() for media_type, write in WRITERS.items()}
STRUCTURED = 0.7
"""The share of Parquet files that are mutated page by page: other damage seldom gets that far."""


def read(kind: evidence.Kind, body: bytes) -> None:
    question = evidence.ask(b"", BOUNDS)
    document = evidence.read_columns(kind, io.BytesIO(body), question, BOUNDS, lambda _: None)
    evidence.read(document, evidence.ClassLimits())


def mutant(kind: evidence.Kind, seed: int) -> bytes:
    chance = random.Random(seed)  # noqa: S311 (no secret)
    if kind == "parquet" and chance.random() < STRUCTURED:
        return mutated_parquet.mutant(chance)
    body, other = VALID[kind], chance.choice(sorted(VALID.values()))
    for _ in range(chance.randint(1, 6)):
        body = chance.choice(MUTATIONS)(chance, body, other)
    return body


def main() -> None:
    kind, start, count = cast("evidence.Kind", sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for seed in range(start, start + count):
        sys.stdout.write(f"{seed}\n")
        sys.stdout.flush()
        with suppress(*REFUSALS):
            read(kind, mutant(kind, seed))


if __name__ == "__main__":
    main()
