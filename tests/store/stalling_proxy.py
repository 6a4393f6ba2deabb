"""A TCP proxy before PostgreSQL that can hold what passes through it, or drop it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Condition, Thread
from typing import Literal

from sqlalchemy import URL

Mode = Literal["pass", "hold", "drop"]


class StallingProxy:
    """Accepts connections and bytes in every mode, so that the kernel acknowledges them.

    Parameters
    ----------
    server
        The socket of the server.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._mode: Mode = "pass"
        self._changed = Condition()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._threads = [Thread(target=self._accept)]
        self._threads[0].start()

    def switch(self, mode: Mode) -> None:
        """Pass, hold or drop what comes from now on."""
        with self._changed:
            if self._mode == "drop":
                # Both ends wait for what is gone.
                self._disconnect()
            self._mode = mode
            self._changed.notify_all()

    def close(self) -> None:
        """End the proxy and its connections."""
        # This wakes the thread that accepts; to close it would not.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self._listener.close()
        self.switch("pass")
        self._disconnect()
        for thread in self._threads[1:]:
            thread.join()

    def _disconnect(self) -> None:
        for end in self._sockets:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._sockets += [client, server]
                for ends in ((client, server), (server, client)):
                    self._threads.append(Thread(target=self._pump, args=ends))
                    self._threads[-1].start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with source:
            with suppress(OSError):
                while data := source.recv(65536):
                    with self._changed:
                        self._changed.wait_for(lambda: self._mode != "hold")
                        dropping = self._mode == "drop"
                    if not dropping:
                        target.sendall(data)
            with suppress(OSError):
                target.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxied(url: URL) -> Iterator[tuple[StallingProxy, str]]:
    """Start a proxy before a server; the URL that leads through it."""
    proxy = StallingProxy(f"{url.query['host']}/.s.PGSQL.5432")
    through = url.set(host="127.0.0.1", port=proxy.port, query={})
    try:
        yield proxy, through.render_as_string(hide_password=False)
    finally:
        proxy.close()
