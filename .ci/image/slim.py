"""Remove from an environment what the service never loads: `python slim.py /opt/rprime`.

The build of the image calls it, and then `smoke.py`, which tells whether too much is gone.
"""

# ruff: noqa: INP001, T201 - a program of the build, in no package

import shutil
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

# Tests and sources of all packages. Of Arrow, what talks to servers, and what compiles against it.
# The second backend of zstandard. Of SciPy, all but linear algebra, optimization and special
# functions. The test tools of databases.
UNUSED = """
    **/tests **/*.a **/*.c **/*.h **/*.hpp **/*.pxd **/*.pxi **/*.pyi **/*.pyx
    pyarrow/include pyarrow/includes pyarrow/src
    pyarrow/libarrow_flight.so.* pyarrow/libarrow_s3.so.*
    pyarrow/_flight.* pyarrow/_s3fs.*
    pyarrow/libarrow_python.so pyarrow/libarrow_python.so.*.*.*
    zstandard/_cffi.* zstandard/backend_cffi.py
    scipy/cluster scipy/datasets scipy/fftpack scipy/integrate scipy/interpolate scipy/io scipy/misc
    scipy/ndimage scipy/odr scipy/signal scipy/stats
    sqlalchemy/testing alembic/testing
"""


def main(environment: Path) -> None:
    """Slim an environment, and say by how much."""
    before = _size(environment)
    for folder in environment.glob("lib/python*/site-packages"):
        for pattern in UNUSED.split():
            for found in list(folder.glob(pattern)):
                _remove(found)
    for path in _files(environment):
        strip(path)
    print(f"{environment}: {before >> 20} MiB before, {_size(environment) >> 20} MiB now")


def strip(path: Path) -> None:
    """Cut off what a shared library has behind its segments: symbols and data for debuggers.

    The dynamic loader reads segments and no sections, so the table of sections, which comes last,
    goes as well.
    """
    content = path.read_bytes()
    if content[:6] != b"\x7fELF\x02\x01":  # ELF of 64 bits, little-endian
        return
    [table] = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    places = (struct.unpack_from("<Q16xQ", content, table + i * size + 8) for i in range(count))
    end = max([table + size * count, *(start + length for start, length in places)])
    if end < len(content):
        kept = bytearray(content[:end])
        struct.pack_into("<Q", kept, 40, 0)  # no table of sections
        struct.pack_into("<HH", kept, 60, 0, 0)  # of no entries
        path.write_bytes(kept)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in _files(folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
