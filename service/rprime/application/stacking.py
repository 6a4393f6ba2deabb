"""Evaluate requests that are alike as one stack of tables."""

from operator import attrgetter

from rprime.application.request import EvaluationRequest
from rprime.core.evaluate import Evaluation, evaluate_stack
from rprime.core.intervals.variance import MOST_BY_DOTS
from rprime.core.options import SCORE_OPTIONS, Options
from rprime.core.table import ConfusionTable

MOST_CLASSES = MOST_BY_DOTS
"""A stack saves calls of numpy; in larger tables the arithmetic dominates. Up to this size the
values in a stack equal those of a single table to the last digit."""

Key = tuple[object, ...]


def evaluate_together(evaluation_requests: list[EvaluationRequest]) -> list[Evaluation]:
    """Evaluate requests of one key, several of them as one stack."""
    if len(evaluation_requests) == 1:
        return [evaluation_requests[0].evaluate()]
    evidence = [evaluation_request.evidence for evaluation_request in evaluation_requests]
    tables = ConfusionTable.stack([read.table for read in evidence])
    return evaluate_stack(
        tables, [read.labels for read in evidence], evaluation_requests[0].options
    )


def stack_key(evaluation_request: EvaluationRequest) -> Key | None:
    """Return what the tables of one stack share; None if a request cannot be stacked."""
    evidence, options = evaluation_request.evidence, evaluation_request.options
    table, items = evidence.table, evidence.items
    unequal = items is not None and not (items.groups is items.weights is None)
    alone = unequal or evidence.scores is not None or evidence.slices is not None
    # Requests rarely share a matrix or a weighting.
    has_matrix = not (options.cost is options.cell_weights is options.kappa_weights is None)
    if alone or table.k > MOST_CLASSES or has_matrix:
        return None
    omissions = (table.unclassified is not None, table.spurious is not None)
    return (table.k, table.weighted, *omissions, _shared_options(options))


_UNSHARED = ("cost", "cell_weights", "kappa_weights", *SCORE_OPTIONS)
_shared_options = attrgetter(*(f for f in Options.__dataclass_fields__ if f not in _UNSHARED))
