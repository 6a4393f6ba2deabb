"""Libraries in C that take the place of system calls in a real service."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def compiled(source: str, folder: Path) -> Path:
    """Compile a library for `LD_PRELOAD`."""
    compiler = shutil.which("cc")
    if compiler is None:
        if os.environ.get("CI_RUN"):
            pytest.fail("a C compiler is missing")
        pytest.skip("a C compiler is missing")
    file, library = folder / "preloaded.c", folder / "preloaded.so"
    file.write_text(source)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, file], check=True)
    return library
