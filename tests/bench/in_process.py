"""Compare the CPU of evaluating arrays in this process with pyarrow's group_by of the same.

    sh .ci/venv python tests/bench/in_process.py [--items 1e6]

Each is the best of five turns on one thread; the report by JSON must have the same bytes.
"""

import argparse
import os
import time
from collections.abc import Callable

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import pyarrow as pa

import rprime
from rprime.application import read_request
from rprime.client.request import encode
from rprime.settings import Limits

TURNS = 5


def cpu(work: Callable[[], object]) -> float:
    """Return the least seconds of CPU of some turns."""
    work()
    seconds = []
    for _ in range(TURNS):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def main() -> None:
    """Print how many times the CPU of the group_by an evaluation takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=float, default=1e6)
    size = int(parser.parse_args().items)
    draw = np.random.default_rng(0)
    true = draw.integers(0, 10, size).astype(np.uint8)
    predicted = np.where(draw.random(size) < 0.7, true, 0).astype(np.uint8)
    table = pa.table({"true": true, "predicted": predicted})

    def by_json() -> bytes:
        content = encode({"y_true": true.tolist(), "y_pred": predicted.tolist()})
        request = read_request(content, Limits())
        return request.report(request.evaluate())

    def arrays() -> bytes:
        return rprime.evaluate(true, predicted).content

    if arrays() != by_json():
        raise SystemExit("the reports differ")
    grouped = cpu(
        lambda: table.group_by(["true", "predicted"], use_threads=False).aggregate(
            [([], "count_all")]
        )
    )
    for name, work in (("arrays", arrays), ("lists by JSON", by_json)):
        print(f"{name}: {cpu(work) / grouped:.1f} times pyarrow's group_by")


if __name__ == "__main__":
    main()
