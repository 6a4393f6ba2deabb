"""Train two classifiers of handwritten digits; the second may replace the first if it is no worse.

python train_digits.py                                  the engine runs here
python train_digits.py --server http://127.0.0.1:8000   a service computes, and keeps both
python train_digits.py --write .                        only write predictions.csv, champion.csv

It ends with 0 where the gate passes, 1 where it fails, 2 if the service refuses the request, 3
where the gate is inconclusive, 4 where the service gives no answer. Needs rprime and scikit-learn.
"""

import argparse
import csv
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import rprime

Ask = Callable[..., rprime.Report]

CHAMPION = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
CANDIDATES = {"svc": SVC(), "naive_bayes": GaussianNB()}
GATES = {
    "rules": [
        {"index": "accuracy", "max_drop": 0.02},
        {"index": "recall", "classes": "all", "max_drop": 0.1},
    ]
}
STATUS = {"pass": 0, "fail": 1, "inconclusive": 3}


class Predictions(NamedTuple):
    """Labels of the same test items: the truth, and what each model says."""

    true: Any
    champion: Any
    candidate: Any


def train(candidate: str) -> Predictions:
    """Train both models on one half of the data, and predict the other half."""
    images, digits = load_digits(return_X_y=True)
    known, unseen, known_digits, true = train_test_split(
        images, digits, test_size=0.5, random_state=0, stratify=digits
    )
    champion = CHAMPION.fit(known, known_digits).predict(unseen)
    other = CANDIDATES[candidate].fit(known, known_digits).predict(unseen)
    return Predictions(true, champion, other)


def write(found: Predictions, folder: Path) -> None:
    """Write what `rprime evaluate predictions.csv --baseline champion.csv` reads."""
    for name, labels in (("predictions", found.candidate), ("champion", found.champion)):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["y_true", "y_pred"])
            rows.writerows(zip(found.true, labels, strict=True))


def judge(found: Predictions, candidate: str, ask: Ask) -> rprime.Report:
    """Evaluate both, and hold the candidate against the champion item by item."""
    champion = ask(found.true, found.champion)
    before = champion.overall["accuracy"].value
    report = ask(found.true, found.candidate, baseline={"y_pred": found.champion}, gates=GATES)
    after = report.overall["accuracy"].value
    print(f"accuracy: {before:.4f} of the champion, {after:.4f} of {candidate}")
    return report


def judge_kept(found: Predictions, candidate: str, ask: Ask) -> rprime.Report:
    """Do the same with a service that keeps both; the champion is named, not sent again."""

    def keep(labels: object, version: str, **request: object) -> rprime.Report:
        origin = {"project": "digits", "model": "digits", "version": version, "keep_items": True}
        return ask(found.true, labels, **origin, **request)

    champion = keep(found.champion, "champion")
    report = keep(found.candidate, candidate, baseline={"evaluation": champion.id}, gates=GATES)
    print(f"kept as {champion.id} and {report.id}")
    return report


def decide(found: Predictions, candidate: str, server: str | None) -> rprime.Report:
    """Ask a service where there is one, with or without a store, else the engine here."""
    if server is None:
        return judge(found, candidate, rprime.evaluate)
    with rprime.Client(server, key=os.environ.get("RPRIME_KEY")) as client:
        try:
            return judge_kept(found, candidate, client.evaluate)
        except rprime.ProblemError as problem:
            if problem.code != "no_store":
                raise
            print("the service keeps nothing")
            return judge(found, candidate, client.evaluate)


def main() -> int:
    """Train, write or decide, and give the status to end with."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--candidate", choices=CANDIDATES, default="svc")
    parser.add_argument("--server", metavar="URL", help="of a service; RPRIME_KEY is its key")
    parser.add_argument("--write", metavar="FOLDER", type=Path, help="write the predictions there")
    options = parser.parse_args()
    found = train(options.candidate)
    if options.write is not None:
        write(found, options.write)
        return 0
    try:
        report = decide(found, options.candidate, options.server)
    except rprime.ProblemError as problem:
        print(problem, file=sys.stderr)
        return 2
    except rprime.ServiceUnavailableError as error:
        print(f"no verdict, the service gave no answer: {error}", file=sys.stderr)
        return 4
    for result in report.gate.results if report.gate else ():
        print(f"{result.verdict:>12}  {result.message}")
    print(f"{options.candidate}: {report.verdict}, {report.undecided} undecided")
    return STATUS[report.verdict or "inconclusive"]


if __name__ == "__main__":
    sys.exit(main())
