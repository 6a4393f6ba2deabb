"""Convert columns and tables of any library to plain lists, without importing the library."""

import math
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any, cast

import numpy as np

from rprime.core.arrays import Array
from rprime.core.labels import Axis, axis_by_names, ordered_categories

Label = str | int | bool | None

_LISTS = ("to_pylist", "to_list", "tolist")
"""Methods that return a list: Arrow, pandas and polars, numpy and libraries like it."""
_ARROW = ("__arrow_c_array__", "__arrow_c_stream__")
_MISSING = {"NAType", "NaTType"}
_BOOLEANS = {"bool", "bool_"}
_NEARLY_ZERO = 1e-3
LARGE = 1 << 12
"""From so many numbers on, a column stays an array."""
_MOST, _BYTE = 2**53 - 1, 255


def labels(values: object, name: str) -> list[Label]:
    """Return class names as strings, integers or booleans and, for missing values, None.

    Parameters
    ----------
    values
        A list, an array of numpy, a series of pandas or polars, an array of Arrow, or anything
        that can be iterated. NaN, NA and null are missing; 2.0 is the integer 2.
    name
        The name of the argument, for messages.

    Raises
    ------
    TypeError, ValueError
        If a value is something else, with its place; so do the other functions here.
    """
    items = column(values, name)
    if not set(map(type, items)) <= {str, int, bool, type(None)}:
        items = [_label(value, name, place) for place, value in enumerate(items)]
    return items


def items(values: object, name: str) -> list[Label] | Array:
    """Return the values of all items as `labels` does; many integers stay an array."""
    array = integers(values)
    return labels(values, name) if array is None else array


def integers(values: object) -> Array | None:
    """Return a copy of a large column of integers from 0, none missing, as an array; else None."""
    array = _large(values, "iu")
    if array is None or array.min() < 0 or array.max() > _MOST:
        return None
    return np.array(array, np.uint8 if array.max() <= _BYTE else np.int64)


def number_column(values: object, name: str) -> list[float] | Array:
    """Return finite numbers as `weights` does; many of them stay an array, which is a copy."""
    array = _large(values, "iuf")
    if array is None or not np.isfinite(array).all():
        return weights(values, name)
    return np.array(array, np.float64)


def _large(values: object, kinds: str) -> Array | None:
    """Return a flat array of numpy with many numbers of some kinds, of any library; else None."""
    type_name = str(getattr(values, "dtype", getattr(values, "type", ""))).lower()
    if not type_name.startswith(("int", "uint", "float", "double")) or _is_frame(values):
        return None
    convert = getattr(values, "to_numpy", None)
    if convert is not None and len(values) >= LARGE:  # type: ignore[arg-type] # a column
        values = convert()
    if type(values) is not np.ndarray or values.ndim != 1 or values.size < LARGE:
        return None
    return values if values.dtype.kind in kinds else None


def distinct(values: list[Label] | Array) -> set[Label]:
    """Return the labels that occur."""
    return set(np.unique(values).tolist() if isinstance(values, np.ndarray) else values)


def weights(values: object, name: str) -> list[float]:
    """Return finite numbers."""
    items = column(values, name)
    kinds = set(map(type, items))
    if kinds <= {int} or (kinds <= {int, float} and all(map(math.isfinite, items))):
        return items
    return [_number(value, f"`{name}[{place}]`") for place, value in enumerate(items)]


def rows(values: object, name: str) -> list[list[float]]:
    """Return the finite numbers of a table, row by row."""
    table = _listed(_array_of(values), name)
    return [weights(row, f"{name}[{place}]") for place, row in enumerate(table)]


def scores(values: object, name: str) -> object:
    """Return the finite scores of items, a row or a number for each: lists, or an array."""
    data = _array_of(values)
    if getattr(getattr(data, "dtype", None), "kind", "") == "f" and hasattr(data, "astype"):
        array = np.array(data, dtype=np.float64, order="C")
        if np.isfinite(array).all():
            return array
    items = _listed(data, name)
    flat = bool(items) and not isinstance(items[0], Iterable)
    return weights(items, name) if flat else rows(items, name)


