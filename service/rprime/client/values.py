"""Values of a report, by the keys of their indices."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any, TypeVar

from rprime.core.aliases import canonical
from rprime.core.catalog import find
from rprime.core.quantities import plural
from rprime.core.suggestions import nearest_keys
from rprime.report.decimals import decimal, span
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
