"""Answer requests for the agreement between indices."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import orjson

from rprime.application.discrimination import validated_study
from rprime.core.arrays import Array
from rprime.core.catalog import find
from rprime.core.studies import correlation
from rprime.problems.problem import Problem, Violation, raise_violations, refuse
from rprime.schemas.document import Document, parse
from rprime.schemas.studies import AgreementRequest
from rprime.settings import Limits

MOST_VALUES = 40_000
"""Most values of a request, over all indices."""
MOST_NAMED = 20
"""Most pairs of models in an answer on which two indices disagree."""
WHOLE = "overall"
"""Name of the boxes of overall values."""

Json = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Models:
    """The values of several models, shape (index, model), NaN where undefined.

    Those of classes are arrays of shape (model,) by index, only for the boxes; the models are
    described by JSON members.
    """

    names: list[str]
    values: Array
    per_class: dict[str, dict[str, Array]]
    described: Json = field(default_factory=dict)


def agreement_document(
    body: bytes, limits: Limits, stored: Callable[[Document], Models] | None = None
) -> bytes:
    """Compute how far indices agree over the models in a JSON body, or those that it names.

    The latter are read by `stored`, which is None without a store: problem 409.
    """
    document = parse(body, limits.json_depth, (), ())
    if "project" not in document.rest:
        models = _posted(document)
    elif not document.rest.keys().isdisjoint({"values", "per_class"}):
        raise refuse("", "several_kinds", "Send either `values` or a `project`, not both.")
    elif stored is None:
        raise Problem("no_store")
    else:
        models = stored(document)
    names, values = models.names, models.values
    indices = [find("overall", name) or find("class", name) for name in names]
    directions = [correlation.direction(index) for index in indices]
    boxes: Json = {}
    overall = {WHOLE: dict(zip(names, values, strict=True))}
    for label, by_index in (overall | models.per_class).items():
        drawn = {name: correlation.box(numbers) for name, numbers in by_index.items()}
        boxes[label] = {name: asdict(box) for name, box in drawn.items() if box is not None}
    pairs = [_named(agreement, names) for agreement in correlation.agreements(values)]
    opposed = correlation.disagreements(values, directions, MOST_NAMED)
    disagreements = [_named(disagreement, names) for disagreement in opposed]
    members = {"pairs": pairs, "boxes": boxes, "disagreements": disagreements}
    return orjson.dumps(models.described | members)


def _posted(document: Document) -> Models:
    study = validated_study(AgreementRequest, document)
    raise_violations(_uneven(study))
    per_class = {
        label: {name: np.array(numbers, dtype=np.float64) for name, numbers in by_index.items()}
        for label, by_index in study.per_class.items()
    }
    return Models(list(study.values), np.array(list(study.values.values()), float), per_class)


def _uneven(study: AgreementRequest) -> Iterator[Violation]:
    """Find lists of different lengths."""
    models = len(next(iter(study.values.values())))
    if models * len(study.values) > MOST_VALUES:
        detail = f"At most {MOST_VALUES:,} values are allowed in all."
        yield Violation("/values", "too_much", detail)
    if WHOLE in study.per_class:
        detail = f"`{WHOLE}` is the name of the boxes of `values`; rename the class."
        yield Violation("/per_class", "reserved_name", detail)
    lists = [("/values", study.values)]
    lists += [("/per_class", by_index) for by_index in study.per_class.values()]
    for place, by_index in lists:
        if any(len(numbers) != models for numbers in by_index.values()):
            detail = f"Every list needs a value or null for each of the {models} models."
            yield Violation(place, "length", detail)


def _named(pair: correlation.Agreement | correlation.Disagreement, names: list[str]) -> Json:
    """Return the members of a pair of indices by their names; JSON has null for NaN."""
    members = {name: getattr(pair, name) for name in pair.__slots__}
    return members | {"a": names[pair.a], "b": names[pair.b]}