def score_labels(values: object, name: str, true: list[Label] | Array | None) -> list[Label] | None:
    """Return the class names in the columns of a data frame of scores; else None.

    Numbered columns name classes only if the labels are integers.
    """
    if (columns := _frame_columns(values, name)) is None:
        return None
    numbered = columns == list(range(len(columns)))
    texts = isinstance(true, list) and any(isinstance(label, str) for label in true)
    return None if numbered and texts else columns


def refuse_others(values: object, names: list[Label], true: list[Label] | Array) -> None:
    """Refuse columns of scores without which all rows are probabilities, such as ids of items."""
    table, classes = np.asarray(values, dtype=np.float64), distinct(true)
    is_class = np.array([name in classes for name in names])
    if table.shape[1:] != is_class.shape or not is_class.any():
        return
    sums, rest = table[:, is_class].sum(axis=1), np.abs(table[:, ~is_class])
    # A class that no item has may have a probability that is nearly 0.
    if (rest > _NEARLY_ZERO).any() and np.allclose(sums, 1, rtol=0, atol=1e-6):
        others = [name for name in names if name not in classes]
        raise ValueError(
            f"The rows of `y_score` sum to 1 without {', '.join(f'`{name}`' for name in others)}: "
            "leave out the columns that are no classes"
        )


class _Axis(list[Any]):
    """The names along one side of a table, and what they are called."""

    name: object = None


@dataclass(frozen=True)
class _Table:
    """A table of counts with the names of its rows apart from its columns."""

    rows: list[list[Any]]
    columns: _Axis
    index: _Axis

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), len(self.columns)

    def to_numpy(self) -> list[list[Any]]:
        """Return the counts."""
        return self.rows


def with_names(values: object) -> object:
    """Return a frame whose first column names its rows with these names as its index.

    polars and Arrow have no index, and `reset_index` of pandas writes one so. Everything else
    stays as it is.
    """
    frame = cast("Any", values)
    axis = getattr(frame, "column_names", None) or getattr(frame, "columns", None)
    names = [] if axis is None else list(axis)
    if not names or not _is_frame(values) or len(set(names)) < len(names):
        return values
    first = _listed(frame[names[0]], "confusion_matrix")
    numbered = list(map(str, first)) == list(map(str, names[1:]))
    has_names = numbered or (bool(first) and isinstance(first[0], str))
    if not has_names and not hasattr(values, "column_names"):
        return values
    columns, index = _Axis(names[has_names:]), _Axis(names[1:] if numbered else first)
    columns.name, index.name = getattr(axis, "name", None), names[0]
    lists = [_listed(frame[name], "confusion_matrix") for name in columns]
    rows = [list(row) for row in zip(*lists, strict=True)]
    return _Table(rows, columns, index if has_names else columns)


def frame_labels(values: object, name: str) -> list[Label] | None:
    """Return the class names of a data frame; None for everything else.

    Raises
    ------
    ValueError
        If the names of its rows differ from those of its columns.
    """
    columns, index = _frame_columns(values, name), getattr(values, "index", None)
    if columns is None or index is None:
        return columns
    named = labels(index, f"{name}.index")
    if named in (columns, list(range(len(columns)))):
        return columns
    raise ValueError(
        f"The rows of `{name}` are not named like its columns, in the same order; "
        "bring both in line with .reindex(index=names, columns=names, fill_value=0)"
    )


def frame_axis(values: object) -> Axis | None:
    """Return what the rows of a data frame are, as the names of its axes say."""
    if not _is_frame(values):
        return None
    axes = (getattr(values, axis, None) for axis in ("index", "columns"))
    return axis_by_names(*(getattr(axis, "name", None) for axis in axes))


def categories(values: object, name: str) -> list[Label] | None:
    """Return the ordered categories of a column as labels; None without order."""
    names = ordered_categories(values)
    return None if names is None else labels(names, name)


def column(values: object, name: str) -> list[Any]:
    """Return the values of a column as a list."""
    if _is_frame(values):
        raise TypeError(f"`{name}` is a whole table; give one of its columns")
    items = _listed(values, name)
    if items and isinstance(items[0], list):
        hint = _MATRICES.get(name, "")
        if all(isinstance(row, list) and len(row) == 1 for row in items):
            hint = "; numpy.ravel makes it flat"
        raise TypeError(
            f"`{name}` has more than one dimension; it needs one value for each item{hint}"
        )
    return items


