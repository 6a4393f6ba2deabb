"""The service as a process."""

import atexit
import gc
import os
import shutil
import signal
import socket
import stat
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Exit, Option, echo

from rprime.commands.exit_status import Status, attempting, refuse, refusing, say
from rprime.commands.options import settings as settings_of

if TYPE_CHECKING:
    from fastapi import FastAPI

    from rprime.auth.keys import Keyring
    from rprime.settings import Settings

_BACKLOG = 2048
_ENDING = (signal.SIGINT, signal.SIGTERM)


class _EndingSignals:
    """Signals to end: those that come before uvicorn handles them wait for it.

    An exit raised from a destructor, of which imports run many, is lost, and the service would
    stay. The main thread blocks the signals; threads of libraries, such as pyarrow, do not.
    """

    def __init__(self) -> None:
        self._early: list[int] | None = []

    def handle(self, number: int, _: object) -> None:
        """Keep an early signal; end a service that uvicorn has stopped: it has not failed."""
        if self._early is None:
            sys.exit(0)
        self._early.append(number)

    def hold(self) -> None:
        """Hold the signals from now on."""
        for number in _ENDING:
            signal.signal(number, self.handle)
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)

    def release(self) -> None:
        """Hand over those that came, and those that will come, to the handlers of uvicorn."""
        early, self._early = self._early or [], None
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        for number in early:
            signal.raise_signal(number)


_ending = _EndingSignals()


def serve(
    *,
    host: Annotated[str | None, Option(help="Address; default 127.0.0.1.")] = None,
    port: Annotated[int | None, Option(help="Port, 0 for a free one; default 8000.")] = None,
    insecure: Annotated[
        bool | None, Option("--insecure", help="Listen on any address, even without keys.")
    ] = None,
    workers: Annotated[int, Option(min=1, help="Number of processes.")] = 1,
) -> None:
    """Start the service. Every option has a variable, too: RPRIME_HOST, RPRIME_PORT, ..."""
    settings = _settings(host=host, port=port, insecure=insecure)
    _refuse_unsafe(settings, workers)
    settings = _with_files(settings)
    if workers > 1:
        # They share their metrics through a folder for as long as they run.
        folder = tempfile.mkdtemp(prefix="rprime-metrics-")
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    from rprime.server import logs

    logs.configure()
    _refuse_unusable(settings)
    listener = _listen(settings) if settings.uds is None else _listen_at(settings.uds)
    listener.set_inheritable(True)
    # A hangup only ends a service whose terminal is closed.
    if not sys.stdin.isatty():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _ending.hold()
    _announce(settings, listener)
    try:
        _run(settings, listener, workers)
    finally:
        if settings.uds is not None:
            settings.uds.unlink(missing_ok=True)


def _settings(**options: Any) -> "Settings":  # noqa: ANN401 - Pydantic types them
    from rprime.settings import unknown_variables

    if unknown := unknown_variables(os.environ):
        for name, nearest in unknown.items():
            hint = "" if nearest is None else f"; did you mean {nearest}?"
            say(f"{name}: there is no such setting{hint}")
        raise Exit(Status.USAGE)
    return settings_of(**{name: value for name, value in options.items() if value is not None})


def _refuse_unsafe(settings: "Settings", workers: int) -> None:
    if not (settings.loopback or settings.insecure or settings.keys_file):
        refuse(
            f"will not listen on {settings.host} for everyone who can reach it; set "
            "RPRIME_KEYS_FILE to a file of rprime keys create, or RPRIME_INSECURE=1 (--insecure) "
            "if that is meant"
        )
    if not (settings.loopback or settings.keys_file or settings.hosts):
        # Else a page of any site could read the history through the browser of who may reach it.
        refuse(
            "without keys the service answers to known names only; set RPRIME_HOSTS to those by "
            "which it is asked, such as localhost,127.0.0.1, or to * if any will do"
        )
    if settings.key_requests_per_minute is not None and settings.keys_file is None:
        refuse("RPRIME_KEY_REQUESTS_PER_MINUTE counts for each key: set RPRIME_KEYS_FILE, too")
    if workers > 1 and settings.store.startswith("sqlite"):
        refuse(
            "SQLite belongs to one process; for several workers set RPRIME_STORE to a "
            "PostgreSQL URL, or to none"
        )
    if settings.keys_file is not None:
        from rprime.auth import keys

        # The first key may be made while the service runs; until then it is closed.
        with refusing(keys.KeyFileError), suppress(keys.MissingKeyFileError):
            keys.read(settings.keys_file)


