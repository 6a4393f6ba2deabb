"""What counting the bytes of projects costs a commit of one evaluation.

    sh .ci/venv python tests/bench/quota.py [EVALUATIONS [FOLDER]]

Three SQLite stores take turns: one does not count, one counts, as always, and one compares with a
quota, too. The ratios are medians over the turns. In /dev/shm nothing waits for a disk.
"""

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence

from store import evaluations

from rprime.store import DatabaseOptions, open_store, project_sizes

WITHOUT, COUNTED, BOUNDED = "not counted", "no quota", "quota"


def measure(number: int, folder: str) -> None:
    """Store evaluations one by one, and print milliseconds and ratios."""
    stores = {
        side: open_store(
            f"sqlite:///{folder}/{side}.db",
            options=DatabaseOptions(project_bytes=1 << 40 if side == BOUNDED else None),
        )
        for side in (WITHOUT, COUNTED, BOUNDED)
    }
    counting = project_sizes.change
    spent: dict[str, list[float]] = {side: [] for side in stores}
    for new in evaluations(number):
        for side in random.sample(list(stores), len(stores)):
            project_sizes.change = counting if side != WITHOUT else lambda *_: None
            packed = stores[side].pack(new)
            since = time.perf_counter()
            stores[side].put_many([packed]).result()
            spent[side].append(1000 * (time.perf_counter() - since))
    for side, times in spent.items():
        ratio = statistics.median(a / b for a, b in zip(times, spent[WITHOUT], strict=True))
        print(f"{side:12} p50 {_part(times, 50):.2f} ms, p99 {_part(times, 99):.2f}, {ratio:.3f}")
        stores[side].close()


def _part(times: Sequence[float], percent: int) -> float:
    return statistics.quantiles(times, n=100)[percent - 1]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as made:
        measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, made)
