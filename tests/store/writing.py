"""A process that stores until it is killed: `python writing.py URL SECONDS THREADS`.

It prints the id of each evaluation after it was acknowledged.
"""

import os
import sys
import time
from threading import Thread

from rprime.store import Idempotency, Store, open_store
from tests.store import samples


def main(url: str, seconds: float, threads: int) -> None:
    store = open_store(url)
    end = time.monotonic() + seconds
    workers = [Thread(target=_write, args=(store, number, end)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    store.close()


def _write(store: Store, number: int, end: float) -> None:
    count = 0
    while time.monotonic() < end:
        count += 1
        name = f"{os.getpid()} {number} {count}"
        evaluation = samples.evaluation(
            count,
            fingerprint=f"test set {number % 3}",
            commit=name,
            input_digest=samples.digest(name),  # other predictions, so a look of its own
            items=samples.kept_items(200) if count % 10 == 0 else None,
        )
        key = Idempotency(owner="w", key=name, payload=b"p", status=201, body=b"{}" * 200)
        stored = samples.put(store, evaluation, idempotency=key).result()
        # One write for each line, so that lines of threads do not mix.
        os.write(1, f"{stored.id}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
