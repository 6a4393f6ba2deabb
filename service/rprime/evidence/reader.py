"""Read each kind of evidence into a confusion table."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rprime.core.arrays import Array
from rprime.core.catalog import ORDERED_KEYS
from rprime.core.index_names import canonical, listed
from rprime.core.items import Items, table_of, table_of_counts
from rprime.core.labels import doubtful, integer_text, twins
from rprime.core.scores.scores import Scores
from rprime.core.slices.slices import Slices
from rprime.core.table import ConfusionTable
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.evidence import digest, numbers
from rprime.evidence.coding import (
    AS_SENT,
    Coded,
    Spellings,
    code_labels,
    group_codes,
    in_order_of_appearance,
)
from rprime.evidence.label_columns import CodedColumn, combined
from rprime.evidence.names import NEITHER
from rprime.evidence.scores import read_scores
from rprime.evidence.slices import slices_of_items, slices_of_tables
from rprime.evidence.tables import (
    LABELS,
    MATRICES,
    declared_labels,
    read_cells,
    read_matrices,
    read_matrix,
)
from rprime.problems.problem import Violation, invalid, raise_violations, refuse
from rprime.schemas.document import Document
from rprime.settings import Limits

if TYPE_CHECKING:
    from rprime.evidence.arrow_body import Identities

Kind = Literal["confusion_matrix", "cells", "labels", "scores"]
COUNT = "count"
"""The array of counts of a table in long form, which only columns have."""
DOUBTS = {
    "missing_mark": "`{}` counts as a class. If it means that there is no label, send null in "
    "`y_pred`, and leave out items without a true class. If it is a class, declare it in `labels`.",
    "padding": "`{}` counts as a class. If it is a padding, as `ignore_index` of torch, name it in "
    "`ignore_true`. If it is a class, declare it in `labels`.",
    "several": "`{}` counts as one class. If it is several classes of an item, evaluate each class "
    "as a problem of its own: docs/scope.md. If it is a class, declare it in `labels`.",
    "score": "Most classes are fractions such as `{}`. If these are scores, send them as `y_score` "
    "or as columns `score:<label>`. If they are classes, declare them in `labels`.",
}
"""Why a label may be none, in a sentence with the label."""
_TABLES = {"confusion_matrix": read_matrix, "cells": read_cells}
_BY_CHANCE = 20
"""With fewer items, all predictions may be of other classes."""
_ASSUMED = (
    "Without `labels`, the classes are in the order of their characters: {}. Weighted kappa and "
    "matrices of weights depend on the order: send `labels`, from the lowest to the highest class."
)
_PAIR, _SHOWN = 2, 20
"""Classes that have no order; classes that a warning lists."""
_PIECE = 1 << 16
"""Rows of scores that are looked at together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """The evidence of a request about a classifier."""

    kind: Kind
    labels: tuple[str, ...]
    """The k class names: NFC, trimmed, distinct."""
    table: ConfusionTable
    items: Items | None = None
    matrices: Mapping[str, Array] = field(default_factory=dict)
    """The options that are matrices, by name: `cost`, `cell_weights`, `kappa_weights`."""
    identities: "Identities | None" = None
    """The ids of the items, if they have some; the items are then in the order of the ids."""
    order: Array | None = None
    """Positions in the request of the items, shape (n,), if their ids in JSON reordered them, or
    some are left out."""
    left_out: int = 0
    """Items of the request that are left out, because their true label is ignored."""
    scores: Array | None = None
    """Scores of the items for every class, shape (n, k), if the request has them."""
    slices: Slices | None = None
    labelled: Array | None = None
    """The true classes of the items of which only the table is known, in their order."""
    warnings: tuple[Warning, ...] = ()
    """How it was read, where that may not be as it was meant."""

    @cached_property
    def fingerprint(self) -> str | None:
        """Fingerprint of the test set; None without items."""
        true = self.labelled if self.items is None else self.items.true
        if true is None:
            return None
        return digest.test_set_fingerprint(self.labels, true, self.identities)

    input_digest = cached_property(digest.evidence_digest)

    def __getstate__(self) -> dict[str, object]:
        """Omit the ids when pickling: other processes need only the digests."""
        _ = self.fingerprint, self.input_digest
        return {**self.__dict__, "identities": None}

    @cached_property
    def ranked(self) -> Scores | None:
        """The scores with the true classes, cached because indices and intervals share them."""
        if self.scores is None or self.items is None:
            return None
        weights = self.items.weights if self.table.weighted else None
        return Scores(self.items.true, self.scores, self.items.groups, weights)


