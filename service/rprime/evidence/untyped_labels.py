"""Settle what the labels of a format without types are."""

from collections.abc import Collection, Sequence

import numpy as np

from rprime.core.arrays import Array
from rprime.core.label_texts import integer_text, likely_mistake
from rprime.problems.problem import refuse


def settled(
    labels: Sequence[str | None], declared: Collection[str] | None, pointer: str
) -> tuple[list[str | None], bool]:
    """Decide what the labels of all columns are.

    Parameters
    ----------
    labels
        By code; the first one is None, for no label.
    declared
        The declared classes; None: those that occur.
    pointer
        JSON pointer to the true labels.

    Returns
    -------
    The names by code, and whether all are integers.

    Raises
    ------
    Problem
        If, without declared classes, the labels are most likely a mistake.
    """
    integers = [None if label is None else integer_text(label) for label in labels]
    numeric = None not in integers[1:]
    if declared is not None:
        pairs = zip(labels, integers, strict=True)
        return [a if a in declared or b not in declared else b for a, b in pairs], numeric
    if numeric:
        return integers, True
    mistake = likely_mistake(label for label in labels if label is not None)
    if mistake is not None:
        raise refuse(pointer, "ambiguous_labels", mistake)
    return list(labels), False


def merged(names: list[str | None]) -> Array | None:
    """Return, by code, the first code of the same name, and drop the name from the other codes.

    Returns
    -------
    None where no name has two codes.
    """
    first: dict[str, int] = {}
    codes = [i if name is None else first.setdefault(name, i) for i, name in enumerate(names)]
    if codes == list(range(len(names))):
        return None
    for code, same in enumerate(codes):
        names[code] = names[code] if code == same else None
    return np.array(codes, np.min_scalar_type(len(names)))
