"""A service that fails as it is told to, over real connections."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

JSON = {"Content-Type": "application/json"}
PROBLEM = {"Content-Type": "application/problem+json"}
OVERLOADED = (
    b'{"type":"/docs/problems#overloaded","title":"The service is busy","status":503,'
    b'"detail":"Busy.","code":"overloaded","request_id":"r-7"}'
)


@dataclass(frozen=True)
class Step:
    """One answer; status 0 closes the connection without any."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=lambda: JSON)
    after: float = 0.0


BUSY = Step(503, OVERLOADED, PROBLEM)
DROPPED = Step(0)


@dataclass(frozen=True)
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Flaky(ThreadingHTTPServer):
    """Answers with the steps one after the other, and from then on with the last one."""

    daemon_threads = False

    def __init__(self, steps: Sequence[Step]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.steps = list(steps)
        self.seen: list[Seen] = []
        self.closing = Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def keys(self) -> list[str]:
        return [seen.headers["idempotency-key"] for seen in self.seen]


class _Handler(BaseHTTPRequestHandler):
    server: Flaky

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append(Seen(self.command, self.path, headers, body))
        steps = self.server.steps
        step = steps.pop(0) if len(steps) > 1 else steps[0]
        self.server.closing.wait(step.after)
        if step.status and not self.server.closing.is_set():
            self._answer(step)

    do_GET = do_POST  # noqa: N815 (the name that http.server asks for)

    def _answer(self, step: Step) -> None:
        self.send_response(step.status)
        for name, value in step.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(step.body)))
        self.end_headers()
        self.wfile.write(step.body)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def flaky(*steps: Step) -> Iterator[Flaky]:
    with Flaky(steps) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            thread.join()


def stopped() -> str:
    """Address of a service that has gone."""
    with Flaky([BUSY]) as server:
        return server.url
