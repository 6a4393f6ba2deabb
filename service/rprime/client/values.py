"""Values of a report, by the keys of their indices."""

import math
import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from types import ModuleType
from typing import Any, TypeVar

from rprime.core.catalog import find
from rprime.core.index_names import canonical, nearest_keys
from rprime.core.quantities import plural
from rprime.report.text import decimal, span
from rprime.schemas.comparison import Comparison
from rprime.schemas.gate import Delta
from rprime.schemas.report import ClassReport, Value

Member = TypeVar("Member")
Found = TypeVar("Found", bound=Value | Delta)
_SHOWN = 5
"""Classes that a short text names."""
_LINES = 20
"""Values that a short text lists."""


class _Named(Mapping[str, Member]):
    """What is found by name, in an order."""

    def __init__(self, values: Mapping[str, Member]) -> None:
        self._values = values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Values(_Named[Found]):
    """The values of indices: `values["recall"]`, `values.recall`, or by an alias."""

    def __getitem__(self, key: str) -> Found:
        # At a population the alias `estimated_prevalence` is the name of the member.
        index = key if key in self._values else canonical(key)
        if index in self._values:
            return self._values[index]
        raise KeyError(self._absent(key))

    def __getattr__(self, key: str) -> Found:
        # Copying and unpickling read names with underscores before the values exist.
        if key.startswith("_"):
            raise AttributeError(key)
        if key in self:
            return self[key]
        raise AttributeError(self._absent(key))

    def _absent(self, key: object) -> str:
        """Say which index of the report may be meant."""
        name = str(key)
        index = canonical(name)
        single = index.removeprefix("macro_").removeprefix("weighted_")
        meant = dict.fromkeys((f"macro_{index}", single, *nearest_keys(name)))
        near = [repr(other) for other in meant if other in self._values]
        is_overall = all(find("overall", other) for other in self._values)
        if is_overall and find("class", index) and not find("overall", index):
            near.append(f"per_class[...][{index!r}]")
        elif not is_overall and find("overall", index):
            near.append(f"overall[{index!r}]")
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        return f"there is no index {key!r} here{hint}"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._values})

    def __repr__(self) -> str:
        width = max(map(len, self._values), default=0)
        lines = []
        for key, entry in islice(self._values.items(), _LINES):
            value = f"none ({entry.reason})" if entry.value is None else decimal(entry.value)
            limits = "" if entry.interval is None else f"  {span(*entry.interval)}"
            lines.append(f"\n  {key:<{width}}  {value}{limits}")
        if len(self) > _LINES:
            lines.append(f"\n  ... {len(self) - _LINES} more")
        number = "1 index" if len(self) == 1 else f"{len(self)} indices"
        return f"<{type(self).__name__}: {number}{''.join(lines)}>"


class ClassValues(Values[Value]):
    """The values of one class, and its counts: items, predictions, and correct predictions."""

    def __init__(self, report: ClassReport) -> None:
        super().__init__(report.indices.root)
        self.support = report.support
        self.predicted = report.predicted
        self.correct = report.correct


class Classes(_Named[Member]):
    """The classes of a report by their labels: the class 7 is `classes[7]` and `classes["7"]`."""

    def __getitem__(self, label: object) -> Member:
        name = str(label)
        if name in self._values:
            return self._values[name]
        near = get_close_matches(name, self._values, n=3) or list(islice(self._values, _SHOWN))
        meant = " or ".join(map(repr, near))
        raise KeyError(f"there is no class {label!r} here; did you mean {meant}?")

    def __repr__(self) -> str:
        more = ", ..." if len(self) > _SHOWN else ""
        names = ", ".join(map(repr, islice(self, _SHOWN)))
        return f"<Classes: {len(self)} of them, {names}{more}>"


class Differences:
    """A comparison in an answer: `found.overall["accuracy"].interval`, `found.moves`."""

    def __init__(self, model: Comparison) -> None:
        self.model = model
        self.overall = Values(model.overall)
        self.per_class = Classes({name: Values(deltas) for name, deltas in model.per_class.items()})

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (each member has its type)
        # Copying and unpickling read attributes before the model exists.
        if name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *type(self.model).model_fields})

    def __repr__(self) -> str:
        paired = self.model.pairing or "not paired"
        overall = plural(len(self.overall), "overall difference")
        classes = plural(len(self.per_class), "class")
        return f"<Differences: {self.model.comparability}, {paired}, {overall}, {classes}>"


Columns = dict[str, list[Any]]
ClassMapping = Mapping[str, ClassValues]
LIBRARIES = ("pandas", "polars")
_CONTENTS = ("per_class", "overall", "values")


def frame(
    overall: Values[Value], per_class: ClassMapping, library: str | ModuleType | None, of: str
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


def _per_class(per_class: ClassMapping) -> Columns:
    classes = per_class.values()
    counts = ("support", "predicted", "correct")
    return {
        "class": list(per_class),
        **{name: [getattr(entry, name) for entry in classes] for name in counts},
        **{key: [entry[key].value for entry in classes] for key in next(iter(classes))},
    }


def _values(overall: Values[Value], per_class: ClassMapping) -> Columns:
    names = ("class", "index", "value", "low", "high", "reason")
    rows = [
        (label, key, entry.value, *(entry.interval or (None, None)), entry.reason)
        for label, values in ((None, overall), *per_class.items())
        for key, entry in values.items()
    ]
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}
