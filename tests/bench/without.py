"""Run the command of rprime without one protection of the server, for `protections.py`.

python tests/bench/without.py PROTECTION serve --port 0
"""

import sys
from collections.abc import Callable

from uvicorn.protocols.http.flow_control import FlowControl

from rprime.cli import app
from rprime.server.protocol import HttpProtocol
from rprime.server.read_scheduler import ScheduledFlowControl


def deadlines() -> None:
    """Wait for clients without end."""
    HttpProtocol._check_deadlines = lambda self: None  # type: ignore[method-assign] # noqa: ARG005, SLF001 - the point


def read_turns() -> None:
    """Read each connection as soon as it has bytes."""
    ScheduledFlowControl.resume_reading = FlowControl.resume_reading  # type: ignore[method-assign] # that is the comparison
    ScheduledFlowControl.yield_turn = lambda self: None  # type: ignore[method-assign] # noqa: ARG005 - as above


PROTECTIONS: dict[str, Callable[[], None]] = {
    protection.__name__: protection for protection in (deadlines, read_turns)
}

if __name__ == "__main__":
    PROTECTIONS[sys.argv.pop(1)]()
    app(prog_name="rprime")
