"""How long and in how much memory DuckDB counts predictions that lie in Parquet files.

    sh .ci/venv python tests/bench/tally.py --items 1e8

makes the files in a temporary folder, counts them by `rprime evaluate --engine duckdb` in a process
of its own, and prints its CPU time and its peak memory beside those of the command itself.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RPRIME = Path(sys.executable).with_name("rprime")
ROWS = 1_000_000
MIB = 1 << 10
"""In the kibibytes of the kernel."""


def make(folder: Path, items: int, classes: int) -> int:
    """Write files of int64 labels, ten million items each; give their size in bytes."""
    rng = np.random.default_rng(0)
    for number, start in enumerate(range(0, items, 10 * ROWS)):
        with pq.ParquetWriter(folder / f"{number}.parquet", _schema()) as writer:
            for first in range(start, min(items, start + 10 * ROWS), ROWS):
                size = min(ROWS, items - first)
                true, drawn = rng.integers(0, classes, (2, size))
                predicted = np.where(rng.random(size) < 0.9, true, drawn)
                writer.write_table(pa.table([true, predicted], schema=_schema()))
    return sum(path.stat().st_size for path in folder.iterdir())


def _schema() -> pa.Schema:
    return pa.schema([("y_true", pa.int64()), ("y_pred", pa.int64())])


def measured(arguments: Sequence[str]) -> tuple[float, float, float, float]:
    """Run the command; give items, seconds of CPU, of wall time, and MiB at its peak."""
    watch = (
        "import json, resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=True)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "total = json.loads(done.stdout)['counts']['total']\n"
        "print(json.dumps([total, used.ru_utime + used.ru_stime, used.ru_maxrss]))\n"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", watch, RPRIME, "evaluate", *arguments, "--json"],
        stdout=subprocess.PIPE,
        check=True,
    )
    total, cpu, peak = json.loads(done.stdout)
    return total, cpu, time.perf_counter() - start, peak / MIB


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=lambda text: int(float(text)), default=10_000_000)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--engine", default="duckdb")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = make(folder, args.items, args.classes)
        print(f"{args.items:,} items, {args.classes} classes, {size / 2**20:,.0f} MiB of Parquet")
        small = folder / "small.csv"
        small.write_text("y_true,y_pred\n1,1\n2,1\n")
        for what, file in (("two items", small), ("all items", folder / "*.parquet")):
            total, cpu, wall, peak = measured((str(file), "--engine", args.engine))
            print(f"{what}: {total:,} counted, {cpu:.1f} s CPU, {wall:.1f} s, {peak:,.0f} MiB")


if __name__ == "__main__":
    main()
