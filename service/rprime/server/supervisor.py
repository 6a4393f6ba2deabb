"""The supervisor of several workers."""

import multiprocessing
import os
import signal
from contextlib import suppress
from threading import Thread

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import mark_process_dead
from uvicorn.supervisors.multiprocess import Multiprocess

from rprime.server.metrics import ended_workers
from rprime.server.worker_pool import reason_of

log = structlog.get_logger(__name__)


class Supervisor(Multiprocess):
    """uvicorn's supervisor, which logs and counts the workers that it replaces."""

    _ended = ended_workers(CollectorRegistry())

    def keep_subprocess_alive(self) -> None:
        """Replace the workers that have ended or hang."""
        before = list(self.processes)
        super().keep_subprocess_alive()
        for process in before:
            if process not in self.processes:
                reason = reason_of(process.exitcode or 0)
                log.error("worker_ended", kind="server", reason=reason, pid=process.pid)
                self._ended.labels("server", reason).inc()
                mark_process_dead(process.pid)  # type: ignore[no-untyped-call] # untyped there

    def terminate_all(self) -> None:
        """Stop the workers; who connects after they have stopped is refused, not reset."""
        for listener in self.sockets:
            listener.close()
        super().terminate_all()

    def handle_hup(self) -> None:
        """Pass the signal on, so that workers read their keys again; uvicorn would replace them."""
        for process in self.processes:
            with suppress(ProcessLookupError):
                if process.pid is not None:
                    os.kill(process.pid, signal.SIGHUP)


def stop_with_parent() -> None:
    """Have this process stop, as by SIGTERM, once the supervisor that started it has ended."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        log.error("parent_ended", detail="The process that started this worker is gone; it stops.")
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=watch, daemon=True).start()
