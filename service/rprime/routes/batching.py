"""Gathering: small requests that arrive together are evaluated as one stack."""

import asyncio

from rprime.application import EvaluationRequest
from rprime.core.evaluate import Evaluation, evaluate_stack
from rprime.core.intervals.variance import MOST_BY_DOTS
from rprime.core.options import SCORE_OPTIONS, Options
from rprime.core.table import ConfusionTable

MOST_CLASSES = MOST_BY_DOTS
"""Larger tables cost more in numbers than in calls, and a stack saves only calls. And up to here
a table gets the same in a stack as alone, to the last digit."""
MOST_TOGETHER = 64
"""So that nobody waits for more than some milliseconds of others' requests."""

Key = tuple[object, ...]


class RequestBatcher:
    """Requests of one or two turns of the event loop, evaluated together.

    The cost of a small table is that of calling numpy, and a stack of tables takes hardly more
    calls than one. Nothing waits for a timer: what has been received by the end of the next turn
    is what is evaluated, so that a lone request is answered as soon as without.
    """

    def __init__(self) -> None:
        self.waiting: dict[Key, list[tuple[EvaluationRequest, asyncio.Future[Evaluation]]]] = {}

    async def evaluate(self, evaluation_request: EvaluationRequest) -> Evaluation:
        """Evaluate an inquiry, with those that came at the same time."""
        key = stack_key(evaluation_request)
        if key is None:
            return evaluation_request.evaluate()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Evaluation] = loop.create_future()
        group = self.waiting.setdefault(key, [])
        group.append((evaluation_request, future))
        if len(group) == 1:
            # One turn more: it lets in whose bytes have arrived while others were answered.
            loop.call_soon(loop.call_soon, self.answer, key)
        elif len(group) == MOST_TOGETHER:
            self.answer(key)
        return await future

    def answer(self, key: Key) -> None:
        """Evaluate all that waits under a key."""
        group = self.waiting.pop(key, [])
        try:
            found = evaluate_together([evaluation_request for evaluation_request, _ in group])
        except Exception as error:  # noqa: BLE001 (whatever it is, it is the answer to all)
            for _, future in group:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), evaluation in zip(group, found, strict=True):
            if not future.done():
                future.set_result(evaluation)


def evaluate_together(evaluation_requests: list[EvaluationRequest]) -> list[Evaluation]:
    """Evaluate inquiries of one key, as one stack where there are several."""
    if len(evaluation_requests) == 1:
        return [evaluation_requests[0].evaluate()]
    evidence = [evaluation_request.evidence for evaluation_request in evaluation_requests]
    return evaluate_stack(
        ConfusionTable.stack([one.table for one in evidence]),
        [one.labels for one in evidence],
        evaluation_requests[0].options,
    )


def stack_key(evaluation_request: EvaluationRequest) -> Key | None:
    """Give what the tables of one stack have in common; None where one stays alone."""
    evidence, options = evaluation_request.evidence, evaluation_request.options
    table, items = evidence.table, evidence.items
    grouped = items is not None and items.groups is not None
    alone = grouped or evidence.scores is not None
    if alone or table.k > MOST_CLASSES or has_matrix(options):
        return None
    return (
        table.k,
        table.weighted,
        table.unclassified is not None,
        table.spurious is not None,
        *(getattr(options, name) for name in OPTIONS),
    )


MATRICES = ("cost", "cell_weights", "kappa_weights")
OPTIONS = tuple(
    name for name in Options.__dataclass_fields__ if name not in (*MATRICES, *SCORE_OPTIONS)
)


def has_matrix(options: Options) -> bool:
    """Whether an option is a matrix, or a weighting that hardly anybody else asks for."""
    return any(getattr(options, name) is not None for name in MATRICES)
