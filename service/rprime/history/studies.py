"""Studies over stored evaluations: how the indices agree on the order of models."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
import orjson

from rprime.application.discrimination import validated_study
from rprime.application.stored_sides import VisibleHistory
from rprime.application.work import RemoteStore
from rprime.core import studies
from rprime.core.arrays import Array
from rprime.core.catalog import find
from rprime.core.options import Options
from rprime.core.selection import Selection, select
from rprime.history.series import filters_of
from rprime.history.stored_values import StoredValues, gathered
from rprime.problems.problem import NO_PROJECT, Problem, Violation, raise_violations, refuse
from rprime.schemas.document import Document, parse
from rprime.schemas.studies import AgreementRequest, StoredAgreementRequest
from rprime.settings import Limits
from rprime.store import Stack, ids

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
    directions = [studies.direction(index) for index in indices]
    boxes: Json = {}
    overall = {WHOLE: dict(zip(names, values, strict=True))}
    for label, by_index in (overall | models.per_class).items():
        drawn = {name: studies.box(numbers) for name, numbers in by_index.items()}
        boxes[label] = {name: asdict(box) for name, box in drawn.items() if box is not None}
    pairs = [_named(agreement, names) for agreement in studies.agreements(values)]
    opposed = studies.disagreements(values, directions, MOST_NAMED)
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


def _named(pair: studies.Agreement | studies.Disagreement, names: list[str]) -> Json:
    """Return the members of a pair of indices by their names; JSON has null for NaN."""
    members = {name: getattr(pair, name) for name in pair.__slots__}
    return members | {"a": names[pair.a], "b": names[pair.b]}


MOST_BOXED = 2_000_000
"""Most values of classes, over all indices."""


def agreement_in_worker(
    body: bytes, store: RemoteStore, *, limits: Limits, may_use: Callable[[str], bool]
) -> bytes:
    """Compute the agreement that a request asks for, as `agreement_document`, in a worker."""
    stored = partial(stored_models, visible_history=store.visible(may_use))
    return agreement_document(body, limits, stored)


def stored_models(document: Document, visible_history: VisibleHistory) -> Models:
    """Compute the values of the evaluations that a request names. Reads the store.

    Problem 422; 404 if the caller may not see the project; 409 without a store.
    """
    study = validated_study(StoredAgreementRequest, document)
    raise_violations(_unstored(study))
    store = visible_history.open()
    if not visible_history.may_use(study.project):
        raise Problem("not_found", NO_PROJECT)
    stacks = gathered(store, study.project, filters_of(study), newest=study.limit)
    if sum(len(stack.ids) for stack in stacks) < 2:  # noqa: PLR2004 (a pair)
        if not store.page(study.project, limit=1).items:
            raise Problem("not_found", NO_PROJECT + visible_history.nearest(study.project))
        detail = "Fewer than two evaluations match, and agreement needs two: widen the filters."
        raise refuse("", "too_few", detail)
    selection = select(Options(indices=tuple(study.indices)))
    raise_violations(_unfit(selection, stacks))
    return _models(StoredValues(stacks, selection))


def _unstored(study: StoredAgreementRequest) -> Iterator[Violation]:
    """Find indices that cannot be computed from a stored table alone."""
    for i, key in enumerate(study.indices):
        entry = find("overall", key) or find("class", key)
        if entry is not None and entry.scored:
            detail = "The index reads scores, which are not stored; post its numbers as `values`."
            yield Violation(f"/indices/{i}", "needs_scores", detail)
        elif entry is not None and entry.needs is not None:
            detail = f"The index needs the option `{entry.needs}`, which a study does not take."
            yield Violation(f"/indices/{i}", "option_missing", detail)


def _unfit(selection: Selection, stacks: list[Stack]) -> Iterator[Violation]:
    """Find conflicts of names and sizes with the matching evaluations."""
    models = sum(len(stack.ids) for stack in stacks)
    classes = len({label for stack in stacks for label in stack.labels})
    whole, boxed = len(selection.overall) * models, selection.reported * models * classes
    if selection.reported and any(WHOLE in stack.labels for stack in stacks):
        detail = (
            f"A class is named `{WHOLE}`, like the boxes of overall values: ask only for indices "
            "that classes do not have."
        )
        yield Violation("/indices", "reserved_name", detail)
    if whole > MOST_VALUES or boxed > MOST_BOXED:
        detail = "This would take too long: ask for fewer `indices`, or lower `limit`."
        yield Violation("", "too_much", detail)


def _models(values: StoredValues) -> Models:
    """Return stored evaluations as the models of a study, oldest first."""
    members = ("evaluation", "model", "version", "created_at")
    rows = sorted(
        (identifier, model, version, ids.created_at(identifier))
        for stack in values.stacks
        for identifier, model, version in zip(stack.ids, stack.models, stack.versions, strict=True)
    )
    keys = [entry.key for entry in values.selection.per_class]
    columns = {label: i for i, label in enumerate(values.labels)} if keys else {}
    per_class = {}
    for label, i in sorted(columns.items()):
        per_class[label] = dict(zip(keys, values.per_class[..., i], strict=True))
    described = {"evaluations": [dict(zip(members, row, strict=True)) for row in rows]}
    names = [entry.key for entry in values.selection.overall]
    return Models(names, values.overall, per_class, described)
