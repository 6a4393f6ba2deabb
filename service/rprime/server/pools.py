"""Pools for heavy work: a bounded number of places, of threads and of processes."""

import asyncio
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from struct import Struct
from threading import Thread
from typing import TypeVar

from rprime.problems.problem import Problem

RETRY_SECONDS = 2
_GRACE_SECONDS = 3
Result = TypeVar("Result")


class Slots:
    """A bounded number of places to work, and a bounded queue before them.

    Parameters
    ----------
    most
        How many may work at the same time.
    waiting
        How many more may wait.
    """

    def __init__(self, most: int, waiting: int) -> None:
        self.most = most
        self._waiting = waiting
        self._taken = 0
        self._queue = asyncio.Semaphore(most)

    @property
    def taken(self) -> int:
        """How many work or wait."""
        return self._taken

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place and hold it.

        Raises
        ------
        Problem
            503 if too many wait already.
        """
        if self._taken >= self.most + self._waiting:
            raise overloaded("Other large requests take all the places, and more are waiting.")
        self._taken += 1
        try:
            async with self._queue:
                yield
        finally:
            self._taken -= 1


def overloaded(why: str) -> Problem:
    """Give the problem of who comes at a bad time."""
    return Problem("overloaded", why, headers={"Retry-After": str(RETRY_SECONDS)})


class ThreadPool:
    """Places for work that leaves the interpreter to others most of the time."""

    def __init__(self, most: int, waiting: int) -> None:
        self.slots = Slots(most, waiting)
        self._executor: ThreadPoolExecutor | None = None

    def start(self, work: Callable[[], Result]) -> "asyncio.Future[Result]":
        """Start work in a thread; the caller holds a place."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self.slots.most, "rprime-columns")
        return asyncio.get_running_loop().run_in_executor(self._executor, work)

    def close(self) -> None:
        """Let go of the threads once they have nothing to do."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)


class WorkerPool:
    """Places for work that would hold the interpreter: processes, started when needed first.

    Parameters
    ----------
    command
        Starts a process that answers through the socket that is its standard input; it sends a
        byte as soon as it can be asked.
    asked, answered
        What comes before a question and its body, and before an answer: their sizes.
    most, waiting
        As `Slots` takes them.
    """

    def __init__(
        self, command: Sequence[str], asked: Struct, answered: Struct, *, most: int, waiting: int
    ) -> None:
        self.slots = Slots(most, waiting)
        self._command = command
        self._asked, self._answered = asked, answered
        self._idle: list[_Process] = []
        self._warming: asyncio.Task[None] | None = None

    @property
    def ready(self) -> bool:
        """Whether a process waits for a question; if not, one is started for the next."""
        if not self._idle and self._warming is None:
            self._warming = asyncio.create_task(self._warm())
        return bool(self._idle)

    async def _warm(self) -> None:
        try:
            self._idle.append(await self._started())
        except OSError:
            # Who needs it tries again, and is told.
            pass
        finally:
            self._warming = None

    async def ask(self, question: bytes, body: Sequence[bytes]) -> bytearray:
        """Ask a process.

        Who is cancelled meanwhile ends the process, since nobody waits for it any more.

        Raises
        ------
        Problem
            503 if there is no place, or the process has ended.
        """
        async with self.slots.place():
            if self._warming is not None and not self._idle:
                await asyncio.shield(self._warming)
            try:
                process = self._idle.pop() if self._idle else await self._started()
            except OSError:
                raise overloaded("No process could be started for the request.") from None
            try:
                size = self._asked.pack(len(question), sum(map(len, body)))
                answer = await process.ask([size, question, *body], self._answered)
            except OSError:
                process.kill()
                raise overloaded("The process that worked on the request has ended.") from None
            except BaseException:
                process.kill()
                raise
            self._idle.append(process)
            return answer

    async def _started(self) -> "_Process":
        loop = asyncio.get_running_loop()
        process = await loop.run_in_executor(None, _Process, self._command)
        try:
            await process.greeted()
        except BaseException:
            process.kill()
            raise
        return process

    def close(self) -> None:
        """End the processes."""
        if self._warming is not None:
            self._warming.cancel()
        for process in self._idle:
            process.end()
        self._idle.clear()


class _Process:
    """A process and the socket to it."""

    def __init__(self, command: Sequence[str]) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(command, stdin=theirs.fileno())  # noqa: S603 (ours)
        self._socket.settimeout(0)

    async def greeted(self) -> None:
        """Wait until it has started."""
        await self._received(1)

    async def ask(self, parts: Sequence[bytes], answered: Struct) -> bytearray:
        loop = asyncio.get_running_loop()
        for part in parts:
            await loop.sock_sendall(self._socket, part)
        (size,) = answered.unpack(await self._received(answered.size))
        return await self._received(size)

    async def _received(self, size: int) -> bytearray:
        loop = asyncio.get_running_loop()
        found = bytearray(size)
        view, place = memoryview(found), 0
        while place < size:
            count = await loop.sock_recv_into(self._socket, view[place:])
            if not count:
                raise ConnectionResetError
            place += count
        return found

    def kill(self) -> None:
        """End it whatever it does."""
        self._socket.close()
        self._process.kill()
        # In a thread, since the kernel takes its time to give much memory back.
        Thread(target=self._process.wait).start()

    def end(self) -> None:
        """Let it end by itself."""
        self._socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_SECONDS)
            return
        self._process.kill()
        self._process.wait()
