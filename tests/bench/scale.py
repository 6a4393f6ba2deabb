"""Measure bodies of 1e7 labels, and what small requests notice of them, as ratios.

    sh .ci/venv python tests/bench/scale.py [--items 10000000] [--rounds 5] [--only bodies|stalls]

Bodies: seconds of CPU that the service and its workers need for a request, against what
is there to compare with: receiving and discarding the same body, pyarrow's own reading, a copy of
the memory. CPU, since others may use the machine; pyarrow's own reading uses all cores, so by the
clock it is faster on an idle machine. Memory is the peak of the service and its workers above what
they had after a small body of each form, so what the interpreter does not give back counts, too.
Stalls: how long 10 x 10 requests take, one after another, while large ones are answered one after
another, against an idle service.
"""

import argparse
import http.client
import io
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from speed import Server, body, children, interleaved, ratio, serve

MIB = 1024 * 1024
ROW_GROUP = 1 << 20
BATCH = 1 << 16
SMALL_REQUESTS = 2000
MEDIA_TYPES = {
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
    "csv": "text/csv",
    "npz": "application/x-npz",
    "json": "application/json",
}
DISCARD = """
import sys, uvicorn
async def app(scope, receive, send):
    more = scope["type"] == "http"
    while more:
        more = (await receive()).get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})
uvicorn.run(app, port=int(sys.argv[-1]), log_level="error", lifespan="off")
"""


