"""A gate never passes because items are missing, relabelled or in another slice."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from rprime.cli import app

Array = Any
NOT_PASSED = {1, 3, 5}
RULES = (
    "{index: accuracy, max_drop: 0.02}",
    "{index: recall, classes: all, max_drop: 0.1, min_items: 10}",
)


@dataclass(frozen=True)
class Predictions:
    """True classes and predictions by item, to be written with their ids."""

    true: Array
    predicted: Array
    region: Array | None = None

    def write(self, path: Path, kept: Array | None = None, *, ids: bool = True) -> Path:
        places = np.arange(len(self.true)) if kept is None else np.flatnonzero(kept)
        columns = {"item_id": [f"i{i}" for i in places.tolist()]} if ids else {}
        columns |= {"y_true": self.true[places].tolist(), "y_pred": self.predicted[places].tolist()}
        if self.region is not None:
            columns["slice:region"] = self.region[places].tolist()
        rows = (",".join(map(str, row)) for row in zip(*columns.values(), strict=True))
        path.write_text("\n".join([",".join(columns), *rows, ""]), encoding="utf-8")
        return path


Judge = Callable[..., Result]


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """Return what runs a gate on two files, under `--strict`."""

    def run(candidate: Path, baseline: Path, *rules: str, **more: str) -> Result:
        gates = tmp_path / "gates.yaml"
        listed = "".join(f"  - {rule}\n" for rule in rules or RULES)
        members = "".join(f"{name}: {value}\n" for name, value in more.items())
        gates.write_text(f"{members}rules:\n{listed}", encoding="utf-8")
        report = tmp_path / "report.json"
        command = ["evaluate", candidate, "--baseline", baseline, "--gates", gates, "--strict"]
        command += ["--json-file", report]
        return CliRunner().invoke(app, [str(part) for part in command])

    return run


def two_classes() -> tuple[Predictions, Array]:
    """Return 1800 items of a and 200 of b, and which of them come after the first 200."""
    number = np.arange(2000)
    true = np.where(number % 10 == 0, "b", "a")
    return Predictions(true, np.where(number % 7 == 0, "a", true)), number > 200


def long_tail() -> Predictions:
    """Return 12,000 items of 30 classes, the smallest of 60."""
    shares = np.linspace(1, 12, 30)
    sizes = np.round(12_000 * shares / shares.sum()).astype(int)
    true = np.repeat([f"c{i:02}" for i in range(30)], sizes)
    draw = np.random.default_rng(3)
    wrong = draw.random(true.size) < 0.1
    return Predictions(true, np.where(wrong, draw.permutation(true), true))


def test_a_class_of_the_baseline_alone_is_not_comparable_without_ids(
    judge: Judge, tmp_path: Path
) -> None:
    """Under `classes: all`, too, from 10 items on."""
    old = long_tail()
    baseline = old.write(tmp_path / "old.csv", ids=False)
    lost = old.write(tmp_path / "lost.csv", old.true != "c00", ids=False)
    assert judge(lost, baseline).exit_code in NOT_PASSED


def test_new_items_are_no_reason(judge: Judge, tmp_path: Path) -> None:
    old, _ = two_classes()
    baseline = old.write(tmp_path / "old.csv", np.arange(2000) < 1900)
    assert judge(old.write(tmp_path / "new.csv"), baseline).exit_code == 0


def test_few_missing_items_cannot_hide_a_loss_and_pass(judge: Judge, tmp_path: Path) -> None:
    """Four of 1800 items change no recall by more than the limit."""
    old, _ = two_classes()
    kept = ~np.isin(np.arange(2000), [3, 33, 333, 1333])
    candidate = old.write(tmp_path / "new.csv", kept)
    assert judge(candidate, old.write(tmp_path / "old.csv")).exit_code == 0


def test_the_same_items_pass(judge: Judge, tmp_path: Path) -> None:
    old, _ = two_classes()
    assert judge(old.write(tmp_path / "new.csv"), old.write(tmp_path / "old.csv")).exit_code == 0
