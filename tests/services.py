"""The command and the services of the tests: the program, its environment, and its end."""

import os
import ssl
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from tests.forked_command import Process

RPRIME = Path(sys.executable).with_name("rprime")
Serve = Callable[..., AbstractContextManager[httpx.Client]]
ServeApp = Callable[..., AbstractContextManager[httpx.Client]]
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody: services of tests speak no TLS. To read all authorities, as httpx does for each
client, takes longer than most tests."""


def environment(**variables: str) -> dict[str, str]:
    """Return the environment of the tests without the settings of a developer."""
    kept = {
        name: value
        for name, value in os.environ.items()
        # A worker that a test kills must not write a traceback into the log, which is JSON.
        if name not in {"PORT", "PYTHONFAULTHANDLER"} and not name.startswith("RPRIME_")
    }
    # Nobody has to learn that a service of a test stops.
    return kept | {"RPRIME_DRAIN_SECONDS": "0"} | variables


def stop(process: "Process") -> int:
    """Ask a service to stop; one that does not is ended, so that it disturbs no other test."""
    process.terminate()
    try:
        return process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
