"""Check claims of the source papers by tracing lines of discrimination."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rprime.core.catalog import find
from rprime.core.studies.discrimination import Line, TracedIndex, discriminate

LABATUT = "Labatut, Cherifi 2011"
K = 3
IMBALANCES = (0.0, 0.5, 1.0)
CLOSE = 1e-9
"""Largest distance of two crossings that are the same."""


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, whether it holds, and the numbers that show it."""

    source: str
    text: str
    holds: bool
    numbers: str

    def __str__(self) -> str:
        return f"{self.text} ({self.source}): {self.numbers}"


def check_claims() -> tuple[Claim, ...]:
    """Check every claim."""
    return tuple(Claim(LABATUT, *found) for found in _of_labatut())


def _of_labatut() -> Iterator[tuple[str, bool, str]]:
    """Yield the text of each claim, whether it holds, and the numbers."""
    overall = ("accuracy", "kappa", "scott_pi_true_margin", "maxwell_re")
    found = {key: [_crossing(key, p=p) for p in IMBALANCES] for key in (*overall, "csi")}
    first = [found[key][0] for key in overall]
    text = "With equal classes, accuracy, kappa, SPC and MRE discriminate alike; CSI is stricter"
    holds = _same(first) and found["csi"][0] > first[0]
    yield text, holds, f"c_x at c_y = 0: {_shown(first)}; CSI {found['csi'][0]:.3f}"
    alike = [found[key] for key in overall if key != "kappa"]
    text = "With unequal classes, accuracy, SPC and MRE still discriminate alike, kappa does not"
    holds = all(_same(row) for row in zip(*alike, strict=True)) and not _same(
        (found["kappa"][2], found["accuracy"][2])
    )
    numbers = f"p = 0, 0.5, 1: accuracy {_shown(found['accuracy'])}; kappa {_shown(found['kappa'])}"
    yield text, holds, numbers
    f1, jaccard = (_line(key, 1).points for key in ("f1", "jaccard"))
    distance = float(abs(f1 - jaccard).max())
    text = "F1 and Jaccard of a class order classifiers alike"
    yield text, distance < CLOSE, f"largest distance of their lines {distance:.0e}"
    recall = _line("recall", 1).points
    distance = float(abs(recall[:, 0] - recall[:, 1]).max())
    text = "Recall of the misclassified class discriminates by c alone, its line is y = x"
    yield text, distance < CLOSE, f"largest distance {distance:.0e}"
    keys = (("precision", 1), ("specificity", 1), ("negative_predictive_value", 2), ("recall", 2))
    prefers = [_line(key, c, p=p).prefers for key, c in keys for p in IMBALANCES]
    text = "PPV and TNR of class 1, NPV and TPR of class 2 always prefer the series y"
    yield text, set(prefers) == {"y"}, f"{prefers.count('y')} of {len(prefers)} prefer y"
    kept, changed = (
        [[_crossing(key, c, p=p) for p in IMBALANCES] for key, c in keys]
        for keys in (
            (("recall", 1), ("negative_predictive_value", 1)),
            (("specificity", 2), ("precision", 2)),
        )
    )
    text = "The balance of the classes p changes TNR and PPV of class 2, not TPR and NPV of class 1"
    holds = all(map(_same, kept)) and not any(map(_same, changed))
    numbers = f"NPV {_shown(kept[1])}; TNR {_shown(changed[0])}; PPV {_shown(changed[1])}"
    yield text, holds, f"p = 0, 0.5, 1: {numbers}"
    equal, unequal = ([_crossing("accuracy", p=p, k=k) for k in (3, 10)] for p in (0.0, 1.0))
    text = "The number of classes has a stronger effect when the classes are unbalanced"
    numbers = f"c_x of accuracy for k = 3, 10: {_shown(equal)} at p = 0, {_shown(unequal)} at p = 1"
    yield text, unequal[1] - unequal[0] > equal[1] - equal[0], numbers


def _line(key: str, class_: int | None = None, *, p: float = 0.0, k: int = K) -> Line:
    index = find("class" if class_ else "overall", key)
    assert index is not None  # noqa: S101 (a key of the catalog)
    return discriminate([TracedIndex(index, class_)], k, [p], 101)[0]


def _crossing(key: str, class_: int | None = None, **at: Any) -> float:  # noqa: ANN401 (k and p)
    """Return the rate c_x of the classifier that is as good as one of c_y = 0."""
    points = _line(key, class_, **at).points
    return float(points[points[:, 1].argmin(), 0])


def _same(numbers: Sequence[float]) -> bool:
    return max(numbers) - min(numbers) < CLOSE


def _shown(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.3f}" for number in numbers)
