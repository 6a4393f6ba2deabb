"""The gate without a file decides as its rules say, and finds its anchor by itself."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.command import Run
from tests.services import Serve

PER_CLASS = 500
Written = Callable[..., str]


@pytest.fixture
def predictions(tmp_path: Path) -> Written:
    """Return what writes predictions of three classes, with so many errors in each."""

    def write(name: str, *errors: int) -> str:
        rows = ["y_true,y_pred"]
        for label, wrong in enumerate(errors):
            other = (label + 1) % len(errors)
            rows += [f"{label},{other if i < wrong else label}" for i in range(PER_CLASS)]
        path = tmp_path / name
        path.write_text("\n".join([*rows, ""]), encoding="utf-8")
        return str(path)

    return write


def verdict(report: str) -> tuple[str, set[tuple[str, str, float]]]:
    gate = json.loads(report)["gate"]
    return gate["verdict"], {(r["rule"], r["against"], r["limit"]) for r in gate["results"]}


@pytest.mark.parametrize(
    ("errors", "status"), [((50, 50, 50), 0), ((100, 100, 100), 1), ((130, 50, 50), 1)]
)
def test_it_bounds_accuracy_and_the_recall_of_the_classes(
    rprime: Run, predictions: Written, errors: tuple[int, ...], status: int
) -> None:
    files = predictions("new.csv", *errors), "--baseline", predictions("old.csv", 50, 50, 50)
    done = rprime("evaluate", *files, "--no-worse-than", ".02", "--json")
    assert done.returncode == status
    limits = {("accuracy.max_drop", "baseline", 0.02), ("recall.max_drop", "baseline", 0.1)}
    assert verdict(done.stdout)[1] == limits


def test_a_class_may_lose_as_much_as_the_whole(rprime: Run, predictions: Written) -> None:
    files = predictions("new.csv", 50, 50, 50), "--baseline", predictions("old.csv", 50, 50, 50)
    done = rprime("evaluate", *files, "--no-worse-than", ".2", "--json")
    assert {limit for *_, limit in verdict(done.stdout)[1]} == {0.2}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([".02"], "2 rules compare with a baseline, and there is none"),
        (["2", "--baseline", "FILE"], "the drop allowed in accuracy, as .02"),
        (["0", "--baseline", "FILE"], "the drop allowed in accuracy, as .02"),
        (["nan", "--baseline", "FILE"], "the drop allowed in accuracy, as .02"),
        ([".02", "--gates", "gates.yaml"], "give it or --gates, not both"),
    ],
)
def test_a_gate_that_could_decide_nothing_is_refused(
    rprime: Run, predictions: Written, options: list[str], said: str
) -> None:
    file = predictions("new.csv", 5, 5, 5)
    named = [file if option == "FILE" else option for option in options]
    done = rprime("evaluate", file, "--no-worse-than", *named)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_the_alias_agreed_is_its_anchor(rprime: Run, serve: Serve, predictions: Written) -> None:
    good, worse = predictions("good.csv", 50, 50, 50), predictions("worse.csv", 100, 100, 100)
    with serve() as client:
        there: Any = ("--project", "pets", "--model", "svc", "--server", str(client.base_url))

        def run(file: str, *more: str) -> tuple[int, str, set[str]]:
            done = rprime("evaluate", file, *there, *more, "--no-worse-than", ".02", "--json")
            decided, results = verdict(done.stdout)
            return done.returncode, decided, {against for _, against, _ in results}

        champion = ("--baseline", "alias=champion")
        assert run(good, *champion) == (0, "no_baseline", {"baseline"})
        for file, alias in ((good, "agreed"), (worse, "champion")):
            id_ = json.loads(rprime("evaluate", file, *there, "--json").stdout)["id"]
            promoted = rprime("promote", id_, alias, "--project", "pets", *there[-2:])
            assert promoted.returncode == 0, promoted.stderr
        assert run(worse, *champion) == (1, "fail", {"baseline", "anchor"})
        assert run(good, *champion) == (0, "pass", {"baseline", "anchor"})
        done = rprime("evaluate", good, *there, "--no-worse-than", ".02")
        assert (done.returncode, "name it by --baseline" in done.stderr) == (2, True)
