"""Evaluate small requests that arrive together as one stack of tables."""

import asyncio

from rprime.application import EvaluationRequest
from rprime.application.evaluate import Key, evaluate_together, stack_key
from rprime.core.evaluate import Evaluation

MOST_TOGETHER = 64
"""Bounds the wait for other requests to a few milliseconds."""


class RequestBatcher:
    """Evaluates the requests of one or two turns of the event loop together.

    Calls of numpy dominate the cost of a small table, and a stack takes hardly more calls than one
    table. There is no timer: a stack has the requests received by the end of the next turn, so a
    lone request is answered as fast as without batching.
    """

    def __init__(self) -> None:
        self.waiting: dict[Key, list[tuple[EvaluationRequest, asyncio.Future[Evaluation]]]] = {}

    async def evaluate(self, evaluation_request: EvaluationRequest) -> Evaluation:
        """Evaluate a request, together with those that arrive at the same time."""
        key = stack_key(evaluation_request)
        if key is None:
            return evaluation_request.evaluate()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Evaluation] = loop.create_future()
        group = self.waiting.setdefault(key, [])
        group.append((evaluation_request, future))
        if len(group) == 1:
            # One more turn admits requests whose bytes arrived while others were answered.
            loop.call_soon(loop.call_soon, self.answer, key)
        elif len(group) == MOST_TOGETHER:
            self.answer(key)
        return await future

    def answer(self, key: Key) -> None:
        """Evaluate all waiting requests of a key."""
        group = self.waiting.pop(key, [])
        try:
            evaluations = evaluate_together([evaluation_request for evaluation_request, _ in group])
        except Exception as error:  # noqa: BLE001 (the request that fails gets it, alone)
            if len(group) > 1:
                for member in group:
                    self.waiting[key] = [member]
                    self.answer(key)
            elif not group[0][1].done():
                group[0][1].set_exception(error)
            return
        for (_, future), evaluation in zip(group, evaluations, strict=True):
            if not future.done():
                future.set_result(evaluation)
