"""Convert the values of a report to data frames of pandas or polars."""

import math
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from rprime.client.values import ClassValues, Values
from rprime.schemas.report import Value

Columns = dict[str, list[Any]]
Classes = Mapping[str, ClassValues]
LIBRARIES = ("pandas", "polars")
_CONTENTS = ("per_class", "overall", "values")


def frame(
    overall: Values[Value], per_class: Classes, library: str | ModuleType | None, of: str
) -> Any:  # noqa: ANN401 (a frame of the library)
    """Return values of a report as a data frame, as `Report.to_frame` describes it."""
    if of not in _CONTENTS:
        raise ValueError(f"`of` must be one of: {', '.join(_CONTENTS)}")
    module = _library(library)
    if of == "per_class":
        columns = _per_class(per_class)
    else:
        columns = _values(overall, {} if of == "overall" else per_class)
    if of == "overall":
        del columns["class"]
    if module.__name__ == "pandas":
        for name, values in columns.items():
            # Otherwise pandas gives a column of only None the type object.
            if not any(isinstance(value, str) for value in values):
                columns[name] = [math.nan if value is None else value for value in values]
    return module.DataFrame(columns)


def _library(library: str | ModuleType | None) -> ModuleType:
    if isinstance(library, ModuleType):
        return library
    if library not in (None, *LIBRARIES):
        raise ValueError(f"`library` must be one of: {', '.join(LIBRARIES)}")
    names = LIBRARIES if library is None else (library,)
    for name in sorted(names, key=lambda name: name not in sys.modules):
        if name in sys.modules or find_spec(name) is not None:
            return import_module(name)
    missing = "neither is" if library is None else f"{library} is not"
    raise ImportError(
        f"to_frame makes a data frame of pandas or polars, and {missing} installed: "
        "pip install pandas, or pip install polars"
    )


def _per_class(per_class: Classes) -> Columns:
    classes = per_class.values()
    counts = ("support", "predicted", "correct")
    return {
        "class": list(per_class),
        **{name: [getattr(entry, name) for entry in classes] for name in counts},
        **{key: [entry[key].value for entry in classes] for key in next(iter(classes))},
    }


def _values(overall: Values[Value], per_class: Classes) -> Columns:
    names = ("class", "index", "value", "low", "high", "reason")
    rows = [
        (label, key, entry.value, *(entry.interval or (None, None)), entry.reason)
        for label, values in ((None, overall), *per_class.items())
        for key, entry in values.items()
    ]
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}
