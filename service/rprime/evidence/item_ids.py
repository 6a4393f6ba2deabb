"""The ids of items in JSON: an array beside `y_true`."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from rprime.core.quantities import plural
from rprime.evidence.arrow_body import Identities
from rprime.evidence.coding import CodedTexts, Integers
from rprime.evidence.names import is_integer
from rprime.problems.problem import refuse
from rprime.schemas.document import kind_of


def ids_of(values: object, size: int, pointer: str) -> Identities:
    """Return the ids of the items, strings or integers, as sent; they may yet be equal.

    An integer is the same id as its digits, as it is in a column.
    """
    if not isinstance(values, list | CodedTexts | Integers):
        detail = f"An array of ids is needed, not {kind_of(values)}."
        raise refuse(pointer, "not_an_array", detail)
    if len(values) != size:
        detail = f"There are {len(values)} ids for {plural(size, 'item')}; each item needs one."
        raise refuse(pointer, "wrong_length", detail)
    identities = Identities(lambda _size: None)
    identities.add(column_of(list(values), pointer))
    return identities


def column_of(ids: Sequence[object], pointer: str, row: int = 0) -> Any:
    """Return ids, the first of which is that of an item, as an Arrow column."""
    for place in np.flatnonzero([type(item) is not str and not is_integer(item) for item in ids])[
        :1
    ]:
        if ids[place] is None:
            detail = "Each item needs an id, or none has one."
            raise refuse(f"{pointer}/{row + place}", "no_id", detail)
        detail = f"An id is a string or an integer, not {kind_of(ids[place])}."
        raise refuse(f"{pointer}/{row + place}", "id_type", detail)
    texts = (item if isinstance(item, str) else str(int(cast("int", item))) for item in ids)
    return pa.array(texts, pa.large_string(), size=len(ids))
