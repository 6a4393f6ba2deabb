"""A pool of worker processes: each reads and answers one request at a time.

What ends a worker, a crash of a library or a limit of its memory, ends nothing else.
"""

import asyncio
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from signal import Signals
from threading import Thread
from typing import Any, Self

from rprime.problems.problem import Problem
from rprime.server.cost import check_cost
from rprime.server.pools import Owner, Slots, overloaded
from rprime.server.worker_channel import ANSWER, CALL, END, GONE, KEPT, MESSAGE, READY, SIZE

_GRACE_SECONDS = 3
_BUFFER = 1 << 20
"""Bytes on their way to or from a worker; with less, a large body takes more turns of the loop."""
_FIRST_SECONDS = 5
"""A worker takes a second of CPU to start, which the first small requests can use better."""
_START_SECONDS = 60
_ABORT_SECONDS = 1
"""How long a worker may take to notice that its request was given up."""
SHARE = 0.5
"""The part of the workers that the requests of one key, or of one address without keys, may have
at a time: at least one."""


class WorkerEndedError(Exception):
    """The worker has ended instead of answering.

    status: as `subprocess.Popen.returncode`, None for one that does not go on.
    """

    def __init__(self, status: int | None) -> None:
        super().__init__()
        self.status = status


def reason_of(status: int | None) -> str:
    """Return the name of the signal that ended a process, "exit", or "hung" without a status."""
    if status is None:
        return "hung"
    return Signals(-status).name if status < 0 else "exit"


@dataclass(frozen=True, kw_only=True)
class Callbacks:
    """What the service does for a worker during its request.

    Parameters
    ----------
    keep
        Told of bytes that the worker keeps, or that its answer has; what it raises ends the
        request.
    call
        Answers what the worker asks; None: it asks nothing.
    """

    keep: Callable[[int], None]
    call: Callable[[bytes], Awaitable[bytes]] | None = None


