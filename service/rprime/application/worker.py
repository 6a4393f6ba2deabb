"""A process that answers large JSON bodies, so that the service is not held up by them.

It talks through the socket that is its standard input, and ends when that is closed.
"""

import os
import pickle
import signal
import socket
from typing import Any

from rprime.application.evaluate import evaluate_json
from rprime.application.worker_protocol import ANSWERED, ASKED
from rprime.problems.problem import Problem

_NICENESS = 5
"""Small requests go first where there are not enough cores for all."""


def main() -> None:
    """Answer until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICENESS)
    with socket.socket(fileno=os.dup(0)) as service:
        service.sendall(b"\0")
        while (sizes := _received(service, ASKED.size)) is not None:
            options, body = (_received(service, size) for size in ASKED.unpack(sizes))
            if options is None or body is None:
                return
            answer = pickle.dumps(_answer(body, pickle.loads(options)), protocol=5)  # noqa: S301 (from the service itself)
            del options, body
            service.sendall(ANSWERED.pack(len(answer)))
            service.sendall(answer)


def _answer(body: bytearray, options: Any) -> Any:  # noqa: ANN401 (see rprime.routes.workers)
    try:
        return evaluate_json(body, options)  # type: ignore[arg-type] # orjson reads it alike
    except Problem as problem:
        return problem


def _received(service: socket.socket, size: int) -> bytearray | None:
    """Receive so many bytes; None if the service has gone."""
    found = bytearray(size)
    view, place = memoryview(found), 0
    while place < size:
        count = service.recv_into(view[place:])
        if not count:
            return None
        place += count
    return found


if __name__ == "__main__":
    main()
