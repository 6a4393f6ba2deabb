"""The macro, weighted and micro averages of every per-class index."""

from dataclasses import replace

import numpy as np

from rprime.core.arrays import Array
from rprime.core.counts import CountRow
from rprime.core.index import CODE, Average, Index


def averages_of(index: Index) -> tuple[Index, ...]:
    """Derive the averages of a per-class index, if it has any.

    Micro averages pool the counts; only ratios of counts have one.
    """
    kinds = AVERAGES if index.averaged else ()
    return tuple(_derive(index, kind) for kind in kinds if kind != "micro" or index.micro)


AVERAGES: dict[Average, tuple[str, str, tuple[str, ...]]] = {
    "macro": (
        r"\frac{{1}}{{k}} \sum_i \left[{tex}\right]",
        "Plain mean over the classes with a defined value; each class counts the same.",
        ("no_class_defined",),
    ),
    "weighted": (
        r"\sum_i \frac{{m_i}}{{w}} \left[{tex}\right]",
        (
            "Mean over the classes, weighted by their numbers of items; undefined if the value "
            "of a class with items is."
        ),
        ("no_samples",),
    ),
    "micro": (
        r"\text{{pooled counts: }} {tex}",
        "The same formula on the counts summed over all classes.",
        (),
    ),
}
"""Formula, description, and reasons why a value does not exist; without any, those of the index."""


def _derive(index: Index, kind: Average) -> Index:
    tex, text, undefined = AVERAGES[kind]
    return replace(
        index,
        key=f"{kind}_{index.key}",
        scope="overall",
        reads=kind,
        of=(index.key,),
        symbol=f"{kind} {index.symbol}",
        name=f"{kind.capitalize()} {_inside(index.name)}",
        description=f"{text} {index.description}",
        tex=tex.format(tex=index.tex),
        undefined=undefined or index.undefined,
        interval=index.interval if index.scored else _interval(index, kind),
        parts=None,
        rows=index.rows if kind == "micro" else (CountRow.total, CountRow.total),
    )


def _inside(name: str) -> str:
    """Return a name as it stands inside another: people and symbols keep their capital."""
    kept = not name[1:2].islower() or name.startswith(_PEOPLE)
    return name if kept else name[0].lower() + name[1:]


_PEOPLE = ("Braun", "Fowlkes", "Jaccard", "Kulczynski", "Matthews", "Sorgenfrei", "Yule")


STRATIFIED = ("parts", "odds")
"""Interval methods of indices whose weighted averages rest on the intervals of the classes."""


def _interval(index: Index, kind: Average) -> str | None:
    """Return the interval of an average of a per-class index.

    Shares of all items, weighted by the prevalence, are biased; averages of unbounded indices rest
    on the one class with the largest value.
    """
    shares = index.reads == "ratio" and index.rows[1] == CountRow.total
    biased = shares and kind == "weighted"
    if index.interval is None or not np.isfinite(index.range[1]) or biased:
        return None
    of_negatives = index.rows[1] in {CountRow.negatives, CountRow.predicted_negatives}
    parts = kind == "weighted" and (index.interval in STRATIFIED or of_negatives)
    return "average" if kind == "macro" or parts else "score"


def macro_means(values: Array, defined: Array) -> Array:
    """Average (..., k) over the classes with a defined value; NaN where there are none."""
    sums = np.add.reduce(np.where(defined, values, 0.0), axis=-1)
    return np.asarray(sums / np.add.reduce(defined, axis=-1))


def weighted_means(values: Array, support: Array, total: Array) -> Array:
    """Average values (..., k) by m_i; NaN where a class with items has none that is finite.

    m_i, of shape (..., k), and w, of shape (...), are broadcastable to the values.
    """
    defined = np.isfinite(values)
    sums = np.add.reduce(np.where(defined, values, 0.0) * support, axis=-1)
    incomplete = (~defined & (support > 0)).any(-1)
    return np.asarray(np.where(incomplete, np.nan, sums / total))


def weighted_reasons(codes: Array, support: Array) -> Array:
    """Return why a class with items has no value, else no_samples, shape (...).

    Of several reasons the first of `REASONS`, so that the order of the classes does not matter.
    """
    blocking = (codes > 0) & (support > 0)
    least = np.minimum.reduce(np.where(blocking, codes, np.iinfo(np.uint8).max), axis=-1)
    return np.where(blocking.any(-1), least, CODE["no_samples"]).astype(np.uint8)
