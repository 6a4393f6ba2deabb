"""The JSON report, joined from prepared pieces and numbers dumped as whole arrays."""

from collections.abc import Mapping
from dataclasses import asdict
from math import isnan
from typing import Any

import numpy as np
import orjson

from rprime.core.cells import Array
from rprime.core.evaluate import Evaluation
from rprime.core.index import REASONS
from rprime.core.warnings import Warning  # noqa: A004 (its name)
from rprime.report import scores
from rprime.report.layout import layout_of

PIECES = 3
"""Pieces of one Value: its head, the number, and the interval with all that follows."""
NUMPY = orjson.OPT_SERIALIZE_NUMPY


def render(
    evaluation: Evaluation,
    *,
    engine_version: str,
    input_digest: str,
    members: Mapping[str, bytes] | None = None,
    warnings: tuple[Warning, ...] = (),
    with_table: bool = False,
) -> bytes:
    """Render an evaluation as the JSON document of the contract.

    Parameters
    ----------
    evaluation
        Of one table.
    engine_version, input_digest
        What computed it, and from what.
    members
        Further members of the document, already JSON.
    warnings
        Further warnings, after those of the evaluation.
    with_table
        Whether to add the table itself.

    Returns
    -------
    UTF-8 JSON. Numbers have full round-trip precision; what is undefined is null.
    """
    labels = [orjson.dumps(label) for label in evaluation.labels]
    parts = {
        "engine_version": orjson.dumps(engine_version),
        "input_digest": orjson.dumps(input_digest),
        "labels": b"[" + b",".join(labels) + b"]",
        "counts": counts(evaluation),
        "options": options(evaluation),
        "overall": overall(evaluation, labels),
        **page(evaluation),
        "per_class": per_class(evaluation, labels),
        "top_confusions": top_confusions(evaluation, labels),
        **(members or {}),
        "warnings": orjson.dumps(evaluation.warnings + warnings),
        "notes": layout_of(evaluation.selection).notes[evaluation.values.table.has_omissions],
    }
    if with_table:
        parts["table"] = table(evaluation)
    if evaluation.values.scores is not None:
        parts |= scores.members(evaluation)
    return b"{" + b",".join(b'"%b":%b' % (k.encode(), v) for k, v in parts.items()) + b"}"


def numbers(values: Array) -> list[bytes]:
    """Dump every number of an array in flat order; whole counts without a fraction."""
    flat = values.ravel()
    return orjson.dumps(flat, option=NUMPY)[1:-1].split(b",") if flat.size else []


def whole(values: Array) -> Array:
    """Turn counts into integers where all of them are, so that they read as counts."""
    integers = values.astype(np.int64)
    return integers if (integers == values).all() else values


def counts(evaluation: Evaluation) -> bytes:
    """Render how many items there are of which kind."""
    table = evaluation.table
    given = [
        table.total,
        np.add.reduce(table.answered),
        0.0 if table.unclassified is None else np.add.reduce(table.unclassified),
        0.0 if table.spurious is None else np.add.reduce(table.spurious),
    ]
    return b'{"total":%b,"classified":%b,"unclassified":%b,"spurious":%b,"weighted":%b}' % (
        *numbers(whole(np.array(given))),
        b"true" if table.weighted else b"false",
    )


def options(evaluation: Evaluation) -> bytes:
    """Render the options that shaped the numbers, matrices only as given or not."""
    o = evaluation.options
    kappa = o.kappa_weights
    shown = o.top_k is not None and evaluation.values.scores is not None
    return orjson.dumps(
        {
            "beta": o.beta,
            "undefined": o.undefined,
            "cost": o.cost is not None,
            "cell_weights": o.cell_weights is not None,
            "kappa_weights": kappa if isinstance(kappa, str | None) else "matrix",
            "intervals": evaluation.intervals is not None,
            "confidence": o.confidence,
            "exact": o.exact,
            "sampling": o.sampling,
            **({"top_k": o.top_k} if shown else {}),
        }
    )


