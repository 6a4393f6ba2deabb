"""Evaluation of large JSON bodies in processes of their own."""

import asyncio
import pickle
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from rprime.application.evaluate import RenderedReport, ResponseOptions, UnstoredEvaluation
from rprime.application.worker_protocol import ANSWERED, ASKED
from rprime.problems.problem import Problem
from rprime.routes.services import get_services
from rprime.server.pools import ThreadPool, WorkerPool
from rprime.settings import Limits

LARGE = 1024 * 1024
"""Bytes. A larger JSON body is decoded in another process, since that holds the interpreter."""
MODERATE = 4 * LARGE
"""Bytes. As long as no process has started, such a body is better decoded in a thread: that holds
the interpreter for less than a tenth of the time that a process needs to start."""
Result = TypeVar("Result")


def needs_worker(request: Request, size: int) -> bool:
    """Tell where a JSON body of so many bytes is answered best."""
    if size <= LARGE:
        return False
    processes = get_services(request).workers
    return processes.ready or size > MODERATE


async def evaluate_json_in_worker(
    request: Request, body: list[bytes], options: ResponseOptions
) -> RenderedReport | UnstoredEvaluation:
    """Answer a request with a large JSON body.

    Parameters
    ----------
    request
        Its body is read.
    body
        In pieces.
    options
        What is asked.

    Raises
    ------
    Problem
        400, 422; 503 if too many others are worked on.
    """
    processes = get_services(request).workers
    asked = pickle.dumps(options, protocol=5)
    answer = pickle.loads(await unless_disconnected(request, processes.ask(asked, body)))  # noqa: S301 (from our own process)
    if isinstance(answer, Problem):
        raise answer
    found: RenderedReport | UnstoredEvaluation = answer
    return found


async def unless_disconnected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Wait for work; end it when the client goes away.

    Parameters
    ----------
    request
        Its body is read.
    work
        What is cancelled then.

    Raises
    ------
    ClientDisconnect
        If the client goes away first.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.wait([working, leaving])


def thread_pool(limits: Limits) -> ThreadPool:
    """Make the pool for columns."""
    return ThreadPool(limits.large_requests, limits.large_waiting)


def worker_pool(limits: Limits) -> WorkerPool:
    """Make the pool for large JSON bodies."""
    # -P: what lies in the working directory is not imported.
    command = [sys.executable, "-P", "-m", "rprime.application.worker"]
    return WorkerPool(
        command, ASKED, ANSWERED, most=limits.large_requests, waiting=limits.large_waiting
    )
