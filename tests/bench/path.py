"""Print which functions of the package one request passes, as JSON.

    sh .ci/venv python tests/bench/path.py [--classes 10]

A service in this process answers some requests, and then some more under `sys.setprofile`; what
counts is the one with the fewest calls, in which no timer ran. Functions without a name
(comprehensions, generator expressions, lambdas) belong to the functions around them.
"""

import argparse
import http.client
import json
import os
import signal
import sys
import time
from itertools import groupby
from pathlib import Path
from socket import socket
from threading import Thread
from types import FrameType

from speed import JSON, body

import rprime
from rprime.commands.serve import serve

ROOT = f"{Path(rprime.__file__).parent}/"
WARM, COUNTED = 8, 5
"""Requests before, and while calls are recorded."""
LAST = ("server/metrics.py", "Metrics.observe_request")
"""What the service calls last, after the client has its answer."""


class Recorder:
    """Records the calls of named functions: the file within the package, and the name."""

    def __init__(self) -> None:
        self.on = False
        self.calls: list[tuple[str, str]] = []

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        """Record a call; the function of `sys.setprofile`."""
        code = frame.f_code
        inside = event == "call" and code.co_filename.startswith(ROOT)
        if self.on and inside and not code.co_name.startswith("<"):
            self.calls.append((code.co_filename.removeprefix(ROOT), code.co_qualname))


def ask(port: int, content: bytes, recorder: Recorder) -> list[list[tuple[str, str]]]:
    """Send the requests over one connection; return the calls of each that counts."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    traces = []
    for number in range(WARM + COUNTED):
        recorder.calls, recorder.on = [], number >= WARM
        connection.request("POST", "/evaluate", content, JSON)
        response = connection.getresponse()
        response.read()
        if response.status != http.HTTPStatus.OK:
            raise SystemExit(f"status {response.status}")
        while recorder.on and LAST not in recorder.calls:
            time.sleep(0.001)
        traces.append(recorder.calls)
    connection.close()
    return traces[WARM:]


def summary(calls: list[tuple[str, str]]) -> dict[str, object]:
    """Count the functions, and list those outside the core by file."""
    outside: dict[str, list[str]] = {}
    for file, name in dict.fromkeys(calls):
        if not file.startswith("core/"):
            outside.setdefault(file, []).append(name)
    return {
        "functions": sum(map(len, outside.values())),
        "files": len(outside),
        "files_of_the_core": len({file for file, _ in calls if file.startswith("core/")}),
        "packages": [
            package for package, _ in groupby(file.partition("/")[0] for file, _ in calls)
        ],
        "outside_the_core": outside,
    }


def main() -> None:
    """Serve in this thread, ask in another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", type=int, default=10)
    content = body(parser.parse_args().classes)
    recorder = Recorder()
    traces: list[list[tuple[str, str]]] = []
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def client() -> None:
        while socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.05)
        try:
            traces.extend(ask(port, content, recorder))
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    os.environ |= {"RPRIME_STORE": "none", "RPRIME_DRAIN_SECONDS": "0"}
    sys.stdout, output = sys.stderr, sys.stdout
    Thread(target=client).start()
    sys.setprofile(recorder.profile)
    try:
        serve(port=port)
    finally:
        sys.setprofile(None)
        print(json.dumps(summary(min(traces, key=len)), indent=2), file=output)


if __name__ == "__main__":
    main()
