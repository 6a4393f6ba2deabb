"""How long the pages of a long history take.

PYTHONPATH=. sh .ci/venv python tests/bench/pages.py [evaluations]
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import httpx

from rprime.app import create_app
from rprime.settings import Settings
from rprime.store import open_store
from tests.history_service import stored

PAGES = {
    "projects": "/ui/projects",
    "the newest evaluations": "/ui/projects/digits",
    "of one model that failed": "/ui/projects/digits?model=m1&verdict=fail",
    "by kappa": "/ui/projects/digits?order=kappa",
    "by version": "/ui/projects/digits?order=-version",
    "a model, 200 versions": "/ui/projects/digits/models/m1?limit=200",
}


def main() -> None:
    """Fill a store, ask for each page thrice, and print the fastest."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder)}/rprime.db"
        _fill(url, count)
        print(f"{count:,} evaluations")
        asyncio.run(_ask(url))


def _fill(url: str, count: int) -> None:
    store = open_store(url)
    for future in [store.put_many([store.pack(new)]) for new in stored(count)]:
        future.result()
    store.close()


async def _ask(url: str) -> None:
    app = create_app(Settings(store=url))
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        for name, path in PAGES.items():
            seconds = [await _timed(client, path) for _ in range(3)]
            print(f"{name:26} {1000 * min(seconds):7.0f} ms, at first {1000 * seconds[0]:.0f} ms")


async def _timed(client: httpx.AsyncClient, path: str) -> float:
    begun = time.perf_counter()
    answer = await client.get(path)
    assert answer.status_code == httpx.codes.OK, answer.text
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