def overall(evaluation: Evaluation, labels: list[bytes]) -> bytes:
    """Render the overall values by key."""
    entries = evaluation.overall_indices
    if not entries:
        return b"{}"
    known = evaluation.intervals
    limits = known and (evaluation.at(known.overall_low), evaluation.at(known.overall_high))
    parts = value_pieces(layout_of(evaluation.selection).overall, evaluation.overall, limits)
    explain(parts, evaluation.overall_reasons)
    if known:
        explain_intervals(parts, evaluation.overall, evaluation.at(known.overall_reasons))
        mark(parts, evaluation.at(known.overall_low_reliability), b',"reliability":"low"')
    annotate(parts, evaluation, labels)
    parts[0] = parts[0][1:]
    return b"{" + b"".join(parts) + b"}"


def page(evaluation: Evaluation) -> dict[str, bytes]:
    """Render which classes are shown, where that are not simply all of them."""
    found = evaluation.page
    if found is None:
        return {}
    content = {"total": found.total, "left_out": found.left_out}
    return {"classes": orjson.dumps(content | asdict(found.paging))}


def per_class(evaluation: Evaluation, labels: list[bytes]) -> bytes:
    """Render the values of every class that is shown, in the order of the labels or the page."""
    entries, known = evaluation.per_class_indices, evaluation.intervals
    heads = class_heads(evaluation, labels)

    def shown(values: Array) -> Array:
        """Give values of the reported indices, shape (classes, index)."""
        own: Array = values[: len(entries)]
        return (own if evaluation.page is None else own[:, evaluation.page.positions]).T

    limits = known and tuple(
        shown(evaluation.at(v)) for v in (known.per_class_low, known.per_class_high)
    )
    values = shown(evaluation.per_class)
    opening = layout_of(evaluation.selection).per_class
    parts = value_pieces(opening * len(heads), values, limits)
    codes = evaluation.per_class_reasons
    explain(parts, None if codes is None else shown(codes))
    if known:
        explain_intervals(parts, values, shown(evaluation.at(known.per_class_reasons)))
        low = shown(evaluation.at(known.per_class_low_reliability))
        mark(parts, low, b',"reliability":"low"')
    width = PIECES * len(entries)
    classes = []
    for i, head in enumerate(heads):
        classes.append(head)
        classes.extend(parts[i * width : (i + 1) * width])
        classes.append(b"},")
    return b"{" + b"".join(classes)[:-1] + b"}"


def class_heads(evaluation: Evaluation, labels: list[bytes]) -> list[bytes]:
    """Render the name and the counts that each class which is shown opens with."""
    table, found = evaluation.table, evaluation.page
    margins = np.stack((table.support, table.predicted, table.correct), axis=-1)
    if found is not None:
        margins, labels = margins[found.positions], [labels[i] for i in found.positions]
    counts = numbers(whole(margins))
    return [
        b'%b:{"support":%b,"predicted":%b,"correct":%b' % (label, *counts[3 * i : 3 * i + 3])
        for i, label in enumerate(labels)
    ]


def value_pieces(opening: list[bytes], values: Array, limits: Any) -> list[bytes]:  # noqa: ANN401 (a pair, or none)
    """Render Values as pieces, three for each, in flat order; limits are (low, high) or None."""
    parts = [b""] * (PIECES * len(opening))
    parts[0::PIECES] = opening
    parts[1::PIECES] = numbers(values)
    if limits is None or not opening:
        parts[2::PIECES] = [NO_INTERVAL] * len(opening)
        return parts
    ends = np.stack(limits, axis=-1).reshape(-1, 2)
    known = orjson.dumps(ends, option=NUMPY)[2:-2].split(b"],[")
    parts[2::PIECES] = map(b',"interval":[%b]}'.__mod__, known)
    for i in np.nonzero(~np.isfinite(limits[0].reshape(-1)))[0]:
        parts[PIECES * i + 2] = NO_INTERVAL
    return parts


NO_INTERVAL = b',"interval":null}'


def add(parts: list[bytes], place: int, member: bytes) -> None:
    """Add a member to one Value."""
    at = PIECES * place + PIECES - 1
    parts[at] = parts[at][:-1] + member + b"}"


REASON_MEMBERS = [b',"reason":"%b"' % reason.encode() for reason in REASONS]