class WorkerPool:
    """Workers that are started before they are needed, and replaced when they end.

    Parameters
    ----------
    command
        Starts a worker, whose standard input is a socket; see `rprime.server.worker_channel`.
    environment
        Variables of the workers beside those of the service.
    seconds
        How long a worker may take to read a body and to answer.
    wait_seconds
        How long a request may wait for a worker.
    ended
        Called with the reason when a worker is found to have ended before it was asked.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        most: int,
        waiting: int,
        seconds: float,
        wait_seconds: float,
        environment: Mapping[str, str],
        ended: Callable[[str], None],
    ) -> None:
        self.slots = Slots(
            most, waiting, seconds=wait_seconds, share=SHARE, what="Other large requests"
        )
        self._start = partial(_Worker.started, command, {**os.environ, **environment}, seconds)
        self._ended, self._seconds = ended, seconds
        self._idle: list[_Worker] = []
        self._first: asyncio.TimerHandle | None = None
        self._starting: asyncio.Task[None] | None = None
        self._is_closed = False

    def prepare_later(self) -> None:
        """Start the first worker in some seconds, if no request needs one before."""
        self._first = asyncio.get_running_loop().call_later(_FIRST_SECONDS, self.prepare)

    def prepare(self) -> None:
        """Start a worker in the background if none is idle."""
        if not self._idle and self._starting is None and not self._is_closed:
            self._starting = asyncio.create_task(self._prepare())

    async def _prepare(self) -> None:
        try:
            self._idle.append(await self._start())
        except OSError:
            # The request that needs a worker tries again, and is told.
            pass
        finally:
            self._starting = None

    async def ask(
        self,
        request: bytes,
        body: AsyncIterator[bytes],
        callbacks: Callbacks,
        *,
        owner: Owner,
        wait_seconds: float | None = None,
    ) -> bytes:
        """Ask a worker, to which the body is forwarded; cancelled, this ends the worker.

        503 if there is no place or no worker, a `WorkerEndedError` if the worker has ended. The
        owner is who has at most half of the places; `wait_seconds` replaces those of the pool.
        """
        check_cost("heavy")
        async with self.slots.place(owner, seconds=wait_seconds):
            worker = await self._taken()
            try:
                # The body is complete, so that only the worker itself can take time.
                async with asyncio.timeout(self._seconds):
                    answer = await worker.ask(request, body, callbacks)
            except (_HungError, TimeoutError):
                raise WorkerEndedError(None) from None
            except _LostError:
                raise WorkerEndedError(await worker.status()) from None
            finally:
                if worker.is_free:
                    self._idle.append(worker)
                else:
                    worker.kill()
                    self.prepare()
            return answer

    async def _taken(self) -> "_Worker":
        if self._first is not None:
            self._first.cancel()
        if self._starting is not None and not self._idle:
            await asyncio.shield(self._starting)
        while self._idle:
            worker = self._idle.pop()
            if not worker.has_ended:
                return worker
            self._ended(reason_of(await worker.status()))
            worker.kill()
        try:
            return await self._start()
        except OSError:
            raise overloaded("No process could be started for the request.") from None

    async def close(self) -> None:
        """Let the workers end by themselves."""
        self._is_closed = True
        if self._first is not None:
            self._first.cancel()
        if self._starting is not None:
            self._starting.cancel()
        while self._idle:
            await self._idle.pop().end()


class _LostError(OSError):
    """The worker does not read or write any more."""


class _HungError(_LostError):
    """The worker has not ended, but does not go on."""


class _Worker:
    """A process and the streams of the socket to it."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.is_free = True
        self._seconds: float = _START_SECONDS
        self._process, self._reader, self._writer = process, reader, writer
        self._refusal: Problem | None = None

    @classmethod
    async def started(
        cls, command: Sequence[str], environment: Mapping[str, str], seconds: float
    ) -> Self:
        """Start a process, and wait until it can be asked; bound the waits that follow."""

        def start() -> tuple[subprocess.Popen[bytes], socket.socket]:
            ours, theirs = socket.socketpair()
            with theirs:
                return subprocess.Popen(command, stdin=theirs.fileno(), env=environment), ours  # noqa: S603 (ours)

        process, ours = await asyncio.to_thread(start)
        reader, writer = await asyncio.open_unix_connection(sock=ours, limit=_BUFFER)
        writer.transport.set_write_buffer_limits(_BUFFER)
        worker = cls(process, reader, writer)
        try:
            async with worker._in_time():
                await worker._received(len(READY))
        except BaseException:
            worker.kill()
            raise
        worker._seconds = seconds
        return worker

    async def ask(self, request: bytes, body: AsyncIterator[bytes], callbacks: Callbacks) -> bytes:
        """Ask; afterwards the worker is free, or has to be killed."""
        self.is_free, self._refusal = False, None
        await self._send(SIZE.pack(len(request)), request)
        answering = asyncio.ensure_future(self._answer(callbacks))
        try:
            try:
                await self._feed(body, answering)
            except _LostError:
                raise
            except Exception:
                await self._abort(answering)
                raise
            await self._send(SIZE.pack(END))
            async with self._in_time():
                answer = await answering
            self.is_free = True
            return answer
        finally:
            await cancelled(answering)

    async def _feed(self, body: AsyncIterator[bytes], answering: "asyncio.Future[Any]") -> None:
        """Forward the body, up to its end or to an answer that comes before."""
        while self._refusal is None:
            reading = asyncio.ensure_future(anext(body, None))
            try:
                await asyncio.wait([reading, answering], return_when=asyncio.FIRST_COMPLETED)
                if answering.done():
                    break
                piece = reading.result()
            finally:
                await cancelled(reading)
            if piece is None:
                break
            if piece:
                await self._send(SIZE.pack(len(piece)), piece)
        if self._refusal is not None:
            raise self._refusal

    async def _abort(self, answering: "asyncio.Future[bytes]") -> None:
        """Tell the worker that the body ends here, and wait until it is free."""
        with suppress(OSError):  # a timeout is one, too
            async with asyncio.timeout(_ABORT_SECONDS):
                await self._send(SIZE.pack(GONE))
                await answering
            self.is_free = True

    async def _answer(self, callbacks: Callbacks) -> bytes:
        while True:
            kind, size = MESSAGE.unpack(await self._received(MESSAGE.size))
            if kind == ANSWER:
                # Counted before it is received: it is in memory until the client has it.
                callbacks.keep(size)
                return await self._received(size)
            if kind == CALL:
                assert callbacks.call is not None  # noqa: S101 (else the worker asks nothing)
                result = await callbacks.call(await self._received(size))
                await self._send(SIZE.pack(len(result)), result)
                continue
            assert kind == KEPT  # noqa: S101 (there is no other)
            try:
                callbacks.keep(size)
            except Problem as problem:
                self._refusal = problem

    async def _send(self, *parts: bytes) -> None:
        async with self._in_time():
            self._writer.writelines(parts)
            await self._writer.drain()

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        """Bound a wait for the worker."""
        try:
            async with asyncio.timeout(self._seconds):
                yield
        except TimeoutError:
            raise _HungError from None
        except OSError:
            raise _LostError from None

    async def _received(self, size: int) -> bytes:
        try:
            return await self._reader.readexactly(size)
        except (OSError, EOFError):
            raise _LostError from None

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    async def status(self) -> int:
        """Return the exit status of a process that closed its socket."""
        try:
            return await asyncio.to_thread(self._process.wait, _GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return await asyncio.to_thread(self._process.wait)

    def kill(self) -> None:
        """End it whatever it does."""
        self._writer.close()
        self._process.kill()
        # In a thread, since the kernel takes its time to give much memory back.
        Thread(target=self._process.wait).start()

    async def end(self) -> None:
        """Let it end by itself."""
        self._writer.close()
        await self.status()


async def cancelled(task: "asyncio.Future[Any]") -> None:
    """Cancel a task that may be done, and wait until it is."""
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        task.exception()