def read(document: Document, limits: Limits) -> Evidence:
    """Read the evidence of a request, or of the baseline in it.

    Raises
    ------
    Problem
        422 unless the request has exactly one kind of evidence, and it is valid; with up to 20
        places of one array.
    """
    kind = _kind(document)
    if kind in {"labels", "scores"}:
        evidence = _read_items(document, limits)
    else:
        labels, table = _TABLES[kind](document, limits)
        slices = None
        if "slices" in document.arrays:
            _check_classes(document, len(labels), limits)

            def read_table(part: Document) -> ConfusionTable:
                return _TABLES[_kind(part)](part, limits)[1]

            slices = slices_of_tables(document, table, labels, read_table)
        evidence = Evidence(kind=kind, labels=labels, table=table, slices=slices)
    notes = (*document.warnings, *evidence.warnings)
    if (same := twins(evidence.labels)) is not None:
        label, other = same
        detail = (
            f"`{label}` and `{other}` may be one class in two spellings. If so, map one of them "
            "to the other by `aliases`."
        )
        notes = (*notes, Warning("similar_labels", "/labels", detail, LABELS))
    if document.arrays.get("labels") is None:
        notes += tuple(doubts(evidence.labels, document.rest, document.arrays))
    notes += tuple(_misleading(document, evidence))
    matrices = {}
    if not document.arrays.keys().isdisjoint(MATRICES):
        matrices = read_matrices(document, len(evidence.labels))
    return replace(evidence, matrices=matrices, warnings=notes) if matrices or notes else evidence


def _misleading(document: Document, evidence: Evidence) -> Iterator[Warning]:
    """Yield what makes an index say something else than it seems to say."""
    most, k = document.rest.get("top_k"), len(evidence.labels)
    if isinstance(most, int) and most >= k:
        detail = f"With `top_k` {most} of {k} classes every prediction is right: choose fewer."
        yield Warning("top_k_of_all", "/top_k", detail, LABELS)
    silent, support = evidence.table.unclassified, evidence.table.support
    if silent is not None and silent.sum() == evidence.table.total:
        detail = "No item has a prediction, so every item counts as wrong."
        yield Warning("nothing_classified", "/y_pred", detail, LABELS)
    items = evidence.items
    if items is not None and items.true.size == k > _BY_CHANCE and support.max() == 1:
        detail = "Each item has a class of its own, so `y_true` may be the ids of the items."
        yield Warning("label_is_id", "/y_true", detail, LABELS)


def doubts(
    labels: tuple[str, ...], options: Mapping[str, Any], names: Collection[str]
) -> Iterator[Warning]:
    """Yield what classes that were not declared may be, and their order if an index depends on it.

    `options` and `names` are members of the request.
    """
    for why, label in doubtful(labels).items():
        yield Warning(f"label_is_{why}", "/labels", DOUBTS[why].format(label), LABELS)
    is_named = len(labels) > _PAIR and not all(map(integer_text, labels))
    if is_named and _depends_on_order(options, names):
        order = listed([f"`{label}`" for label in labels[:_SHOWN]])
        yield Warning("order_assumed", "/labels", _ASSUMED.format(order), LABELS)


def _depends_on_order(options: Mapping[str, Any], names: Collection[str]) -> bool:
    """Whether a request names an index, or a matrix of weights, that depends on the order."""
    gates = options.get("gates")
    rules = gates.get("rules") if isinstance(gates, dict) else None
    # What is malformed is refused with the options.
    rules, indices = (
        each if isinstance(each, list) else [] for each in (rules, options.get("indices"))
    )
    keys = [*indices, *(rule.get("index") for rule in rules if isinstance(rule, dict))]
    named = {canonical(key) for key in keys if isinstance(key, str)}
    return not named.isdisjoint(ORDERED_KEYS) or not MATRICES.keys().isdisjoint(names)


