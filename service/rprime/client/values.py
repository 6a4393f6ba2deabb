"""Values of a report, by the keys of their indices."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rprime.schemas.report import Value


class Values(Mapping[str, "Value"]):
    """The values of indices: `values["recall"]`, or `values.recall`."""

    def __init__(self, values: "Mapping[str, Value]") -> None:
        self._values = values

    def __getitem__(self, key: str) -> "Value":
        return self._values[key]

    def __getattr__(self, key: str) -> "Value":
        # Copying and unpickling read attributes before the values exist.
        if not key.startswith("_") and key in self._values:
            return self._values[key]
        raise AttributeError(f"This report has no index {key!r}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._values})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self._values)!r})"


class ClassValues(Values):
    """The values of one class, and its counts.

    Parameters
    ----------
    values
        By key.
    support, predicted, correct
        Items of the class, predictions of it, and correct predictions.
    """

    def __init__(
        self,
        values: "Mapping[str, Value]",
        *,
        support: float,
        predicted: float,
        correct: float,
    ) -> None:
        super().__init__(values)
        self.support = support
        self.predicted = predicted
        self.correct = correct
