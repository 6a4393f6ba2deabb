"""Supervisor: the process above several workers."""

import os
import signal
from contextlib import suppress

from uvicorn.supervisors import Multiprocess


class Supervisor(Multiprocess):
    """uvicorn's supervisor, whose workers read their keys again after SIGHUP."""

    def handle_hup(self) -> None:
        """Pass the signal on; uvicorn would replace the workers."""
        for process in self.processes:
            with suppress(ProcessLookupError):
                if process.pid is not None:
                    os.kill(process.pid, signal.SIGHUP)
