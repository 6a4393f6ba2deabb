"""Services that start anew: here the start itself matters, or what a process takes."""

import subprocess
from typing import Any

import pytest

from tests.forked_command import Start
from tests.store.conftest import (
    make_database,
    postgresql_server,
    postgresql_url,
    pytest_collection_modifyitems,
    url,
    used_databases,
)

__all__ = [
    "make_database",
    "postgresql_server",
    "postgresql_url",
    "pytest_collection_modifyitems",
    "url",
    "used_databases",
]


@pytest.fixture(scope="session")
def starting() -> Start:
    """Return what starts a service."""

    def started(*command: Any, **options: Any) -> "subprocess.Popen[str]":
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)

    return started