def post(server: Server, kind: str, content: bytes, path: str = "/evaluate") -> bytes:
    """Send a body and read the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    connection.request("POST", path, content, {"Content-Type": MEDIA_TYPES[kind]})
    response = connection.getresponse()
    answer = response.read()
    connection.close()
    if response.status != http.HTTPStatus.OK:
        raise SystemExit(f"{kind}: {response.status} {answer[:300]!r}")
    return answer


def timed(work: Callable[[], object], process: int) -> float:
    """Seconds of CPU that a process and its children use for something."""
    # What clock_getcpuclockid gives on Linux.
    clocks = [~pid << 3 | 2 for pid in family(process)]
    start = sum(map(time.clock_gettime, clocks))
    work()
    return sum(map(time.clock_gettime, clocks)) - start


def family(process: int) -> list[int]:
    """Return a process and its children."""
    return [process, *children(process)]


def memory(server: Server, field: str) -> int:
    """Bytes of memory of a service, its workers included."""
    statuses = [Path(f"/proc/{pid}/status").read_text() for pid in family(server.process)]
    matches = [re.search(rf"{field}:\s+(\d+)", status) for status in statuses]
    return sum(int(match[1]) * 1024 for match in matches if match)


def peak(server: Server, work: Callable[[], object], idle: int) -> float:
    """MiB that a service needs at most above what it had when it was idle."""
    for pid in family(server.process):
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    work()
    return (memory(server, "VmHWM") - idle) / MIB


def labels(items: int) -> dict[str, Any]:
    """Draw true and predicted labels of 10 classes."""
    draw = np.random.default_rng(0)
    true = draw.integers(0, 10, items)
    return {
        "y_true": true,
        "y_pred": np.where(draw.random(items) < 0.7, true, draw.integers(0, 10, items)),
    }


def written(columns: dict[str, Any]) -> dict[str, tuple[str, bytes]]:
    """Write the same labels in every form."""
    table = pa.table(columns)
    small = {name: values.astype(np.uint8) for name, values in columns.items()}
    sinks = {name: io.BytesIO() for name in ("arrow", "uint8", "parquet", "csv", "npz")}
    for name, frame in (("arrow", table), ("uint8", pa.table(small))):
        with pa.ipc.new_stream(sinks[name], frame.schema) as writer:
            writer.write_table(frame, BATCH)
    pyarrow.parquet.write_table(table, sinks["parquet"], row_group_size=ROW_GROUP)
    pyarrow.csv.write_csv(table, sinks["csv"])
    arrays: dict[str, Any] = small
    np.savez(sinks["npz"], **arrays)
    return {
        "Arrow int64": ("arrow", sinks["arrow"].getvalue()),
        "Arrow uint8": ("arrow", sinks["uint8"].getvalue()),
        "Parquet int64": ("parquet", sinks["parquet"].getvalue()),
        "CSV": ("csv", sinks["csv"].getvalue()),
        "NPZ uint8": ("npz", sinks["npz"].getvalue()),
    }


def by_row_group(content: bytes) -> None:
    """Read Parquet as pyarrow itself does."""
    file = pyarrow.parquet.ParquetFile(io.BytesIO(content))
    for group in range(file.num_row_groups):
        file.read_row_group(group)


def streamed(content: bytes) -> None:
    """Read CSV as pyarrow itself does."""
    for _ in pyarrow.csv.open_csv(io.BytesIO(content)):
        pass


REFERENCES: dict[str, Callable[[bytes], object]] = {
    "Parquet int64": by_row_group,
    "CSV": streamed,
    "NPZ uint8": bytearray,
}


def bodies(service: Server, discard: Server, items: int, rounds: int) -> None:
    """Compare each form with what is there to compare with."""
    for kind, content in written(labels(100)).values():
        post(service, kind, content)
    idle = memory(service, "VmRSS")
    for name, (kind, content) in written(labels(items)).items():
        send = partial(post, service, kind, content)
        tasks: dict[str, Callable[[], float]] = {
            "rprime": partial(timed, send, service.process),
            "discard": partial(timed, partial(post, discard, kind, content), discard.process),
        }
        if name in REFERENCES:
            tasks["itself"] = partial(timed, partial(REFERENCES[name], content), os.getpid())
        for ask in tasks.values():
            ask()
        durations = interleaved(tasks, rounds)
        most = statistics.median(peak(service, send, idle) for _ in range(rounds))
        times = "  ".join(f"{k} {statistics.median(v) * 1e3:6.0f} ms" for k, v in durations.items())
        ratios = "  ".join(
            f"rprime/{k} {ratio(durations['rprime'], durations[k]):5.2f}"
            for k in durations
            if k != "rprime"
        )
        size = len(content) / MIB
        print(f"{name:14s} {size:4.0f} MiB  {times}  {ratios}  peak {most:4.0f} MiB", flush=True)


def small_times(service: Server, until: Callable[[], bool]) -> list[float]:
    """Ask for 10 x 10 tables one after another; seconds of each."""
    request, times = body(10), []
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=600)
    while not until():
        start = time.perf_counter()
        connection.request("POST", "/evaluate", request, {"Content-Type": "application/json"})
        connection.getresponse().read()
        times.append(time.perf_counter() - start)
        time.sleep(0.002)
    return times


def stalls(service: Server, items: int, rounds: int) -> None:
    """Compare the times of small requests beside large ones with those of an idle service."""
    columns = labels(items)
    forms = written(columns)
    json_labels = {name: values[: items * 7 // 10].tolist() for name, values in columns.items()}
    forms["JSON integers"] = ("json", orjson.dumps(json_labels))
    count = iter(range(SMALL_REQUESTS + 1))
    idle = small_times(service, lambda: next(count) == SMALL_REQUESTS)
    for name, (kind, content) in forms.items():
        post(service, kind, content)
        command = [sys.executable, __file__, "--load", str(service.port), kind, str(rounds)]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as load:
            assert load.stdin is not None
            load.stdin.write(content)
            load.stdin.close()
            times = small_times(service, lambda load=load: load.poll() is not None)  # type: ignore[misc] # mypy knows no default of a lambda
        print(f"{name:14s} {told(times)}  p99/idle {p99(times) / p99(idle):5.1f}", flush=True)
    print(f"{'idle':14s} {told(idle)}", flush=True)


def p99(times: list[float]) -> float:
    """Return the time that 99 of 100 do not exceed."""
    return float(np.quantile(times, 0.99))


def told(times: list[float]) -> str:
    """Describe the times of small requests."""
    middle, most = statistics.median(times) * 1e3, max(times) * 1e3
    return (
        f"{len(times):5d} small ones: median {middle:5.2f} ms  p99 {p99(times) * 1e3:6.2f} ms  "
        f"longest {most:6.1f} ms"
    )


def load(port: int, kind: str, rounds: int) -> None:
    """Send a body from standard input again and again."""
    content = sys.stdin.buffer.read()
    for _ in range(rounds):
        post(Server(port, 0), kind, content)


def main() -> None:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("bodies", "stalls"))
    parser.add_argument("--load", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.load:
        load(int(chosen.load[0]), chosen.load[1], int(chosen.load[2]))
        return
    rprime = str(Path(sys.executable).with_name("rprime"))
    with serve(rprime, "serve", RPRIME_LIMITS_JSON_BODY_BYTES=json.dumps(256 * MIB)) as service:
        if chosen.only != "stalls":
            with serve(sys.executable, "-c", DISCARD) as discard:
                bodies(service, discard, chosen.items, chosen.rounds)
        if chosen.only != "bodies":
            stalls(service, chosen.items, 2 * chosen.rounds)


if __name__ == "__main__":
    main()
