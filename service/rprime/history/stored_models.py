"""The models of a study, computed from the stored tables of a project."""

from collections.abc import Callable, Iterator
from functools import partial

from rprime.application.discrimination import validated_study
from rprime.application.stored_sides import VisibleHistory
from rprime.application.work import RemoteStore
from rprime.core.catalog import find
from rprime.core.options import Options
from rprime.core.selection import Selection, select
from rprime.history.agreement import MOST_VALUES, WHOLE, Models, agreement_document
from rprime.history.series import filters_of
from rprime.history.stored_values import StoredValues, gathered
from rprime.problems.problem import NO_PROJECT, Problem, Violation, raise_violations, refuse
from rprime.schemas.document import Document
from rprime.schemas.studies import StoredAgreementRequest
from rprime.settings import Limits
from rprime.store import Stack, ids

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
