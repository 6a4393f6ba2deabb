"""The command, run to its end: in this process, or in one of its own."""

import logging
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import structlog
import typer.testing
from typer.main import get_command
from typer.testing import CliRunner

from rprime.cli import app
from tests.forked_command import program
from tests.services import environment

Completed = subprocess.CompletedProcess[str]
Run = Callable[..., Completed]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

# The runner builds all commands and options for each run, which takes longer than many a run.
typer.testing._get_command = cache(get_command)  # type: ignore[attr-defined]  # noqa: SLF001 (it takes no command)


def run_here(*arguments: str, stdin: bytes = b"", **variables: str) -> Completed:
    """Run the command in this process, and leave the process as it was."""
    with _restored_state():
        env = environment(**variables)
        os.environ.clear()
        os.environ.update(env)
        done = CliRunner().invoke(app, arguments, input=stdin)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        # A process would print the traceback and end with 1, as for a failed gate.
        raise done.exception
    return Completed(arguments, int(done.exit_code), done.stdout, done.stderr)


def run_process(*arguments: str, stdin: bytes = b"", **variables: str) -> Completed:
    """Run the command in a process of its own."""
    env = environment(**variables)
    done = subprocess.run(
        [program(env), *arguments],
        input=stdin,
        env=env,
        capture_output=True,
        timeout=60,
        check=False,
    )
    texts = (output.decode().replace("\r\n", "\n") for output in (done.stdout, done.stderr))
    return Completed(arguments, done.returncode, *texts)


@contextmanager
def _restored_state() -> Iterator[None]:
    """Restore what a command sets for its process: environment, folder, log and signals."""
    variables = dict(os.environ)
    folder = os.getcwd()  # noqa: PTH109 - os.chdir takes it back as it was
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    quiet = {name: logging.getLogger(name).level for name in ("alembic", "httpx", "uvicorn")}
    structure = structlog.get_config()
    answers = {number: signal.getsignal(number) for number in _SIGNALS}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(folder)
        root.handlers[:] = handlers
        root.setLevel(level)
        for name, before in quiet.items():
            logging.getLogger(name).setLevel(before)
        structlog.configure(**structure)
        for signum, answer in answers.items():
            signal.signal(signum, answer)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
