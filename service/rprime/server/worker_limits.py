"""Limits that the kernel keeps for a worker: on its memory and on its processor time."""

import resource
from contextlib import suppress
from pathlib import Path

CPU_SECONDS = 60
"""Of processor time for one request."""
_STATUS = Path("/proc/self/statm")
RESIDENT, _DATA = 1, 5
"""Which numbers of it have the pages in memory, and those of private memory."""


class WorkerLimits:
    """The limits of one request, relative to what the process has used before it.

    Only Linux says how much memory that is; elsewhere none is limited. `memory` bytes may be
    allocated, and `most` after any extension, None for any number.
    """

    def __init__(self, memory: int, *, most: int | None) -> None:
        allocated = memory_of_process(_DATA) if _STATUS.exists() else None
        self._most = self._last = resource.RLIM_INFINITY
        if allocated is not None:
            self._most = allocated + memory
            self._last = resource.RLIM_INFINITY if most is None else allocated + most
        self._set_memory(self._most)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(usage.ru_utime + usage.ru_stime) + CPU_SECONDS
        _set(resource.RLIMIT_CPU, seconds)

    def extend(self, size: int) -> None:
        """Allow some more bytes of memory."""
        if self._most != resource.RLIM_INFINITY:
            self._most += size
            self._set_memory(self._most)

    def lift(self) -> None:
        """Allow the most memory: what is computed from what was read needs a multiple of it."""
        self._set_memory(resource.RLIM_INFINITY)

    def _set_memory(self, size: int) -> None:
        limits = [limit for limit in (size, self._last) if limit != resource.RLIM_INFINITY]
        # Not RLIMIT_AS, which counts addresses that are only reserved.
        _set(resource.RLIMIT_DATA, min(limits, default=resource.RLIM_INFINITY))


def end_first() -> None:
    """Let the kernel end this process before others, should memory run out."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _set(limit: int, soft: int) -> None:
    hard = resource.getrlimit(limit)[1]
    if hard != resource.RLIM_INFINITY:
        soft = hard if soft == resource.RLIM_INFINITY else min(soft, hard)
    resource.setrlimit(limit, (soft, hard))


def memory_of_process(number: int) -> int:
    """Return one of the numbers of the memory of this process, in bytes."""
    return int(_STATUS.read_bytes().split()[number]) * resource.getpagesize()
