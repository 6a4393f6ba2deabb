"""The asynchronous client: as the other one, without holding up the event loop."""

import asyncio
import inspect
import pydoc
import time
from typing import Any

import httpx
import pytest

import rprime
from rprime import AsyncClient, Client, ProblemError, ServiceUnavailableError
from tests.failing_service import BUSY, DROPPED, Step, flaky, stopped

TABLE: Any = {"confusion_matrix": [[50, 3], [4, 60]], "labels": ["a", "b"]}
GATES = {"rules": [{"index": "accuracy", "min_value": 0.5}]}
REPORT = Step(body=rprime.evaluate(**TABLE).content)


def test_every_method_answers_as_the_other_client(server: str) -> None:
    async def ask() -> tuple[object, ...]:
        async with AsyncClient(server) as client:
            batch = await client.evaluate_batch([TABLE])
            return (
                (await client.evaluate(**TABLE, gates=GATES)).content,
                [getattr(outcome, "content", None) for outcome in batch],
                (await client.compare(TABLE, TABLE)).content,
                (await client.lint(GATES, **TABLE, replicates=100)).content,
                (await client.plan(GATES, **TABLE)).content,
                await client.indices(),
                await client.index("overall", "r_prime"),
                await client.version(),
                await client.ready(),
            )

    with Client(server) as client:
        expected = (
            client.evaluate(**TABLE, gates=GATES).content,
            [client.evaluate(**TABLE).content],
            client.compare(TABLE, TABLE).content,
            client.lint(GATES, **TABLE, replicates=100).content,
            rprime.plan(GATES, **TABLE).content,
            client.indices(),
            client.index("overall", "r_prime"),
            client.version(),
            True,
        )
    assert asyncio.run(ask()) == expected


def test_the_methods_and_their_arguments_are_the_same() -> None:
    names = [name for name in dir(Client) if not name.startswith("_") and name != "close"]
    assert {"evaluate", "evaluate_batch", "compare", "lint", "plan", "index"} <= {*names}
    for name in names:
        ours, theirs = getattr(AsyncClient, name), getattr(Client, name)
        assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
        assert ours.__doc__ == theirs.__doc__


def test_help_shows_the_arguments_the_result_and_the_text() -> None:
    for whose in (Client, AsyncClient):
        shown = pydoc.plain(pydoc.render_doc(whose))
        assert "drop: float | None = None" in shown
        assert "-> rprime.client.report.GatePlanReport" in shown
        assert "Compute how many items gates need to pass an unchanged model" in shown
    assert "Evaluate a classifier." in pydoc.plain(pydoc.render_doc(rprime.evaluate))


def test_one_call_has_one_idempotency_key_and_waits_without_blocking() -> None:
    async def ask(url: str) -> tuple[bytes, int]:
        turns = 0

        async def live() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0.01)
                turns += 1

        async with AsyncClient(url, backoff=0.2) as client:
            other = asyncio.create_task(live())
            report = await client.evaluate(**TABLE)
            other.cancel()
            return report.content, turns

    with flaky(BUSY, DROPPED, REPORT) as server:
        content, turns = asyncio.run(ask(server.url))
        assert len(server.seen) == 3
        assert len(set(server.keys)) == 1
    assert content == REPORT.body
    assert turns > 3


def test_calls_run_at_the_same_time() -> None:
    async def ask(url: str) -> None:
        async with AsyncClient(url) as client:
            await asyncio.gather(*(client.evaluate(**TABLE) for _ in range(5)))

    with flaky(Step(body=REPORT.body, after=1.0)) as server:
        start = time.monotonic()
        asyncio.run(ask(server.url))
        assert time.monotonic() - start < 4
        assert len(set(server.keys)) == 5


def test_problems_and_outages_are_exceptions(server: str) -> None:
    async def ask(url: str, **options: Any) -> None:
        async with AsyncClient(url, **options) as client:
            await client.evaluate(confusion_matrix=[[1, -1], [2, 3]])

    with pytest.raises(ProblemError) as caught:
        asyncio.run(ask(server))
    assert caught.value.errors[0].pointer == "/confusion_matrix/0/1"
    with pytest.raises(ServiceUnavailableError, match="after 2 attempts"):
        asyncio.run(ask(stopped(), retries=1, backoff=0.01))
    with flaky(Step(after=20)) as slow, pytest.raises(ServiceUnavailableError, match="in time"):
        asyncio.run(ask(slow.url, timeout=0.2))


def test_a_service_that_is_not_ready_is_said_to_be_so() -> None:
    async def ask() -> bool:
        async with AsyncClient(stopped()) as client:
            return await client.ready()

    assert not asyncio.run(ask())


def test_a_client_that_was_handed_in_stays_open(server: str) -> None:
    async def ask() -> int:
        async with httpx.AsyncClient(base_url=server) as http:
            async with AsyncClient(http=http) as client:
                await client.evaluate(**TABLE)
            return (await http.get("/livez")).status_code

    assert asyncio.run(ask()) == 200