def read_baseline(
    document: Document, source: Document, candidate: Evidence, limits: Limits
) -> Evidence:
    """Read the evidence of a baseline, given the candidate as document and as evidence.

    It has evidence of its own, or only `y_pred` or `y_score`: other predictions for the
    candidate's items. Labels are read as those of the candidate, unless the baseline has `labels`.
    """
    alone = next((name for name in ("y_score", "y_pred") if name in document.arrays), None)
    if alone is None:
        return read(document, limits)
    if "y_true" in document.arrays:
        of_labels = {name: source.rest[name] for name in OF_LABELS if name in source.rest}
        declared = source.arrays.get("labels") if "y_true" in source.arrays else None
        if declared is None or document.arrays.get("labels") is not None:
            of_labels.pop("unknown_labels", None)
        else:
            document = replace(document, arrays={**document.arrays, "labels": declared})
        return read(replace(document, rest=of_labels | document.rest), limits)
    _refuse_other_items(document)
    if "y_true" not in source.arrays:
        detail = f"`{alone}` alone needs a candidate with `y_true`, whose items it predicts."
        raise refuse(f"{document.pointer}/{alone}", "no_items", detail)
    if COUNT in source.arrays:
        detail = f"The candidate is a table, so `{alone}` alone has no items: send a table, too."
        raise refuse(f"{document.pointer}/{alone}", "no_items", detail)
    shared = {name: source.arrays[name] for name in SHARED if name in source.arrays}
    if alone == "y_score" and "labels" not in shared:
        shared["labels"] = list(candidate.labels)
    inherited = (*OF_LABELS, *OF_SLICES)
    rest = {name: source.rest[name] for name in inherited if name in source.rest} | document.rest
    baseline = read(replace(document, arrays=shared | document.arrays, rest=rest), limits)
    if baseline.labels != candidate.labels or baseline.items is None or candidate.items is None:
        return baseline
    # The identical array tells the comparison that these are the same items.
    same = replace(baseline, items=replace(baseline.items, true=candidate.items.true))
    if candidate.slices and same.slices and set(OF_SLICES).isdisjoint(document.names):
        # As do the identical columns that no item has another slice.
        slices = replace(same.slices, columns=candidate.slices.columns)
        same = replace(same, slices=slices)
    vars(same)["fingerprint"] = candidate.fingerprint
    return same


def _refuse_other_items(document: Document) -> None:
    """Refuse what other items have in a baseline that predicts those of the candidate."""
    if "item_id" in document.arrays:
        detail = "A baseline with ids of its own needs `y_true`, too."
        raise refuse(f"{document.pointer}/item_id", "no_items", detail)
    if "ignore_true" in document.rest:
        detail = "The items are those of the candidate, whose `ignore_true` holds."
        raise refuse(f"{document.pointer}/ignore_true", "not_with_this_evidence", detail)


EVIDENCE_ARRAYS: Mapping[Kind, tuple[str, ...]] = {
    "confusion_matrix": ("confusion_matrix",),
    "cells": ("cells",),
    "labels": ("y_true", "y_pred"),
    "scores": ("y_true", "y_score"),
}
"""The arrays that identify each kind of evidence."""

OF_LABELS = ("aliases", "unknown_labels", "missing_true", "ignore_true")
"""Options about the texts of labels."""

OF_SCORES = ("reject_below", "curves", "reject", "thresholds")
"""Options that have no meaning without scores."""

WEIGHTS = ("sample_weight", "inclusion_probability")
"""Members that weigh the items."""

OF_SLICES = ("slices", "slice_crossings", "slice_cuts")
"""Members about parts of the items."""

SHARED = ("y_true", *WEIGHTS, "groups", "labels", "item_id", "slices")
"""Members that other predictions for the same items share with the candidate."""

OF_TABLES = ("labels", "axis", "unclassified", "spurious", "weighted", "class_items", "slices")

COMPANIONS: Mapping[Kind, tuple[str, ...]] = {
    "confusion_matrix": OF_TABLES,
    "cells": OF_TABLES,
    "labels": ("labels", *WEIGHTS, "groups", "item_id", *OF_LABELS, *OF_SLICES),
    "scores": (
        *("labels", "y_pred", *WEIGHTS, "groups", "item_id"),
        *(*OF_LABELS, *OF_SCORES, *OF_SLICES),
    ),
}
"""Members allowed together with each kind."""