def _with_files(settings: "Settings") -> "Settings":
    """Return settings with as many connections as this process may open files for."""
    from rprime.server.connections import allow_files

    limits = settings.limits
    allowed = allow_files(limits.connections)
    if allowed < 1 or (allowed < limits.connections and "connections" in limits.model_fields_set):
        refuse(
            f"{limits.connections} connections (RPRIME_LIMITS_CONNECTIONS) need more open files "
            f"than the system allows this process, which are enough for {max(0, allowed)}; raise "
            "`ulimit -n` or LimitNOFILE"
        )
    allowed_limits = limits.model_copy(update={"connections": allowed})
    return settings.model_copy(update={"limits": allowed_limits})


def _refuse_unusable(settings: "Settings") -> None:
    """Open the store once before anybody is told that the service listens."""
    from rprime.routes.store_lifespan import database_options
    from rprime.store import StoreError, StoreFullError, StoreUnavailableError, open_store

    if settings.store != "none":
        # It may come later: until then the service is not ready.
        with refusing(StoreError), suppress(StoreUnavailableError, StoreFullError):
            open_store(settings.store, options=database_options(settings)).close()


def _listen(settings: "Settings") -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    address = (settings.host, settings.port)
    with attempting(f"listen on {settings.host}:{settings.port}"):
        return socket.create_server(address, family=family, backlog=_BACKLOG)


def _listen_at(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    with attempting(f"listen on {path}"):
        if path.exists() and stat.S_ISSOCK(path.stat().st_mode):
            # That of a service that was killed goes, not that of one that runs.
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(str(path))
                except ConnectionRefusedError:
                    path.unlink()
        # The mode of the socket is that of its creation: nobody connects before it is set.
        before = os.umask(0o777 - 0o660)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        listener.listen(_BACKLOG)
    return listener


def _announce(settings: "Settings", listener: socket.socket) -> None:
    import structlog

    if settings.uds is not None:
        echo(f"rprime listens on unix:{settings.uds}")
        return
    if settings.loopback:
        structlog.get_logger().info(
            "loopback_only",
            detail="Only this machine can reach the service; RPRIME_HOST, with "
            "RPRIME_KEYS_FILE or RPRIME_INSECURE=1, opens it to others.",
        )
    host, port = listener.getsockname()[:2]
    base = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    echo(f"rprime listens on {base}, documentation at {base}/docs")


def _run(settings: "Settings", listener: socket.socket, workers: int) -> None:
    import uvicorn

    from rprime.server.protocol import HttpProtocol

    config = uvicorn.Config(
        partial(_application, settings),
        factory=True,
        workers=workers,
        http=HttpProtocol,
        lifespan="on",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        # It would believe every proxy on this machine: `TrustedProxies` does this.
        proxy_headers=False,
        backlog=_BACKLOG,
        # A worker that starts on a busy machine answers late; after 5 s it was ended.
        timeout_worker_healthcheck=30,
        timeout_keep_alive=settings.limits.keep_alive_seconds,
        timeout_graceful_shutdown=settings.stop_seconds,
    )
    if workers == 1:
        uvicorn.Server(config).run(sockets=[listener])
    else:
        from rprime.server.supervisor import Supervisor

        processes = Supervisor(config, sockets=[listener])
        _ending.release()
        processes.run()


def _application(settings: "Settings") -> "FastAPI":
    # Runs in the process that serves, after uvicorn has set its handlers, so that the workers wait
    # for signals and have the log, too.
    _ending.release()
    import asyncio

    from rprime.app import create_app
    from rprime.server import logs
    from rprime.server.supervisor import stop_with_parent

    logs.configure()
    stop_with_parent()
    app = create_app(settings)
    keyring = app.state.services.keyring
    if keyring is not None:
        # Now, so that the log has at the start what is wrong with the file.
        keyring.refresh()
    if not sys.stdin.isatty():
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, _reload, keyring)
    # What is there now stays: looking through all of it again and again for garbage would stop
    # requests that make many objects, a trend above all, for tens of milliseconds.
    gc.collect()
    gc.freeze()
    # With a thousand connections looking for garbage took a fifth of the time, and found little.
    gc.set_threshold(20_000, 20, 100)
    return app


def _reload(keyring: "Keyring | None") -> None:
    import structlog

    if keyring is not None:
        keyring.reload()
    structlog.get_logger(__name__).info("reloaded", detail="The settings need a restart.")
