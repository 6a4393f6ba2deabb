"""Program that imports the command and workers, and forks for each; see `forked_command.py`."""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import random
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from struct import Struct

import rprime
from rprime import cli
from rprime.application import worker
from rprime.routes import workers

NUMBER = Struct("<i")
_UNIMPORTED = (
    *("rprime.mlflow", "rprime.pytest_plugin", "rprime.sklearn"),
    *("rprime.tally", "rprime.store.migrations"),
)
"""Modules of other tools, extras and programs."""
_FIRST = ("alembic.command", "uvicorn.loops.uvloop", "uvicorn.protocols.http.httptools_impl")


def import_all() -> None:
    """Import what commands need."""
    modules = (module.name for module in pkgutil.walk_packages(rprime.__path__, "rprime."))
    for name in (*_FIRST, *modules):
        if not name.startswith(_UNIMPORTED):
            importlib.import_module(name)
    # So that collecting garbage after a fork copies no page of what is imported.
    gc.freeze()


def wait_to_be_forked(address: str) -> socket.socket:
    """Fork for each connection, and return it in the new process; end when the tests have ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.set_blocking(0, False)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{address}.new")
        listener.listen(64)
        listener.settimeout(1)
        os.rename(f"{address}.new", address)  # noqa: PTH104 (nobody may connect before)
        while True:
            with suppress(BlockingIOError):
                if not os.read(0, 1):
                    os._exit(0)
            with suppress(TimeoutError):
                connection, _ = listener.accept()
                if os.fork() == 0:
                    break
                connection.close()
    connection.settimeout(None)
    return connection


def become_program(connection: socket.socket, worker_program: Path) -> None:
    """Fork again; return as the program, and elsewhere tell its number and at last its status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, files, _, _ = socket.recv_fds(connection, NUMBER.size, 3)
    (length,) = NUMBER.unpack(size)
    arguments, folder, variables = json.loads(connection.recv(length, socket.MSG_WAITALL))
    number = os.fork()
    if number:
        for file in (0, 1, 2, *files):
            os.close(file)
        threading.Thread(target=kill_after, args=(connection, number), daemon=True).start()
        with suppress(OSError):
            connection.sendall(NUMBER.pack(number))
            _, status = os.waitpid(number, 0)
            connection.sendall(NUMBER.pack(os.waitstatus_to_exitcode(status)))
        os._exit(0)
    connection.close()
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    path = variables.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [entry for entry in path if entry and entry not in sys.path]
    time.tzset()
    random.seed()
    sys.argv = arguments
    if variables.get("TEST_WORKERS") != "anew":
        workers.COMMAND = (str(worker_program),)


def kill_after(connection: socket.socket, number: int) -> None:
    """Kill a process when whoever started it is gone."""
    with suppress(OSError):
        connection.recv(1)
        os.kill(number, signal.SIGKILL)


def run_to_the_end(command: Callable[[], object]) -> None:
    """End as Python does, but free nothing: that takes longer than most commands."""
    status = 0
    try:
        command()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)  # noqa: T201 (as Python does)
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception:  # noqa: BLE001 (as Python does)
        traceback.print_exc()
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 (waits for threads)
    atexit._run_exitfuncs()  # noqa: SLF001 (has no other name)
    try:
        sys.stdout.flush()
    except OSError:
        status = 120
    os._exit(status)


if __name__ == "__main__":
    import_all()
    address = sys.argv[1]
    become_program(wait_to_be_forked(address), Path(address).with_name("bin") / "rprime-worker")
    is_worker = Path(sys.argv[0]).name == "rprime-worker"
    run_to_the_end(worker.main if is_worker else cli.app)
