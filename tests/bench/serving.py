"""A service for the measurements, as a process of its own."""

import http.client
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from speed import cpu_seconds

Figures = dict[str, object]
RPRIME = Path(sys.executable).with_name("rprime")
WITHOUT = Path(__file__).with_name("without.py")


@dataclass(frozen=True)
class Server:
    """A running service."""

    port: int
    process: "subprocess.Popen[str]"

    def cpu(self) -> float:
        """Seconds of CPU that it has used."""
        return cpu_seconds(self.process.pid)


@contextmanager
def serve(store: str = "none", *, without: str = "", **variables: str) -> Iterator[Server]:
    """Start a service on a free port, if asked without a protection; leaving it stops it."""
    command = [sys.executable, str(WITHOUT), without] if without else [str(RPRIME)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RPRIME_")}
    settings = {"RPRIME_STORE": store, "RPRIME_DRAIN_SECONDS": "0", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [*command, "serve", "--port", "0"],
        env=environment | settings | variables,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        address = re.search(r"http://\S+(?=,)", process.stdout.readline())
        if address is None:
            raise SystemExit("the service did not start")
        server = Server(urlsplit(address[0]).port or 0, process)
        # It listens before it has started.
        status_of(server.port, "/livez")
        yield server
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(60)
        process.stdout.close()


def status_of(port: int, path: str) -> int:
    """Ask once, on a connection of its own; the status."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


def request(content: bytes) -> bytes:
    """Write a request to evaluate."""
    head = "POST /evaluate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content
