"""Evaluate in this process, without a service: reports equal byte for byte."""

import secrets
import warnings
from collections.abc import Mapping, Sequence
from pkgutil import resolve_name
from typing import Any, TypeVar, cast

import numpy as np

from rprime.application.request import EvaluationRequest, read_request
from rprime.client.calls import EVALUATE, Call
from rprime.client.errors import ProblemError
from rprime.client.methods import Methods
from rprime.client.report import Report
from rprime.client.request import RequestFields, SideFields, encode
from rprime.core.published import Json
from rprime.evidence.coding import Integers
from rprime.evidence.reader import doubts
from rprime.problems.problem import Problem
from rprime.schemas.document import ArraysBody, Body
from rprime.settings import Limits
from rprime.tally.counting import tally

Result = TypeVar("Result")


class InProcess(Methods):
    """Answers the calls that need no history, within the limits of a request."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def ask(self, call: Call[Result]) -> Result:
        """Answer a call here, or raise the problem that the service would answer."""
        body, (path, _, query) = _body(call.content or b""), call.path.partition("?")
        evaluation_request = None
        try:
            if path == EVALUATE:
                evaluation_request = _read(body, self._limits)
                evaluation = evaluation_request.evaluate()
                content = evaluation_request.report(
                    evaluation, include=query.removeprefix("include=").split("%2C")
                )
            else:
                answered = resolve_name(f"rprime.application.{_ANSWERS[path]}")
                content = answered(body, self._limits)
        except Problem as problem:
            raise ProblemError(problem.document(local=True)) from None
        answer = call.read(content, {})
        if isinstance(answer, Report) and evaluation_request is not None:
            answer.keep(evaluation_request)
        return answer


_MARK = secrets.token_hex()
"""Begins the text in place of an array."""


def _body(content: bytes | Json) -> Body:
    """Return a request with its arrays beside the JSON."""
    if isinstance(content, bytes):
        return content
    arrays: dict[str, Any] = {}
    return ArraysBody(encode(_marked(content, arrays)), arrays)


def _marked(members: Json, arrays: dict[str, Any]) -> Json:
    """Return members with marks in place of the arrays of numpy, which are added to `arrays`."""
    marked = dict(members)
    for name, value in members.items():
        if isinstance(value, np.ndarray) and value.ndim == _DIMENSIONS.get(name, 1):
            marked[name] = f"{_MARK}{len(arrays)}"
            arrays[marked[name]] = value if name in _NUMBERS else Integers(value)
        elif isinstance(value, dict) and name in _WITH_ARRAYS:
            marked[name] = _marked(value, arrays)
    return marked


_NUMBERS = {"sample_weight", "inclusion_probability", "y_score"}
_DIMENSIONS = {"y_score": 2}
_WITH_ARRAYS = {"baseline", "candidate", "slices"}


def _read(body: Body, limits: Limits) -> EvaluationRequest:
    evaluation_request = read_request(body, limits)
    if evaluation_request.store_request is not None:
        raise Problem(
            "no_store", "Nothing is kept in the process; a `rprime.Client` asks a service."
        )
    return evaluation_request


_ANSWERS = {
    "/v1/compare": "compare:compare_request",
    "/v1/gates/lint": "lint:lint_request",
    "/v1/gates/plan": "lint:plan_request",
    "/v1/studies/slices": "slice_search:search_request",
}
"""What in `rprime.application` answers, imported when it is first asked."""
_HERE = InProcess(Limits())
evaluate, compare, lint, plan = _HERE.evaluate, _HERE.compare, _HERE.lint, _HERE.plan
weak_slices = _HERE.weak_slices


def tallied(
    frame: object,
    *,
    labels: Sequence[str] | None = None,
    reject_below: float | None = None,
    slices: Sequence[str] = (),
    slice_cuts: Mapping[str, Sequence[float]] | None = None,
    slice_crossings: Sequence[Sequence[str]] = (),
    count: str | None = None,
) -> RequestFields:
    """Count the predictions of a frame, as evidence to evaluate here or by a service.

    The table is enough unless items are compared in pairs: a frame of billions of items becomes
    some kilobytes.

    Parameters
    ----------
    frame
        A frame of pandas, Polars (also lazy), Arrow, DuckDB, Dask or Spark, counted by that
        library. Its columns are `y_true` and `y_pred`, optionally `sample_weight` and
        `y_pred_baseline`, which becomes the baseline; without `y_pred`, columns `score:<label>`, of
        which the highest is predicted, the first of equal ones. Other columns are not read. Three
        columns of true class, prediction and `n`, `count` or the like are a table in long form.
    labels
        The classes in their order; default: those of the scores, else all that occur.
    reject_below
        Items whose highest score is below it are unclassified.
    slices
        Columns whose values are slices, besides columns `slice:<name>`.
    slice_cuts
        Of columns of numbers, the numbers at which slices begin, ascending.
    slice_crossings
        Names of slices whose values are combined.
    count
        The column of a table in long form that holds the numbers of items.

    Raises
    ------
    ValueError
        If columns are missing or their values cannot be counted.

    Examples
    --------
    >>> rprime.evaluate(**rprime.tallied(polars.scan_parquet("*.parquet")))  # doctest: +SKIP
    """
    tallies = tally(
        frame,
        labels=labels,
        reject_below=reject_below,
        slices={name: name for name in slices},
        cuts=slice_cuts,
        crossings=slice_crossings,
        count=count,
    )
    if tallies.without_order:
        for doubt in doubts(tallies.candidate.labels, {}, ()):
            warnings.warn(doubt.detail, stacklevel=2)
    request = cast("RequestFields", tallies.candidate.evidence())
    if tallies.baseline is not None:
        request["baseline"] = cast("SideFields", tallies.baseline.evidence())
    return request
