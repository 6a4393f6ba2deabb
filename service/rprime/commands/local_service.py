"""A service in this process, on a store that is open: the routes answer without a connection."""

import asyncio

import httpx

from rprime.app import create_app
from rprime.client.clients import Client
from rprime.settings import Settings
from rprime.store import Store


class _Here(httpx.BaseTransport):
    """Passes requests to the application."""

    def __init__(self, store: Store) -> None:
        app = create_app(Settings(store="none", keys_file=None, log_requests=False))
        app.state.services.store.use(store)
        self._app = httpx.ASGITransport(app)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return asyncio.run(self._answer(request))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        response = await self._app.handle_async_request(request)
        content = b"".join([part async for part in response.aiter_raw()])
        return httpx.Response(
            response.status_code, headers=response.headers, content=content, request=request
        )


def client_of(store: Store) -> Client:
    """Return a client of a service that has this store."""
    return Client("http://localhost", http=httpx.Client(transport=_Here(store)))
