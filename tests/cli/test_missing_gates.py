"""A gate never passes because items are missing, relabelled or in another slice."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from rprime.cli import app
from tests.examples.recipes import EXAMPLES
from tests.examples.recipes import run as run_program

Array = Any
NOT_PASSED = {1, 3, 5}
RULES = (
    "{index: accuracy, max_drop: 0.02}",
    "{index: recall, classes: all, max_drop: 0.1, min_items: 10}",
)
SLICED = ("{index: accuracy, slices: region, max_drop: 0.1}",)


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


def report(tmp_path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((tmp_path / "report.json").read_text("utf-8"))
    return content


def two_classes() -> tuple[Predictions, Array]:
    """Return 1800 items of a and 200 of b, and which of them come after the first 200."""
    number = np.arange(2000)
    true = np.where(number % 10 == 0, "b", "a")
    return Predictions(true, np.where(number % 7 == 0, "a", true)), number > 200


def worse(old: Predictions, wrong: Array, into: str = "a") -> Predictions:
    return Predictions(old.true, np.where(wrong, into, old.predicted), old.region)


def test_the_rows_that_are_wrong_are_lost(judge: Judge, tmp_path: Path) -> None:
    old, late = two_classes()
    bad = (old.true == "b") & late
    baseline = old.write(tmp_path / "old.csv")
    with_them = worse(old, bad).write(tmp_path / "bad.csv")
    assert judge(with_them, baseline).exit_code == 1
    without = worse(old, bad).write(tmp_path / "lost.csv", ~bad)
    assert judge(without, baseline).exit_code in NOT_PASSED


def test_what_is_lost_is_accepted_on_request(judge: Judge, tmp_path: Path) -> None:
    old, late = two_classes()
    lost = (old.true == "b") & late & (np.arange(2000) < 1000)
    baseline = old.write(tmp_path / "old.csv")
    candidate = old.write(tmp_path / "new.csv", ~lost)
    assert judge(candidate, baseline).exit_code in NOT_PASSED
    assert judge(candidate, baseline, accept_removed="true").exit_code == 0
    message = report(tmp_path)["gate"]["message"]
    assert str(np.count_nonzero(lost)) in message.partition(". ")[0]


def test_rows_that_are_newly_wrong_are_lost(judge: Judge, tmp_path: Path) -> None:
    """A candidate that is 9 points worse lacks just the rows in which it is."""
    draw = np.random.default_rng(0)
    true = draw.integers(0, 3, 1000)
    old = Predictions(true, np.where(draw.random(1000) < 0.9, true, (true + 1) % 3))
    bad = np.zeros(1000, dtype=bool)
    bad[np.flatnonzero(old.predicted == true)[:90]] = True
    new = Predictions(true, np.where(bad, (true + 1) % 3, old.predicted))
    baseline = old.write(tmp_path / "old.csv")
    assert judge(new.write(tmp_path / "all.csv"), baseline).exit_code == 1
    lost = new.write(tmp_path / "less.csv", ~bad)
    assert judge(lost, baseline, "{index: accuracy, max_drop: 0.02}").exit_code in NOT_PASSED


def test_wrong_rows_are_relabelled(judge: Judge, tmp_path: Path) -> None:
    old, late = two_classes()
    bad = (old.true == "b") & late
    new = Predictions(np.where(bad, "a", old.true), np.where(bad, "a", old.predicted))
    baseline, candidate = old.write(tmp_path / "old.csv"), new.write(tmp_path / "new.csv")
    assert judge(candidate, baseline).exit_code in NOT_PASSED
    warnings = {w["code"]: w["detail"] for w in report(tmp_path)["warnings"]}
    assert "rprime evaluate BASELINE.csv" in warnings["items_differ"]
    judge(candidate, baseline, accept_relabelled="true")
    message = report(tmp_path)["gate"]["message"]
    assert str(np.count_nonzero(bad)) in message.partition(". ")[0]


def test_a_slice_loses_its_wrong_rows(judge: Judge, tmp_path: Path) -> None:
    number = np.arange(2000)
    region = np.where(number < 190, "EU", "US")
    true = np.where(number % 2 == 0, "b", "a")
    old = Predictions(true, np.where(number % 11 == 0, "c", true), region)
    bad = (number < 190) & (number >= 20)
    new = worse(old, bad, "c")
    baseline = old.write(tmp_path / "old.csv")
    assert judge(new.write(tmp_path / "bad.csv"), baseline, *SLICED).exit_code == 1
    lost = new.write(tmp_path / "lost.csv", ~bad)
    assert judge(lost, baseline, *SLICED).exit_code in NOT_PASSED
    moved = Predictions(true, new.predicted, np.where(bad, "US", region))
    candidate = moved.write(tmp_path / "moved.csv")
    assert judge(candidate, baseline, *SLICED).exit_code in NOT_PASSED


def test_a_whole_slice_is_gone(judge: Judge, tmp_path: Path) -> None:
    number = np.arange(2000)
    region = np.where(number < 150, "EU", "US")
    true = np.where(number % 2 == 0, "b", "a")
    old = Predictions(true, np.where(number % 11 == 0, "c", true), region)
    lost = old.write(tmp_path / "lost.csv", number >= 150)
    assert judge(lost, old.write(tmp_path / "old.csv"), *SLICED).exit_code in NOT_PASSED


def long_tail() -> Predictions:
    """Return 12,000 items of 30 classes, the smallest of 60."""
    shares = np.linspace(1, 12, 30)
    sizes = np.round(12_000 * shares / shares.sum()).astype(int)
    true = np.repeat([f"c{i:02}" for i in range(30)], sizes)
    draw = np.random.default_rng(3)
    wrong = draw.random(true.size) < 0.1
    return Predictions(true, np.where(wrong, draw.permutation(true), true))


def test_two_whole_classes_are_gone(judge: Judge, tmp_path: Path) -> None:
    old = long_tail()
    lost = old.write(tmp_path / "lost.csv", ~np.isin(old.true, ["c00", "c03"]))
    assert judge(lost, old.write(tmp_path / "old.csv")).exit_code in NOT_PASSED


def test_most_of_one_class_is_gone(judge: Judge, tmp_path: Path) -> None:
    """600 of 691 items of the largest of twelve classes, less than 10 % of all."""
    sizes = [691] + [500] * 11
    true = np.repeat([f"c{i:02}" for i in range(12)], sizes)
    draw = np.random.default_rng(4)
    old = Predictions(true, np.where(draw.random(true.size) < 0.05, draw.permutation(true), true))
    kept = np.arange(true.size) >= 600
    assert np.count_nonzero(~kept) < 0.1 * true.size
    lost = old.write(tmp_path / "lost.csv", kept)
    assert judge(lost, old.write(tmp_path / "old.csv")).exit_code in NOT_PASSED


def test_digits_without_the_broken_sevens(judge: Judge, tmp_path: Path) -> None:
    written = run_program("python", EXAMPLES / "train_digits.py", "--write", ".", cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    rows = np.loadtxt(tmp_path / "champion.csv", str, delimiter=",", skiprows=1, usecols=(0, 1))
    old = Predictions(rows[:, 0], rows[:, 1])
    seven = old.true == "7"
    broken = np.flatnonzero(seven)[::5]
    bad = seven & ~np.isin(np.arange(seven.size), broken)
    new = worse(old, bad, "1")
    baseline = old.write(tmp_path / "old.csv")
    assert judge(new.write(tmp_path / "bad.csv"), baseline).exit_code == 1
    assert judge(new.write(tmp_path / "lost.csv", ~bad), baseline).exit_code in NOT_PASSED


def test_a_class_of_the_baseline_alone_is_not_comparable_without_ids(
    judge: Judge, tmp_path: Path
) -> None:
    """Under `classes: all`, too, from 10 items on."""
    old = long_tail()
    baseline = old.write(tmp_path / "old.csv", ids=False)
    lost = old.write(tmp_path / "lost.csv", old.true != "c00", ids=False)
    assert judge(lost, baseline).exit_code in NOT_PASSED


def test_a_floor_counts_missing_items_as_wrong(judge: Judge, tmp_path: Path) -> None:
    old, late = two_classes()
    bad = (old.true == "b") & late
    lost = worse(old, bad).write(tmp_path / "lost.csv", ~bad)
    rule = "{index: recall, classes: [b], min_value: 0.5}"
    assert judge(lost, old.write(tmp_path / "old.csv"), rule).exit_code in NOT_PASSED


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
