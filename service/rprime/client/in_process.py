"""Evaluate in this process, without a service: reports equal byte for byte."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, Unpack

from pydantic import BaseModel

from rprime.application import compare_request, lint_request, read_request
from rprime.client.errors import ProblemError
from rprime.client.report import Comparison, GateLintReport, Report
from rprime.client.request import OptionFields, RequestFields, SideFields, body
from rprime.problems.problem import Problem
from rprime.settings import Limits


def evaluate(
    y_true: object = None,
    y_pred: object = None,
    *,
    table: bool = False,
    **request: Unpack[RequestFields],
) -> Report:
    """Evaluate a classifier here, without a service.

    Parameters
    ----------
    y_true, y_pred
        The true and the predicted label of every item, one kind of evidence: lists, arrays of
        numpy, series of pandas or polars, arrays of Arrow; missing in `y_pred` is unclassified.
    table
        Whether the report includes the table.
    **request
        Other evidence, and options, as `rprime.client.request.Request` lists them.

    Raises
    ------
    ProblemError
        The problem that the service would answer.

    Examples
    --------
    >>> evaluate(["cat", "dog"], ["cat", "cat"]).overall["accuracy"].value
    0.5
    """
    asked = body(y_true=y_true, y_pred=y_pred, **request)
    with _problems():
        evaluation_request = read_request(asked, Limits())
        return Report(evaluation_request.report(evaluation_request.evaluate(), with_table=table))


def compare(
    candidate: SideFields,
    baseline: SideFields,
    *,
    options: OptionFields | None = None,
    gates: Mapping[str, Any] | BaseModel | None = None,
) -> Comparison:
    """Compare a candidate with a baseline here, without a service.

    Parameters
    ----------
    candidate, baseline
        Evidence; the baseline may be other predictions for the same items, `{"y_pred": ...}`.

    Raises
    ------
    ProblemError
        The problem that the service would answer.
    """
    asked = body(candidate=candidate, baseline=baseline, options=options, gates=gates)
    with _problems():
        return Comparison(compare_request(asked, Limits())[0])


def lint(
    gates: Mapping[str, Any] | BaseModel,
    confusion_matrix: object,
    *,
    labels: object = None,
    pairing: Literal["paired", "unpaired"] | None = None,
    discordance: float | None = None,
    replicates: int | None = None,
    seed: int | None = None,
) -> GateLintReport:
    """Compute how often gates would fail an unchanged model, here, without a service.

    Parameters
    ----------
    gates
        The gates of a request, as a mapping.
    confusion_matrix, labels
        The confusion matrix of the unchanged model, and its class names.
    pairing, discordance
        How candidates will be compared, and how often just one of two models is right.
    replicates, seed
        The number of simulated comparisons, and the seed.

    Raises
    ------
    ProblemError
        The problem that the service would answer.
    """
    asked = body(
        gates=gates,
        confusion_matrix=confusion_matrix,
        labels=labels,
        pairing=pairing,
        discordance=discordance,
        replicates=replicates,
        seed=seed,
    )
    with _problems():
        return GateLintReport(lint_request(asked, Limits()))


@contextmanager
def _problems() -> Iterator[None]:
    try:
        yield
    except Problem as problem:
        raise ProblemError(problem.document()) from None