def as_lists(values: object) -> list[Any]:
    """Return a column or a table of any library as lists; a `TypeError` says that it is none."""
    if not is_column(values):
        raise TypeError(f"{type_with_article(values)} is no column")
    return _listed(_array_of(values), "")


def is_column(values: object) -> bool:
    """Whether a value is a column or a table of some library."""
    return _is_frame(values) or any(hasattr(values, name) for name in (*_LISTS, *_ARROW))


def type_with_article(value: object) -> str:
    """Return the type of a value with its article, for messages: `an int`."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


_ONE_HOT = "numpy.argmax(..., axis=1) turns one-hot rows into classes"
_MATRICES = {
    "y_true": f"; {_ONE_HOT}, and a confusion matrix is `confusion_matrix=...`",
    "y_pred": f"; {_ONE_HOT}, and scores or probabilities of the classes are `y_score=...`",
}
_ITEMS = {"y_true", "y_pred", "sample_weight", "inclusion_probability", "groups", "item_id"}
_NO_LISTS = (str, bytes, Mapping, AbstractSet)
_LABELS = {"labels", "indices", "families", "tags", "unclassified", "spurious", "class_items"}


def _listed(values: object, name: str) -> list[Any]:
    if isinstance(values, list):
        return values
    items: object = None
    methods = (getattr(values, method, None) for method in _LISTS)
    if (convert := next(filter(callable, methods), None)) is not None:
        items = convert()
    elif any(hasattr(values, method) for method in _ARROW):
        items = _through_arrow(values, name)
    elif isinstance(values, Iterable) and not isinstance(values, _NO_LISTS):
        items = list(values)
    # An array without dimensions returns a number.
    if not isinstance(items, list):
        needs = "be a list" if name in _LABELS else "be a matrix, such as a list of rows"
        if name in _ITEMS or "/" in name:
            needs = "have one value for each item"
        raise TypeError(f"`{name}` is {type_with_article(values)}; it must {needs}")
    return items


def _through_arrow(values: object, name: str) -> object:
    """Read an object that offers only the Arrow interface."""
    if find_spec("pyarrow") is None:
        raise TypeError(
            f"`{name}` is {type_with_article(values)}, which only pyarrow can read here: "
            "pip install pyarrow, or give a list"
        )
    import pyarrow as pa  # noqa: PLC0415 - only Arrow data need it

    read = pa.array if hasattr(values, "__arrow_c_array__") else pa.chunked_array
    return read(values).to_pylist()


def _array_of(values: object) -> object:
    """Return the array of a data frame; everything else as it is."""
    to_numpy = getattr(values, "to_numpy", None)
    return to_numpy() if _is_frame(values) and callable(to_numpy) else values


def _is_frame(values: object) -> bool:
    return hasattr(values, "columns") and hasattr(values, "shape")


def _frame_columns(values: object, name: str) -> list[Label] | None:
    """Return the names of the columns of a data frame; None for everything else."""
    columns = getattr(values, "columns", ())
    return labels(columns, f"{name}.columns") if _is_frame(values) else None


def _label(value: object, name: str, place: int) -> Label:
    kind = type(value)
    if value is None or kind.__name__ in _MISSING:
        return None
    if kind.__name__ in _BOOLEANS:
        return bool(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Integral):
        return int(value)
    if not isinstance(value, Real):
        fault = f"{type_with_article(value)}; a label is a string or an integer"
        hint = ": .decode() or, of an array, .astype(str) returns strings"
        hint = hint if isinstance(value, bytes) else ""
        if hasattr(value, "__len__") and hasattr(value, "dtype"):
            hint = "; numpy.concatenate joins the batches of a list"
        raise TypeError(f"`{name}[{place}]` is {fault}{hint}")
    number = float(value)
    if math.isnan(number):
        return None
    if number.is_integer():
        return int(number)
    hint = "; scores are `y_score`, with a column for each class" if 0 <= number <= 1 else ""
    raise ValueError(f"`{name}[{place}]` is {number}; a label is a string or an integer{hint}")


def _number(value: object, where: str) -> float:
    if type(value).__name__ in _BOOLEANS or not isinstance(value, Real):
        raise TypeError(f"{where} is {type_with_article(value)}; it must be a number")
    if not math.isfinite(value):
        raise ValueError(f"{where} is {value}; it must be a finite number")
    return int(value) if isinstance(value, Integral) else float(value)