MEMBERS = frozenset(chain(*EVIDENCE_ARRAYS.values(), *COMPANIONS.values()))
"""Members that are evidence."""
_NOT_ALLOWED = {
    kind: MEMBERS.difference(arrays, COMPANIONS[kind]) for kind, arrays in EVIDENCE_ARRAYS.items()
}
_CHOICE = (
    "Give exactly one kind of evidence: `confusion_matrix`; or `cells` with `labels`; "
    "or `y_true` with `y_pred` or `y_score`."
)


_REPORTS = ({"macro avg", "weighted avg"}, {"weighted avg", "micro avg"})
_NO_COUNTS = (
    " This looks like the report of scikit-learn, which has no counts of confusions: send its "
    "`confusion_matrix`."
)
_OF_FRAME = (
    " This looks like a data frame: of a table of counts send "
    '`{"labels": list(df), "confusion_matrix": df.to_numpy().tolist()}`, of items '
    "`df.to_csv(index=False)` as CSV."
)


def _of_others(document: Document) -> str:
    """Say what an object of another library is, where it is one; else nothing."""
    names, values = set(document.names), document.rest.values()
    if any(report <= names for report in _REPORTS):
        return _NO_COUNTS
    is_frame = {"columns", "data"} <= names or (names and all(isinstance(v, dict) for v in values))
    return _OF_FRAME if is_frame and not names & MEMBERS else ""


def _kind(document: Document) -> Kind:
    members = document.arrays
    kinds = [k for k, arrays in EVIDENCE_ARRAYS.items() if not members.keys().isdisjoint(arrays)]
    # `y_true` belongs to both, and scores may come with `y_pred`.
    other = "labels" if "y_score" in members else "scores"
    kinds = [kind for kind in kinds if kind != other]
    if len(kinds) != 1:
        code = "several_kinds" if kinds else "no_evidence"
        raise refuse(document.pointer, code, f"{_CHOICE}{'' if kinds else _of_others(document)}")
    kind = kinds[0]
    for name in EVIDENCE_ARRAYS[kind]:
        if name not in members:
            raise refuse(document.pointer, "no_evidence", f"`{name}` is missing. {_CHOICE}")
    if not _NOT_ALLOWED[kind].isdisjoint(document.names):
        beside = " and ".join(f"`{name}`" for name in EVIDENCE_ARRAYS[kind])
        detail = f"It cannot be combined with {beside}."
        raise invalid(
            Violation(f"{document.pointer}/{name}", "not_with_this_evidence", detail)
            for name in document.names
            if name in _NOT_ALLOWED[kind]
        )
    return kind


def _read_items(document: Document, limits: Limits) -> Evidence:
    arrays = document.arrays
    scored = "y_score" in arrays
    coded = _codes(document, limits.dense_classes if scored else limits.sparse_classes)
    if document.rest.get("missing_true") == "spurious" and (coded.true == len(coded.labels)).any():
        return _with_spurious(document, coded, limits)
    scores, left_out = None, _left_out(document, coded)
    size = coded.true.size + left_out
    if scored:
        scores = coded.of_kept(read_scores(document, (size, len(coded.labels))))
        coded = _classified(document, coded, scores)
    if COUNT in arrays:
        return _counted(document, coded, limits)
    weights, groups = coded.of_kept(_weights(document, size)), arrays.get("groups")
    if groups is not None and not isinstance(groups, np.ndarray):
        groups = group_codes(groups, size, f"{document.pointer}/groups")
    if groups is not None and coded.kept is not None:
        groups = in_order_of_appearance(groups[coded.kept])
    items = Items(coded.true, coded.predicted, groups, weights)
    k, slices = len(coded.labels), None
    table = table_of(items, k, limits.dense_classes)
    if "y_pred" in arrays and arrays.get("labels") is None and size >= _BY_CHANCE:
        _check_predictions(document, coded.labels, table)
    if not {*arrays, *document.rest}.isdisjoint(OF_SLICES):
        _check_classes(document, k, limits)
        slices = slices_of_items(document, items.cells(k), k, coded.kept, size)
    notes = () if slices is None else tuple(_without_slice(slices, items.true.size))
    evidence = Evidence(
        kind="scores" if scored else "labels",
        labels=coded.labels,
        table=table,
        items=items,
        scores=scores,
        slices=slices,
        warnings=(*coded.warnings, *notes),
        order=coded.kept,
        left_out=left_out,
    )
    ids = arrays.get("item_id")
    return evidence if ids is None else _identified(evidence, ids, f"{document.pointer}/item_id")


