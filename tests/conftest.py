"""The real service, as a process of its own."""

import gc
import os
import re
import socket
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import hypothesis
import numpy as np
import pytest
import structlog
import uvicorn
from fastapi import FastAPI

from tests.command import Run, run_here, run_process
from tests.dashboard.browser import browser, visit
from tests.forked_command import Start, fork_workers, start
from tests.services import NO_TLS, RPRIME, Serve, ServeApp, environment, stop

__all__ = ["browser", "visit"]

# An application that a test makes in this process keeps nothing, unless the test says where.
os.environ["RPRIME_STORE"] = "none"

# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile(
    "rprime", deadline=None, max_examples=int(os.environ.get("RPRIME_TEST_DRAWS", "30"))
)
hypothesis.settings.load_profile("rprime")

_CONSOLE = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage among modules and tests, which all stay: that takes half of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> Generator[None, int, int]:
    """Run some tests in this process, which starts at once, and only all of them on all cores.

    For a quarter of their time they wait for services and browsers: one more uses it.
    """
    cores = yield
    return cores + 1 if config.args == config.getini("testpaths") else 0


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say at the end what was left out without being skipped."""
    if config.option.markexpr == "not slow":
        terminalreporter.write_line(
            "not run: tests marked slow (recipes of CI, proxies, guides, longer simulations, "
            "stalls and crashes); -m slow runs them, -m '' all"
        )


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Name a failure at once in CI: a run that a time limit ends prints no summary."""
    if report.failed and "CI_RUN" in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nFAILED {report.nodeid}\n{report.longreprtext}", file=sys.__stderr__, flush=True)


@pytest.fixture(scope="session")
def rprime() -> Run:
    """Run the command to its end, in this process."""
    return run_here


@pytest.fixture(scope="session")
def rprime_process() -> Run:
    """Run the command to its end, in a process of its own, where that is what matters."""
    return run_process


@pytest.fixture(scope="session")
def processes() -> dict[int, int]:
    """Return the process of each service by its port."""
    return {}


@pytest.fixture(scope="session")
def starting() -> Start:
    """Return what starts a service: by a fork, where tests/system starts it anew."""
    return start


@pytest.fixture(scope="session")
def serve(
    tmp_path_factory: pytest.TempPathFactory, processes: dict[int, int], starting: Start
) -> Serve:
    """Start a service on a free port; leaving it asks it to stop, which has to succeed."""

    @contextmanager
    def started(
        *arguments: str, log: Path | None = None, **variables: str
    ) -> Iterator[httpx.Client]:
        folder = tmp_path_factory.mktemp("serve")
        path = log or folder / "log"
        with path.open("w") as stderr:
            command = [RPRIME, "serve", "--port", "0", *arguments]
            process = starting(*command, cwd=folder, env=environment(**variables), stderr=stderr)
            assert process.stdout is not None
            with process.stdout:
                line = process.stdout.readline()
                match = re.search(r"http://\S+(?=,)", line)
                assert match, path.read_text()
                try:
                    with httpx.Client(base_url=match[0], timeout=30, verify=NO_TLS) as client:
                        processes[client.base_url.port or 0] = process.pid
                        yield client
                finally:
                    status = stop(process)
        assert status == 0, path.read_text()

    return started


@pytest.fixture(autouse=True)
def _own_draws(request: pytest.FixtureRequest) -> None:
    """Start the generators of a module anew, so that no draw depends on which tests ran before."""
    for value in vars(request.module).values():
        if isinstance(value, np.random.Generator):
            seed: Any = value.bit_generator.seed_seq
            value.bit_generator.state = np.random.default_rng(seed).bit_generator.state


@pytest.fixture(scope="session")
def serve_app() -> ServeApp:
    """Serve an application of the test's own from a thread, over a real connection."""
    fork_workers()

    @contextmanager
    def started(app: FastAPI, *, stop_seconds: int | None = None) -> Iterator[httpx.Client]:
        listener = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(
            app, log_config=None, ws="none", timeout_graceful_shutdown=stop_seconds
        )
        server = uvicorn.Server(config)
        # A command of the same test has standard output for itself. Rich takes seconds to show an
        # exception with all values.
        structlog.configure(
            processors=[structlog.processors.add_log_level, _CONSOLE],
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            with httpx.Client(base_url=base_url, timeout=30, verify=NO_TLS) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()

    return started


@pytest.fixture(scope="session")
def server(serve: Serve) -> Iterator[str]:
    """Return the address of a service with default settings."""
    with serve() as client:
        yield str(client.base_url)


@pytest.fixture
def client(server: str) -> Iterator[httpx.Client]:
    """Return a client of that service."""
    with httpx.Client(base_url=server, timeout=30, verify=NO_TLS) as client:
        yield client
