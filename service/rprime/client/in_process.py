"""Evaluate in this process, without a service: reports equal byte for byte."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

from rprime.application import compare_request, lint_request, plan_request, read_request
from rprime.client.calls import Call
from rprime.client.errors import ProblemError
from rprime.client.methods import Methods
from rprime.problems.problem import Problem
from rprime.settings import Limits

Result = TypeVar("Result")


class Answer(NamedTuple):
    """An answer from this process."""

    content: bytes
    headers: Mapping[str, str]


class InProcess(Methods):
    """Answers the calls that need no history.

    Parameters
    ----------
    limits
        The limits of a request.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def ask(self, call: Call[Result]) -> Result:
        """Answer a call here.

        Raises
        ------
        ProblemError
            The problem that the service would answer.
        """
        try:
            content = _ANSWERS[call.path](call.content or b"", self._limits)
        except Problem as problem:
            raise ProblemError(problem.document(local=True)) from None
        return call.read(Answer(content, {}))


def _report(body: bytes, limits: Limits, *, table: bool = False) -> bytes:
    evaluation_request = read_request(body, limits)
    if evaluation_request.store_request is not None:
        raise Problem("no_store")
    return evaluation_request.report(evaluation_request.evaluate(), with_table=table)


_ANSWERS: Mapping[str, Callable[[bytes, Limits], bytes]] = {
    "/v1/evaluate": _report,
    "/v1/evaluate?include=table": partial(_report, table=True),
    "/v1/compare": lambda body, limits: compare_request(body, limits)[0],
    "/v1/gates/lint": lint_request,
    "/v1/gates/plan": plan_request,
}
_HERE = InProcess(Limits())
evaluate, compare, lint, plan = _HERE.evaluate, _HERE.compare, _HERE.lint, _HERE.plan