def explain(parts: list[bytes], codes: Array | None) -> None:
    """Add the reasons of undefined values; codes of their shape, None where all exist."""
    if codes is None:
        return
    flat = codes.reshape(-1)
    for place in np.nonzero(flat)[0].tolist():
        add(parts, place, REASON_MEMBERS[flat[place]])


def explain_intervals(parts: list[bytes], values: Array, codes: Array) -> None:
    """Add the reasons why values that exist have no interval."""
    exist = np.isfinite(values).reshape(-1)
    explain(parts, np.where(exist, codes.reshape(-1), 0))


def mark(parts: list[bytes], where: Array, member: bytes) -> None:
    """Add the same member to the Values where a mask holds."""
    for place in np.nonzero(where.reshape(-1))[0].tolist():
        add(parts, place, member)


def annotate(parts: list[bytes], evaluation: Evaluation, labels: list[bytes]) -> None:
    """Add what only some overall Values have: bands, p-values, classes left out."""
    layout, entries = layout_of(evaluation.selection), evaluation.overall_indices
    values = evaluation.overall
    for place in layout.bands:
        band = entries[place].band
        if band and np.isfinite(values[place]):
            add(parts, place, b',"band":%b' % orjson.dumps(band(values[place])))
    for place in layout.p_values:
        p = evaluation.values.p_values[entries[place].key][evaluation.position]
        if not isnan(p):
            add(parts, place, b',"p_value":%b' % orjson.dumps(float(p)))
    for place, member in scores.annotations(evaluation, labels):
        add(parts, place, member)
    left_out = excluded(evaluation, labels)
    for place in layout.averages if left_out else ():
        named = [left_out[key] for key in entries[place].of if key in left_out]
        if named:
            classes = b",".join(classes for classes, _ in named if classes)
            elsewhere = sum(others for _, others in named)
            add(parts, place, b',"excluded":[%b]' % classes)
            if elsewhere:
                add(parts, place, b',"excluded_elsewhere":%d' % elsewhere)


def excluded(evaluation: Evaluation, labels: list[bytes]) -> dict[str, tuple[bytes, int]]:
    """Render, for each per-class key, the classes that its macro average leaves out.

    Returns
    -------
    By key, those of them that are shown, and how many others there are.
    """
    values, found = evaluation.values, evaluation.page
    if values.class_reasons is None or values.defined.all():
        return {}
    undefined = ~evaluation.at(values.defined)
    codes = evaluation.at(values.class_reasons)
    named = {}
    for row in np.nonzero(undefined.any(-1))[0].tolist():
        classes = np.nonzero(undefined[row])[0].tolist()
        shown = classes if found is None else [i for i in classes if i in found.shown]
        named[values.selection.computed[row].key] = (
            b",".join(
                b'{"class":%b%b}' % (labels[i], REASON_MEMBERS[codes[row, i]]) for i in shown
            ),
            len(classes) - len(shown),
        )
    return named


def top_confusions(evaluation: Evaluation, labels: list[bytes]) -> bytes:
    """Render the largest off-diagonal cells."""
    table = evaluation.table
    true, predicted, items = table.cells.largest_errors(evaluation.options.top_confusions)
    shares = numbers(items / table.support[true])
    rows = zip(true.tolist(), predicted.tolist(), numbers(whole(items)), shares, strict=True)
    entries = (
        b'{"true":%b,"predicted":%b,"items":%b,"share_of_true":%b}' % (labels[i], labels[j], n, s)
        for i, j, n, s in rows
    )
    return b"[" + b",".join(entries) + b"]"


def table(evaluation: Evaluation) -> bytes:
    """Render the table as coordinates of its non-empty cells."""
    rows, columns, items = evaluation.table.cells.coordinates()
    triples = zip(rows.tolist(), columns.tolist(), numbers(whole(items)), strict=True)
    cells = b",".join(b"[%d,%d,%b]" % triple for triple in triples)
    vectors = {
        "unclassified": evaluation.table.unclassified,
        "spurious": evaluation.table.spurious,
    }
    tail = b"".join(
        b',"%b":%b' % (name.encode(), orjson.dumps(whole(v), option=NUMPY))
        for name, v in vectors.items()
        if v is not None
    )
    return b'{"cells":[' + cells + b"]" + tail + b"}"
