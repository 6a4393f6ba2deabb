"""Services that start anew: here the start itself matters, or what a process takes."""

import subprocess
from typing import Any

import pytest

from tests.forked_command import Start


@pytest.fixture(scope="session")
def starting() -> Start:
    """Return what starts a service."""

    def started(*command: Any, **options: Any) -> "subprocess.Popen[str]":
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)

    return started
