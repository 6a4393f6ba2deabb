"""Verdicts and comparisons as they were given, read back from their JSON to be rendered again."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import orjson
from numpy.typing import ArrayLike

from rprime.core.arrays import Array
from rprime.core.comparison.attribution import Attribution, CellChanges
from rprime.core.comparison.compare import Comparison
from rprime.core.comparison.difference import METHODS, REASONS, Difference
from rprime.core.comparison.flips import Flips, Move, Shift
from rprime.core.comparison.shift import ShiftTest
from rprime.core.gates.result import GateResult, Result
from rprime.report.gate import MEMBERS

Json = Any


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedDifference(Difference):
    """A difference whose interval was written down; what a test of it needed was not.

    Parameters
    ----------
    low, high
        Of the interval, at the confidence of the comparison.
    """

    low: Array
    high: Array

    def __getitem__(self, position: Any) -> "RecordedDifference":  # noqa: ANN401 (a numpy index)
        """Select elements, by any numpy index."""
        return RecordedDifference(
            **{f.name: np.asarray(getattr(self, f.name)[position]) for f in fields(self)}
        )

    def limits(self, level: ArrayLike) -> tuple[Array, Array]:  # noqa: ARG002 (as it was asked)
        """Give the ends that were written down."""
        return self.low, self.high


def read_gate(document: bytes) -> GateResult:
    """Read a verdict; its warnings are kept elsewhere."""
    found = orjson.loads(document)
    return GateResult(
        verdict=found["verdict"],
        alpha=found["alpha"],
        look=found["look"],
        results=tuple(_result(one) for one in found["results"]),
        warnings=(),
    )


def _result(found: Json) -> Result:
    values = {name: found[member] for name, member in MEMBERS}
    interval = values["interval"]
    return Result(**values | {"interval": None if interval is None else tuple(interval)})


def baseline_name(document: bytes) -> str | None:
    """Give the name of the baseline of a comparison; None for evidence in the request."""
    source = orjson.loads(document)["baseline"]
    return None if source["resolved"] is None else next(iter(source["requested"].values()))


def read_comparison(document: bytes) -> Comparison:
    """Read a comparison; its warnings are kept elsewhere."""
    found = orjson.loads(document)
    per_class = found["per_class"]
    keys = tuple(next(iter(per_class.values()), ()))
    rows = [of_label[key] for key in keys for of_label in per_class.values()]
    labels = tuple(dict.fromkeys((*per_class, *_named(found))))
    return Comparison(
        comparability=found["comparability"],
        pairing=found["pairing"],
        classes=tuple(per_class),
        candidate_only=tuple(found["classes"]["candidate_only"]),
        baseline_only=tuple(found["classes"]["baseline_only"]),
        overall_keys=tuple(found["overall"]),
        per_class_keys=keys,
        overall=_difference(list(found["overall"].values()), (len(found["overall"]),)),
        per_class=_difference(rows, (len(keys), len(per_class))),
        confidence=found["confidence"],
        flips=_flips(found),
        shift=None if found["shift"] is None else _shift(found["shift"]),
        changes=None if found["cells"] is None else _changes(found["cells"], labels),
        attributions=tuple(
            _attribution(name, one, labels) for name, one in found["attribution"].items()
        ),
        warnings=(),
    )


def _named(found: Json) -> list[str]:
    """Give the classes that are named in cells, those of one side alone among them."""
    attributed = [cell for one in found["attribution"].values() for cell in one["cells"]]
    cells = [*(found["cells"] or ()), *attributed]
    names = [cell[end] for cell in cells for end in ("true", "predicted")]
    return [name for name in names if name is not None]


def _difference(deltas: list[Json], shape: tuple[int, ...]) -> RecordedDifference:
    def column(values: list[Any]) -> Array:
        return np.array(values, dtype=np.float64).reshape(shape)

    ends = [delta["interval"] or (None, None) for delta in deltas]
    codes = [REASONS.index(delta.get("reason", "")) for delta in deltas]
    methods = [METHODS.index(delta["method"] or "") for delta in deltas]
    unknown = np.full(shape, np.nan)
    return RecordedDifference(
        candidate=column([delta["candidate"] for delta in deltas]),
        baseline=column([delta["baseline"] for delta in deltas]),
        value=column([delta["value"] for delta in deltas]),
        low=column([low for low, _ in ends]),
        high=column([high for _, high in ends]),
        reasons=np.array(codes, dtype=np.intp).reshape(shape),
        methods=np.array(methods, dtype=np.intp).reshape(shape),
        gains=unknown,
        losses=unknown,
        trials=unknown,
        standard_error=unknown,
        baseline_hits=unknown,
        candidate_hits=unknown,
        items=unknown,
    )


def _flips(found: Json) -> Flips | None:
    flips = found["flips"]
    if flips is None:
        return None
    rows = [*flips["per_class"].values(), flips]

    def column(name: str) -> Array:
        return np.array([row[name] for row in rows], dtype=np.float64)

    return Flips(
        labels=tuple(flips["per_class"]),
        right_to_wrong=column("right_to_wrong"),
        wrong_to_right=column("wrong_to_right"),
        mid_p=column("mid_p"),
        p_worse=column("p_worse"),
        moves=tuple(Move(m["true"], m["from"], m["to"], m["items"]) for m in found["moves"]),
        moved=flips["moved"],
    )


def _shift(found: Json) -> Shift:
    return Shift(_test(found["bowker"]), _test(found["stuart_maxwell"]))


def _test(found: Json) -> ShiftTest:
    statistic, p_value = (
        np.array(found[name], dtype=np.float64) for name in ("statistic", "p_value")
    )
    return ShiftTest(statistic, np.array(found["df"]), p_value)


def _changes(cells: list[Json], labels: tuple[str, ...]) -> CellChanges:
    true, predicted = _codes(cells, labels)
    columns = {
        name: np.array([cell[name] for cell in cells], dtype=np.float64)
        for name in ("baseline", "candidate", "change")
    }
    return CellChanges(true=true, predicted=predicted, labels=labels, **columns)


def _attribution(name: str, found: Json, labels: tuple[str, ...]) -> Attribution:
    key, named, label = name.partition("/")
    true, predicted = _codes(found["cells"], labels)
    contributions = [cell["contribution"] for cell in found["cells"]]
    rest, residual = (np.nan if found[n] is None else found[n] for n in ("rest", "residual"))
    return Attribution(
        key=key,
        label=label if named else None,
        true=true,
        predicted=predicted,
        contributions=np.array(contributions, dtype=np.float64),
        rest=rest,
        residual=residual,
        labels=labels,
    )


def _codes(cells: list[Json], labels: tuple[str, ...]) -> tuple[Array, Array]:
    """Give the class numbers of cells; the number of classes where there is no name."""
    number: dict[str | None, int] = {label: i for i, label in enumerate(labels)}
    number[None] = len(labels)
    true, predicted = (
        np.array([number[cell[end]] for cell in cells], dtype=np.intp)
        for end in ("true", "predicted")
    )
    return true, predicted
