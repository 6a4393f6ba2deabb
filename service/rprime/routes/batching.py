"""Evaluate small requests that arrive together as one stack of tables."""

import asyncio
from operator import attrgetter

from rprime.application import EvaluationRequest
from rprime.core.evaluate import Evaluation, evaluate_stack
from rprime.core.intervals.variance import MOST_BY_DOTS
from rprime.core.options import SCORE_OPTIONS, Options
from rprime.core.table import ConfusionTable

MOST_CLASSES = MOST_BY_DOTS
"""A stack saves calls of numpy; in larger tables the arithmetic dominates. Up to this size the
values in a stack equal those of a single table to the last digit."""
MOST_TOGETHER = 64
"""Bounds the wait for other requests to a few milliseconds."""

Key = tuple[object, ...]


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
            found = evaluate_together([evaluation_request for evaluation_request, _ in group])
        except Exception as error:  # noqa: BLE001 (the request that fails gets it, alone)
            if len(group) > 1:
                for one in group:
                    self.waiting[key] = [one]
                    self.answer(key)
            elif not group[0][1].done():
                group[0][1].set_exception(error)
            return
        for (_, future), evaluation in zip(group, found, strict=True):
            if not future.done():
                future.set_result(evaluation)


def evaluate_together(evaluation_requests: list[EvaluationRequest]) -> list[Evaluation]:
    """Evaluate requests of one key, several of them as one stack."""
    if len(evaluation_requests) == 1:
        return [evaluation_requests[0].evaluate()]
    evidence = [evaluation_request.evidence for evaluation_request in evaluation_requests]
    tables = ConfusionTable.stack([one.table for one in evidence])
    return evaluate_stack(tables, [one.labels for one in evidence], evaluation_requests[0].options)


def stack_key(evaluation_request: EvaluationRequest) -> Key | None:
    """Return what the tables of one stack share; None if a request cannot be stacked."""
    evidence, options = evaluation_request.evidence, evaluation_request.options
    table, items = evidence.table, evidence.items
    grouped = items is not None and items.groups is not None
    alone = grouped or evidence.scores is not None or evidence.slices is not None
    # Requests rarely share a matrix or a weighting.
    has_matrix = not (options.cost is options.cell_weights is options.kappa_weights is None)
    if alone or table.k > MOST_CLASSES or has_matrix:
        return None
    omissions = (table.unclassified is not None, table.spurious is not None)
    return (table.k, table.weighted, *omissions, _shared_options(options))


_UNSHARED = ("cost", "cell_weights", "kappa_weights", *SCORE_OPTIONS)
_shared_options = attrgetter(*(f for f in Options.__dataclass_fields__ if f not in _UNSHARED))