def _left_out(document: Document, coded: Coded) -> int:
    """Return how many items are left out."""
    if coded.kept is None:
        return 0
    true: Any = document.arrays["y_true"]
    sent = true.values.size if isinstance(true, CodedColumn) else len(true)
    return int(sent) - coded.kept.size


def _counted(document: Document, coded: Coded, limits: Limits) -> Evidence:
    """Read a table in long form, of which each row counts the items of a pair of classes."""
    counts: Any = document.arrays[COUNT]
    pairs = Items(coded.true, coded.predicted, None, coded.of_kept(counts))
    table = table_of_counts(pairs, len(coded.labels), limits.dense_classes)
    if document.arrays.get("labels") is None and table.total >= _BY_CHANCE:
        _check_predictions(document, coded.labels, table)
    return Evidence(kind="cells", labels=coded.labels, table=table, warnings=coded.warnings)


_OF_TABLE = ("y_true", "y_pred", "labels")
"""Arrays beside which items without a true label are counted."""


def _with_spurious(document: Document, coded: Coded, limits: Limits) -> Evidence:
    """Count items some of which have no true label: as a table, whose predictions are no pairs."""
    detail = "It cannot be combined with items without a true label: these are counted as a table."
    raise_violations(
        Violation(f"{document.pointer}/{name}", "not_with_spurious", detail)
        for name in document.arrays
        if name not in _OF_TABLE
    )
    k = len(coded.labels)
    spurious = coded.true == k
    neither = np.argwhere(spurious & (coded.predicted == k))
    numbers.raise_places(neither, f"{document.pointer}/y_pred", "no_label", NEITHER)
    items = Items(coded.true[~spurious], coded.predicted[~spurious])
    predictions = np.bincount(coded.predicted[spurious], minlength=k).astype(np.float64)
    table = replace(table_of(items, k, limits.dense_classes), spurious=predictions)
    return Evidence(
        kind="labels",
        labels=coded.labels,
        table=table,
        labelled=items.true,
        warnings=coded.warnings,
    )


def _identified(evidence: Evidence, ids: object, pointer: str) -> Evidence:
    """Return the evidence with an id at each item, in the order of the ids."""
    from rprime.evidence.arrow_body import Identities  # noqa: PLC0415 (it imports pyarrow)
    from rprime.evidence.item_ids import ids_of  # noqa: PLC0415 (it imports pyarrow)

    items, scores, slices = evidence.items, evidence.scores, evidence.slices
    assert items is not None  # noqa: S101 (the caller has read them)
    kept, size = evidence.order, items.true.size + evidence.left_out
    if isinstance(ids, Identities):  # columns are in their order
        ids = ids if kept is None else ids.some(kept)
        items = replace(items, ids=digest.numbers_of(ids))
        return replace(evidence, items=items, identities=ids)
    identities = ids_of(ids, size, pointer)
    if kept is not None:
        identities = identities.some(kept)
    order = identities.order(pointer)
    groups, weights = (None if p is None else p[order] for p in (items.groups, items.weights))
    numbers_of_ids = digest.numbers_of(identities)
    items = Items(items.true[order], items.predicted[order], groups, weights, numbers_of_ids)
    return replace(
        evidence,
        items=items,
        identities=identities,
        order=order if kept is None else kept[order],
        scores=None if scores is None else scores[order],
        slices=None if slices is None else slices.of_some(order, items, len(evidence.labels)),
    )


def _check_predictions(document: Document, labels: tuple[str, ...], table: ConfusionTable) -> None:
    """Refuse predictions none of which is a true class: they are scores, or spelt otherwise."""
    true, predicted = table.support > 0, table.predicted > 0
    if not predicted.any() or (true & predicted).any():
        return
    ours, theirs = (
        listed([f"`{labels[i]}`" for i in np.flatnonzero(there)[:3]]) for there in (true, predicted)
    )
    detail = (
        f"No prediction is a class of `y_true`, which has {ours}; `y_pred` has {theirs}. Map other "
        "spellings by `aliases`, send scores as `y_score`, or declare all classes in `labels`."
    )
    raise refuse(f"{document.pointer}/y_pred", "no_true_class", detail)


