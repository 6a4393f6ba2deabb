"""Answer: what changed since a baseline, in a few sentences for somebody in a hurry."""

from rprime.report.changed_predictions import worse_slices
from rprime.report.measures import class_changes
from rprime.report.slices import shown_slice
from rprime.report.text import MINUS, count, isolated, percent, shown
from rprime.schemas.comparison import Comparison

_OVERALL = "accuracy"
_OF_CLASSES = "recall"


def answer(comparison: Comparison | None) -> str:
    """Say how far accuracy moved, which class and which slice lost, and how many items."""
    if comparison is None or comparison.pairing is None:
        return ""
    sentences = (_overall(comparison), _class(comparison), _slice(comparison), _items(comparison))
    return " ".join(filter(None, sentences))


def points(change: float) -> str:
    """Write a change of a share in points of per cent."""
    number = f"{abs(100 * change):.1f}"
    return f"{MINUS if change < 0 and number.strip('0.') else '+' if change > 0 else ''}{number}"


def _overall(comparison: Comparison) -> str:
    delta = comparison.overall.get(_OVERALL)
    if delta is None or delta.value is None or delta.candidate is None or delta.baseline is None:
        return ""
    text = f"Accuracy {_share(delta.baseline)} → {_share(delta.candidate)}: "
    text += f"{points(delta.value)} points"
    if delta.interval is not None:
        low, high = delta.interval
        text += f" ({percent(comparison.confidence)}: {points(low)} to {points(high)})"
    return f"{text}."


def _share(value: float) -> str:
    return f"{100 * value:.1f}\N{NO-BREAK SPACE}%"


def _class(comparison: Comparison) -> str:
    """Name the class that is shown to have lost most recall, and what it is taken for now."""
    changes = class_changes(comparison, _OF_CLASSES)
    lost = [(c.surest(lowest=True), label) for label, c in changes.items() if c.judged == "worse"]
    if not lost:
        return ""
    _, label = min((key, label) for key, label in lost if key is not None)
    delta = comparison.per_class[label][_OF_CLASSES]
    if delta.baseline is None or delta.candidate is None:
        return ""
    text = f"Class {isolated(shown(label))} lost most: recall {_share(delta.baseline)} → "
    return f"{text}{_share(delta.candidate)}{_into(comparison, label)}."


def _into(comparison: Comparison, label: str) -> str:
    moved = [
        (cell.candidate - cell.baseline, cell.predicted)
        for cell in comparison.cells or ()
        if cell.true == label != cell.predicted
    ]
    items, name = max(moved, key=lambda pair: pair[0], default=(0, None))
    if items <= 0:
        return ""
    what = "unclassified" if name is None else f"into {isolated(shown(name))}"
    return f", {what} ({count(items)} more)"


def _slice(comparison: Comparison) -> str:
    for change, index, delta in worse_slices(comparison):
        if index.key == _OVERALL and delta.value is not None:
            name = isolated(shown_slice(change.slice))
            return f"Slice {name} lost {points(delta.value)[1:]} points."
    return ""


def _items(comparison: Comparison) -> str:
    flips = comparison.flips
    if flips is None:
        return ""
    return f"{count(flips.right_to_wrong)} items went wrong, {count(flips.wrong_to_right)} right."
