"""Requests that arrive together get what each gets alone."""

import asyncio
import json
from dataclasses import replace

import httpx
import numpy as np
import pytest

from rprime.application import EvaluationRequest, read_request
from rprime.application.evaluate import MOST_CLASSES, stack_key
from rprime.routes.batching import MOST_TOGETHER, RequestBatcher
from rprime.settings import Limits

draw = np.random.default_rng(0)


def body(k: int = 4, **options: object) -> bytes:
    table = (draw.integers(0, 40, (k, k)) + 50 * np.eye(k, dtype=int)).tolist()
    return json.dumps({"confusion_matrix": table} | options).encode()


def evaluation_request(content: bytes) -> EvaluationRequest:
    return read_request(content, Limits())


async def at_once(evaluation_requests: list[EvaluationRequest]) -> list[object]:
    batcher = RequestBatcher()
    answers = (batcher.evaluate(request) for request in evaluation_requests)
    return await asyncio.gather(*answers, return_exceptions=True)


def test_many_at_once_get_what_each_gets_alone(server: str) -> None:
    bodies = [body(k, **more) for k in (2, 3, 10) for more in ({}, {"beta": 2}) for _ in range(12)]

    async def ask(client: httpx.AsyncClient, content: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        return (await client.post("/evaluate", content=content, headers=headers)).content

    async def together() -> list[bytes]:
        async with httpx.AsyncClient(base_url=server) as client:
            return await asyncio.gather(*(ask(client, content) for content in bodies))

    async def one_by_one() -> list[bytes]:
        async with httpx.AsyncClient(base_url=server) as client:
            return [await ask(client, content) for content in bodies]

    assert asyncio.run(together()) == asyncio.run(one_by_one())


def test_more_than_fit_into_one_stack_are_all_answered() -> None:
    evaluation_requests = [evaluation_request(body()) for _ in range(2 * MOST_TOGETHER + 3)]
    answers = asyncio.run(at_once(evaluation_requests))
    for request, answer in zip(evaluation_requests, answers, strict=True):
        assert request.report(answer) == request.report(request.evaluate())  # type: ignore[arg-type] # none has failed


def test_a_fault_of_the_engine_is_the_answer_to_all_of_its_stack_and_to_nobody_else() -> None:
    fine, other = evaluation_request(body()), evaluation_request(body())
    broken = replace(fine, options=replace(fine.options, indices=("no_such_index",)))
    results = asyncio.run(at_once([broken, other, broken]))
    assert [isinstance(answer, KeyError) for answer in results] == [True, False, True]


def test_one_who_goes_away_takes_nobody_along() -> None:
    async def leaving() -> object:
        batcher = RequestBatcher()
        gone = asyncio.ensure_future(batcher.evaluate(evaluation_request(body())))
        stays = asyncio.ensure_future(batcher.evaluate(evaluation_request(body())))
        await asyncio.sleep(0)
        gone.cancel()
        return await stays

    assert asyncio.run(leaving())


@pytest.mark.parametrize(
    "content",
    [body(MOST_CLASSES + 1), body(cost=(1 - np.eye(4)).tolist()), body(kappa_weights="linear")],
)
def test_what_gains_nothing_stays_alone(content: bytes) -> None:
    assert stack_key(evaluation_request(content)) is None
