"""Changes of many classes: what is shown comes first, and is told from what a few items do."""

from collections import Counter

import numpy as np

from rprime.core.arrays import Array
from rprime.core.gates.rules import Gate
from rprime.report.changed_predictions import changed_predictions
from rprime.report.class_selection import ClassSelection, ordered_classes
from rprime.report.measures import Measures, class_changes
from tests.core.comparison_sides import side_of
from tests.report.report_subjects import judged

CLASSES, PLANTED, INTO = 60, 4, 9
SIZES = np.where(np.arange(CLASSES) % 5 == PLANTED, 400, 9)


def predictions(seed: int, true: Array, *, fallen: bool = False) -> Array:
    """Predict nine of ten items rightly; a fallen class loses a sixth of its items to another."""
    draw = np.random.default_rng(seed)
    others = draw.integers(1, CLASSES, true.size)
    wrong = draw.random(true.size) < 0.1
    predicted: Array = np.where(wrong, (true + others) % CLASSES, true)
    lost = fallen & (true == PLANTED) & (draw.random(true.size) < 1 / 6)
    predicted[lost] = INTO
    return predicted


def compared(seed: int, *, fallen: bool = False) -> Measures:
    true = np.repeat(np.arange(CLASSES), SIZES)
    labels = tuple(f"class {i:02d}" for i in range(CLASSES))
    new, old = (
        side_of(
            true,
            predictions(2 * seed + by, true, fallen=fallen and by == 1),
            CLASSES,
            labels=labels,
        )
        for by in (1, 0)
    )
    return Measures(judged(new, old, Gate(rules=())))


def test_the_surest_loss_comes_before_the_largest_of_a_few_items() -> None:
    measures = compared(1, fallen=True)
    changes = class_changes(measures.subject.comparison, "f1")
    lowest = min(changes, key=lambda label: changes[label].value or 0.0)
    assert SIZES[int(lowest.split()[1])] == 9
    lines, words = ordered_classes(measures, ClassSelection(size=10))
    assert lines[0].label == f"class {PLANTED:02d}"
    assert words == "clearest loss of F1 first"


def test_only_what_holds_for_all_classes_together_is_called_worse() -> None:
    comparison = compared(1, fallen=True).subject.comparison
    changes = class_changes(comparison, "recall")
    assert changes[f"class {PLANTED:02d}"].judged == "worse"
    # Without any difference in truth, an interval of 95 % alone finds many.
    counts = Counter(
        change.judged
        for seed in range(10, 20)
        for change in class_changes(compared(seed).subject.comparison, "recall").values()
    )
    assert counts["worse"] + counts["better"] <= 2
    assert counts["perhaps worse"] + counts["perhaps better"] >= 3


def test_net_changes_of_the_table_come_before_moves_there_and_back() -> None:
    net, moves = changed_predictions(compared(1, fallen=True).subject.comparison)
    assert (net.title, moves.title) == ("Cells that changed most", "Changed predictions")
    errors = [names for names, _ in net.rows if names[0] != names[1]]
    assert errors[0] == (f"class {PLANTED:02d}", f"class {INTO:02d}")
