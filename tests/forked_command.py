"""Run the command and workers by forking a process that has imported them: in tenths of a second.

Each run is a process of its own, with its own arguments, environment, folder and files. The start
of Python and the order of imports are tested where the command starts anew: by tests/system, by
tests that name `RPRIME` or change how Python starts, and by every test with RPRIME_TEST_FORKS=0,
as in `.ci/run --full`. TEST_WORKERS=anew has a service start its workers anew.
"""

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from struct import Struct
from typing import IO, Self

from rprime.routes import workers
from tests.services import RPRIME, environment
from tests.waiting import wait_until

_NUMBER = Struct("<i")
_PROGRAM = Path(__file__).with_name("forkserver.py")
_SHIM = """\
#!{python} -IS
import json, os, signal, socket, struct, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    request = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [struct.pack("<i", len(request))], [0, 1, 2])
    server.sendall(request)
    number, = struct.unpack("<i", server.recv(4, socket.MSG_WAITALL))
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, lambda given, _: os.kill(number, given))
    status, = struct.unpack("<i", server.recv(4, socket.MSG_WAITALL))
if status < 0:
    if status != -signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""
"""The command as a program in PATH, or what starts a worker: it ends as the forked process does,
which is killed if it is killed itself."""


class ForkedCommand:
    """The command in a process of its own, with the methods of `subprocess.Popen` that tests use.

    Parameters
    ----------
    address
        The socket of the program that forks.
    arguments
        The command and its arguments.
    env, stderr, cwd
        As `subprocess.Popen` takes them.
    """

    def __init__(
        self,
        address: Path,
        arguments: Sequence[str | Path],
        *,
        env: Mapping[str, str],
        stderr: IO[str],
        cwd: Path | None = None,
    ) -> None:
        self.args = [str(argument) for argument in arguments]
        self.returncode: int | None = None
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(address))
        ours, theirs = os.pipe()
        with Path(os.devnull).open() as stdin:
            files = [stdin.fileno(), theirs, stderr.fileno()]
            request = json.dumps([self.args, str(cwd or Path.cwd()), dict(env)]).encode()
            socket.send_fds(self._socket, [_NUMBER.pack(len(request))], files)
            self._socket.sendall(request)
        os.close(theirs)
        self.stdout: IO[str] | None = os.fdopen(ours)
        self.pid = self._number()

    def _number(self) -> int:
        fields: tuple[int] = _NUMBER.unpack(self._socket.recv(_NUMBER.size, socket.MSG_WAITALL))
        return fields[0]

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(timeout=0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._socket.settimeout(timeout)
            try:
                self.returncode = self._number()
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self._socket.close()
        return self.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.stdout is not None
        self.stdout.close()
        self.wait()


Process = ForkedCommand | subprocess.Popen[str]
Start = Callable[..., Process]


@cache
def forkserver() -> Path | None:
    """Return the socket of the program that forks, beside which `bin` has programs that use it.

    It runs until these tests end; None where everything has to start anew.
    """
    if os.environ.get("RPRIME_TEST_FORKS") == "0":
        return None
    folder = Path(tempfile.mkdtemp(prefix="rprime-forks-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    address = folder / "socket"
    (folder / "bin").mkdir()
    for name in ("rprime", "rprime-worker"):
        shim = folder / "bin" / name
        shim.write_text(_SHIM.format(python=sys.executable, address=str(address)))
        shim.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-P", _PROGRAM, address],
        stdin=subprocess.PIPE,
        # After a fork, threads of OpenBLAS would be missing.
        env=environment(OPENBLAS_NUM_THREADS="1", **workers.ENVIRONMENT),
    )
    atexit.register(process.communicate)
    wait_until(lambda: address.exists() or process.poll() is not None, seconds=120)
    assert process.returncode is None
    return address


def fork_workers() -> None:
    """Let services in this process fork their workers."""
    address = forkserver()
    if address is not None:
        workers.COMMAND = (str(address.with_name("bin") / "rprime-worker"),)


def program(env: Mapping[str, str]) -> Path:
    """Return the command as a program: one that forks, where Python starts as here."""
    address = None if _differs(env) else forkserver()
    return RPRIME if address is None else address.with_name("bin") / "rprime"


def _differs(env: Mapping[str, str]) -> bool:
    """Whether Python or a library would start otherwise with these variables.

    A fork takes `PYTHONPATH` itself, for what it has not imported.
    """
    return any(
        name.startswith(("LC_", "LD_", "MALLOC_", "PYTHON")) and os.environ.get(name) != value
        for name, value in env.items()
        if name != "PYTHONPATH"
    )


def start(
    *arguments: str | Path, env: Mapping[str, str], stderr: IO[str], cwd: Path | None = None
) -> Process:
    """Start the command by a fork; anew, where it runs in several processes or Python differs."""
    address = None if _differs(env) or "--workers" in arguments else forkserver()
    if address is not None:
        return ForkedCommand(address, arguments, env=env, stderr=stderr, cwd=cwd)
    return subprocess.Popen(
        arguments, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=stderr, text=True
    )
