"""Answer requests for studies of indices: discrimination lines, and agreement over many models."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import orjson
from pydantic import BaseModel

from rprime.core.arrays import Array
from rprime.core.catalog import find
from rprime.core.index import Index
from rprime.core.published import members
from rprime.core.studies import (
    DiscriminationLine,
    Quartiles,
    TracedIndex,
    agreements,
    box,
    direction,
    disagreements,
    discriminate,
)
from rprime.problems.problem import Problem, Violation, pointer, raise_violations, refuse
from rprime.report.charts.discrimination import Panels
from rprime.schemas.document import Document, parse
from rprime.schemas.studies import AgreementRequest, DiscriminationRequest, IndexOfClass
from rprime.schemas.violations import validated
from rprime.settings import Limits

MOST_LINES = 5_000
MOST_WORK = 30_000_000
"""Most cells of the tables, or of the larger grid, for all lines: some seconds."""

MOST_VALUES = 40_000
"""Most values of a study of agreement, over all indices."""
MOST_NAMED = 20
"""Most pairs of models in an answer on which two indices disagree."""
WHOLE = "overall"
"""Name of the boxes of overall values."""

_OF_CLASS = (
    "recall",
    "precision",
    "specificity",
    "negative_predictive_value",
    "f1",
    "jaccard",
    "icsi",
)
_P = [0.0, 0.25, 0.5, 0.75, 1.0]
_OVERALL = ["accuracy", "kappa", "scott_pi_true_margin", "maxwell_re", "csi"]

Model = TypeVar("Model", bound=BaseModel)


class PrintedFigure(NamedTuple):
    """A figure of Labatut and Cherifi 2011: its title, its panels, and the request of its lines."""

    title: str
    by: Panels
    request: dict[str, Any]


def _of_classes(*classes: int, keys: Iterable[str]) -> list[dict[str, Any]]:
    return [{"index": key, "class": class_} for class_ in classes for key in keys]


_OF_TWO = _of_classes(1, 2, keys=_OF_CLASS)
_F1 = _of_classes(1, 3, keys=["f1"])
FIGURES = {
    1: PrintedFigure(
        "Class indices of classes 1 and 2, three balanced classes", "class", {"indices": _OF_TWO}
    ),
    2: PrintedFigure("Overall indices, three balanced classes", "condition", {"indices": _OVERALL}),
    3: PrintedFigure(
        "F1 of classes 1 and 3 for several imbalances p", "index", {"indices": _F1, "p": _P}
    ),
    4: PrintedFigure(
        "Accuracy and kappa for several imbalances p", "index", {"indices": _OVERALL[:2], "p": _P}
    ),
    5: PrintedFigure(
        "Accuracy of 3 to 10 classes, balanced and imbalanced",
        "imbalance",
        {"indices": ["accuracy"], "k": [*range(3, 11)], "p": [0.0, 1.0]},
    ),
}


def discrimination_lines(body: bytes, limits: Limits) -> list[DiscriminationLine]:
    """Trace the discrimination lines that a request asks for."""
    study = validated_study(DiscriminationRequest, parse(body, limits.json_depth, (), ()))
    raise_violations(_misplaced(study))
    lines = len(study.indices) * len(study.p)
    grids = [study.resolution * max(study.resolution, k * k) for k in study.k]
    if lines * len(study.k) > MOST_LINES or lines * sum(grids) > MOST_WORK:
        detail = (
            "This would take too long. Ask for fewer indices, fewer values of k and p, smaller "
            "values of k, or a lower resolution."
        )
        raise refuse("", "too_much", detail)
    subjects = [
        TracedIndex(index, entry.class_ if isinstance(entry, IndexOfClass) else None)
        for entry in study.indices
        if (index := _found(entry))
    ]
    return [line for k in study.k for line in discriminate(subjects, k, study.p, study.resolution)]


def discrimination_request(body: bytes, limits: Limits) -> bytes:
    """Trace the lines that a request asks for, and render them as JSON."""
    return discrimination_document(discrimination_lines(body, limits))


def discrimination_document(lines: Iterable[DiscriminationLine]) -> bytes:
    """Render lines as JSON."""
    return orjson.dumps({"lines": [members(line) for line in lines]})


def validated_study(model: type[Model], document: Document) -> Model:
    """Validate a request for a study, which takes no evidence."""
    errors: list[Violation] = []
    study = validated(model, document, errors)
    if errors or study is None:
        raise Problem("invalid_request", errors=errors)
    return study


def _found(entry: str | IndexOfClass) -> Index | None:
    return find("overall", entry) if isinstance(entry, str) else find("class", entry.index)


def _misplaced(study: DiscriminationRequest) -> Iterator[Violation]:
    """Find indices that the scope lacks, or that need more classes."""
    for i, entry in enumerate(study.indices):
        place, index = pointer("indices", i), _found(entry)
        if index is None and isinstance(entry, str):
            detail = "The index is per class: name the class, as {index, class}."
            yield Violation(place, "needs_class", detail)
        elif index is None:
            yield Violation(f"{place}/class", "no_class", "The index has no value for a class.")
        elif index.needs is not None:
            detail = f"The index needs the option `{index.needs}`, which a study does not take."
            yield Violation(place, "option_missing", detail)
        if isinstance(entry, IndexOfClass) and entry.class_ > min(study.k):
            detail = "The class is larger than the smallest number of classes in `k`."
            yield Violation(f"{place}/class", "no_such_class", detail)


def agreement_request(body: bytes, limits: Limits) -> bytes:
    """Compute how far indices agree over the models whose values are posted, as JSON."""
    study = validated_study(AgreementRequest, parse(body, limits.json_depth, (), ()))
    raise_violations(_uneven(study))
    values = _arrays(study.values)
    directions = [direction(find("overall", name) or find("class", name)) for name in values]
    boxes = {WHOLE: _boxes(values)}
    boxes |= {label: _boxes(_arrays(by_index)) for label, by_index in study.per_class.items()}
    disagreeing = list(disagreements(values, directions, MOST_NAMED))
    return orjson.dumps({"pairs": agreements(values), "boxes": boxes, "disagreements": disagreeing})


def _arrays(by_index: Mapping[str, Sequence[float | None]]) -> dict[str, Array]:
    return {name: np.array(values, dtype=np.float64) for name, values in by_index.items()}


def _boxes(values: Mapping[str, Array]) -> dict[str, Quartiles]:
    return {name: drawn for name, array in values.items() if (drawn := box(array))}


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
