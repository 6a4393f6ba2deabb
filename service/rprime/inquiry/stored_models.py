"""Stored models: what a study takes from a history, computed from its tables."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from rprime.core.catalog import find
from rprime.core.cells import Array
from rprime.core.options import Options
from rprime.core.selection import Selection, select
from rprime.core.values import compute
from rprime.evidence import Document
from rprime.inquiry.agreement import MOST_VALUES, WHOLE, Models
from rprime.inquiry.archive import Archive
from rprime.inquiry.series import filters_of, parts_of
from rprime.inquiry.studies import refuse, validated
from rprime.problems import Problem, Violation, pointer
from rprime.schemas.studies import StoredAgreementRequest
from rprime.store import Stack, ids

MOST_BOXED = 2_000_000
"""Values of classes, all indices together."""

Json = dict[str, Any]


def stored_models(document: Document, archive: Archive) -> Models:
    """Compute the values of the evaluations that a request for their agreement names. It reads.

    Raises
    ------
    Problem
        422; 404 if the project is not the caller's; 409 where there is no history.
    """
    asked = validated(StoredAgreementRequest, document)
    refuse(_unstored(asked))
    store = archive.open()
    if not archive.may_use(asked.project):
        raise Problem("not_found")
    stacks = list(store.tables(asked.project, filters_of(asked), newest=asked.limit))
    if sum(len(stack.ids) for stack in stacks) < 2:  # noqa: PLR2004 (a pair)
        if not store.page(asked.project, limit=1).items:
            raise Problem("not_found")
        detail = "Fewer than two evaluations fit, and agreement takes two: widen the filters."
        refuse([Violation("", "too_few", detail)])
    selection = select(Options(indices=tuple(asked.indices)))
    refuse(_unfit(selection, stacks))
    return _measured(selection, stacks)


def _unstored(asked: StoredAgreementRequest) -> Iterator[Violation]:
    """Find indices that cannot be computed from a stored table alone."""
    for i, key in enumerate(asked.indices):
        entry = find("overall", key) or find("class", key)
        if entry is not None and entry.scored:
            detail = "It reads scores, which are not stored; post its numbers as `values`."
            yield Violation(pointer("indices", i), "needs_scores", detail)
        elif entry is not None and entry.needs is not None:
            detail = f"It needs the option `{entry.needs}`, which a study does not take."
            yield Violation(pointer("indices", i), "option_missing", detail)


def _unfit(selection: Selection, stacks: list[Stack]) -> Iterator[Violation]:
    """Find what the evaluations that fit leave no room for."""
    models = sum(len(stack.ids) for stack in stacks)
    classes = len({label for stack in stacks for label in stack.labels})
    whole, boxed = len(selection.overall) * models, selection.reported * models * classes
    if selection.reported and any(WHOLE in stack.labels for stack in stacks):
        detail = (
            f"A class is called `{WHOLE}`, as the boxes of the whole are: ask only for indices "
            "that classes do not have."
        )
        yield Violation("/indices", "reserved_name", detail)
    if whole > MOST_VALUES or boxed > MOST_BOXED:
        detail = "It would take too long: ask for fewer `indices`, or lower `limit`."
        yield Violation("", "too_much", detail)


def _measured(selection: Selection, stacks: list[Stack]) -> Models:
    """Compute the values of stored evaluations, oldest first."""
    named = {
        identifier: (model, version)
        for stack in stacks
        for identifier, model, version in zip(stack.ids, stack.models, stack.versions, strict=True)
    }
    found = sorted(named)
    place = {identifier: i for i, identifier in enumerate(found)}
    overall = np.full((len(selection.overall), len(found)), np.nan)
    labels = {label for stack in stacks for label in stack.labels if selection.reported}
    of_classes = {
        label: np.full((selection.reported, len(found)), np.nan) for label in sorted(labels)
    }
    for stack in stacks:
        columns = [place[identifier] for identifier in stack.ids]
        overall[:, columns], per_class = _values(stack, selection)
        for column, label in enumerate(stack.labels if selection.reported else ()):
            of_classes[label][:, columns] = per_class[..., column]
    keys = [entry.key for entry in selection.per_class]
    return Models(
        [entry.key for entry in selection.overall],
        overall,
        {label: dict(zip(keys, rows, strict=True)) for label, rows in of_classes.items()},
        {"evaluations": [_described(one, *named[one]) for one in found]},
    )


def _values(stack: Stack, selection: Selection) -> tuple[Array, Array]:
    """Compute a stack: shape (overall, n), and (class index, n, k)."""
    parts = [compute(table, Options(), selection) for table in parts_of(stack.table)]
    return (
        np.concatenate([part.overall for part in parts], axis=1),
        np.concatenate([part.per_class[: selection.reported] for part in parts], axis=1),
    )


def _described(identifier: str, model: str | None, version: str | None) -> Json:
    created = ids.created_at(identifier)
    return {"evaluation": identifier, "model": model, "version": version, "created_at": created}