def _without_slice(slices: Slices, size: int) -> Iterator[Warning]:
    """Say how many items have no value of a column: rules about its slices do not see these."""
    for name, column in slices.columns.items():
        missing = np.count_nonzero(column.codes >= len(column.values))
        if missing:
            omission = f"{missing:,} of {size:,} items have no value of `{name}`"
            detail = f"{omission}, so they are in no slice of it."
            yield Warning("items_without_slice", "/slices", detail, "docs/slices.md")


def _check_classes(document: Document, k: int, limits: Limits) -> None:
    if k > limits.dense_classes:
        detail = f"Slices have at most {limits.dense_classes:,} classes, here are {k:,}."
        raise refuse(f"{document.pointer}/slices", "too_many_classes", detail)


def _codes(document: Document, most: int) -> Coded:
    true = document.arrays["y_true"]
    predicted = document.arrays.get("y_pred", true)  # it may be missing if there are scores
    declared = None if document.arrays.get("labels") is None else declared_labels(document, most)
    is_plain = document.rest.keys().isdisjoint(OF_LABELS)
    spellings = AS_SENT if is_plain else Spellings.of(document.rest)
    if spellings.unclassified and declared is None:
        detail = "`unknown_labels` needs `labels`, which say what is known."
        raise refuse(f"{document.pointer}/labels", "required", detail)
    if isinstance(true, CodedColumn) and isinstance(predicted, CodedColumn):
        true.shared |= true is predicted
        raw = combined(true, predicted, declared, document.pointer)
    else:
        raw = code_labels(document)
    return raw.coded(declared, most, spellings)


def _classified(document: Document, coded: Coded, scores: Array) -> Coded:
    """Predict the first class of the highest score, unless the request has predictions."""
    predicted = coded.predicted
    warnings = coded.warnings
    if document.arrays.get("labels") is None:
        order = listed([f"`{label}`" for label in coded.labels])
        detail = (
            f"Without `labels`, the columns of `y_score` are taken to be the classes {order}, in "
            "this order. Send `labels`, such as `classes_` of scikit-learn."
        )
        warnings = (*warnings, Warning("columns_assumed", "/y_score", detail, LABELS))
    if document.arrays.get("y_pred") is None:
        predicted = np.asarray(scores.argmax(-1), dtype=coded.true.dtype)
    elif (warning := _contradicted(predicted, scores)) is not None:
        warnings = (*warnings, warning)
    least = document.rest.get("reject_below")
    if isinstance(least, int | float):  # other types are refused with the options
        k = np.asarray(len(coded.labels), dtype=predicted.dtype)
        predicted = np.where(scores.max(-1) < least, k, predicted)
    return replace(coded, predicted=predicted, warnings=warnings)


def _contradicted(predicted: Array, scores: Array) -> Warning | None:
    """Warn where most predictions are not the class of the largest score."""
    answered = np.count_nonzero(predicted < scores.shape[1])
    pieces = [slice(i, i + _PIECE) for i in range(0, predicted.size, _PIECE)]  # of little memory
    same = sum(np.count_nonzero(predicted[piece] == scores[piece].argmax(-1)) for piece in pieces)
    if 2 * same >= answered:
        return None
    detail = (
        f"Only {same:,} of {answered:,} predictions are the class with the largest score. Check "
        "the order of the columns of `y_score`, which is that of `labels`."
    )
    return Warning("predictions_contradict_scores", "/y_pred", detail, LABELS)


def _weights(document: Document, size: int) -> Array | None:
    """Return the weights of the items: the inverse of their inclusion probabilities."""
    weights = numbers.optional_vector(document, "sample_weight", numbers.WEIGHT, size)
    chances = numbers.optional_vector(document, "inclusion_probability", numbers.PROBABILITY, size)
    if chances is None:
        return weights
    pointer = f"{document.pointer}/inclusion_probability"
    if weights is not None:
        detail = "The inverse of it is a weight: send it or `sample_weight`, not both."
        raise refuse(pointer, "several_kinds", detail)
    bad = np.argwhere((chances < numbers.SMALLEST_PROBABILITY) | (chances > 1))
    numbers.raise_places(bad, pointer, "out_of_range", numbers.PROBABILITY_RULE)
    return 1 / chances
