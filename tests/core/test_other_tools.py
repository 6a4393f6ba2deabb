"""Values of TorchMetrics and caret, run once, are those that docs/other-tools.md maps them to."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rprime
from rprime.core.scores.scores import Scores
from tests.core.index_values import dense, overall, per_class, values_of
from tests.core.score_values import drawn, evaluated, values

REFERENCE = Path(__file__).parents[1] / "reference"
TABLES = json.loads((REFERENCE / "pycm.json").read_text())["cases"]
TORCH = json.loads((REFERENCE / "torchmetrics.json").read_text())
CARET = json.loads((REFERENCE / "caret.json").read_text())["cases"]
SETS = {"60x3": (60, 3, 1), "200x5": (200, 5, 2), "80x4": (80, 4, 0), "300x10": (300, 10, 3)}
OF_CLASS = {
    "Precision": "precision",
    "Recall": "recall",
    "Specificity": "specificity",
    "NegativePredictiveValue": "negative_predictive_value",
    "F1Score": "f1",
    "FBetaScore": "f_beta",
    "JaccardIndex": "jaccard",
    "StatScores tp": "true_positives",
    "StatScores fp": "false_positives",
    "StatScores tn": "true_negatives",
    "StatScores fn": "false_negatives",
}
OVERALL = {
    "Accuracy micro": "accuracy",
    "Accuracy macro": "macro_recall",
    "CohenKappa none": "kappa",
    "CohenKappa linear": "linear_weighted_kappa",
    "CohenKappa quadratic": "quadratic_weighted_kappa",
    "MatthewsCorrCoef": "mcc",
    "HammingDistance micro": "error_rate",
}
CARET_CLASS = {
    "Sensitivity": "recall",
    "Specificity": "specificity",
    "Pos Pred Value": "precision",
    "Neg Pred Value": "negative_predictive_value",
    "Precision": "precision",
    "Recall": "recall",
    "F1": "f1",
    "Prevalence": "prevalence",
    "Detection Rate": "detection_rate",
    "Detection Prevalence": "predicted_prevalence",
    "Balanced Accuracy": "class_balanced_accuracy",
}
CARET_OVERALL = {
    "Accuracy": "accuracy",
    "Kappa": "kappa",
    "AccuracyNull": "no_information_rate",
    "McnemarPValue": "bowker_p_value",
}


class Tally:
    """Equal values, and statistics of which some values differ or exist in one of both."""

    def __init__(self) -> None:
        self.equal = 0
        self.others: dict[str, Counter[str]] = {"differs": Counter(), "ours": Counter()}
        self.others["theirs"] = Counter()

    def add(self, name: str, ours: Any, theirs: Any) -> None:
        pairs = (np.atleast_1d(np.array(side, dtype=float)) for side in (ours, theirs))
        for value, other in zip(*pairs, strict=True):
            if np.isfinite(value) and np.isfinite(other):
                # TorchMetrics computes most ratios in single precision.
                same = value == pytest.approx(other, rel=1e-6, abs=1e-6)
                self.equal += same
                self.others["differs"][name] += not same
            elif np.isfinite(value) or np.isfinite(other):
                self.others["ours" if np.isfinite(value) else "theirs"][name] += 1

    def names(self, kind: str) -> set[str]:
        return {name for name, count in self.others[kind].items() if count}


def torch_value(name: str, indices: dict[str, Any], classes: dict[str, Any]) -> Any:
    head, _, average = name.partition(" ")
    if name in OVERALL:
        return indices[OVERALL[name]]
    if name in OF_CLASS or average == "none":
        return classes[OF_CLASS.get(name) or OF_CLASS[head]]
    return indices[f"{average}_{OF_CLASS[head]}"]


@np.errstate(all="ignore")
def test_every_statistic_of_torchmetrics_on_tables_has_its_value() -> None:
    tally = Tally()
    for matrix, case in TORCH["tables"].items():
        counts = TABLES[matrix]["matrix"]
        computed = values_of(dense(counts), undefined="zero", beta=2.0, kappa_weights="linear")
        indices, classes = overall(computed), per_class(computed)
        classes["StatScores support"] = np.sum(counts, axis=1)
        for name, theirs in case.items():
            ours = indices.get(name, classes.get(name))
            tally.add(name, torch_value(name, indices, classes) if ours is None else ours, theirs)
    assert tally.equal == 857
    assert not tally.names("differs")
    assert not tally.names("ours")
    # 0 where nothing is divided by nothing: a reason here, also where averages count it as 0.
    undefined = {"Precision", "Recall", "NegativePredictiveValue", "Specificity"}
    assert tally.names("theirs") == {f"{name} none" for name in undefined} | {"MatthewsCorrCoef"}


def scores_of(name: str) -> Scores:
    if name in SETS:
        n, k, sharp = SETS[name]
        return drawn(np.random.default_rng(n), n, k, sharp)
    plain = drawn(np.random.default_rng(7), 120, 3)
    rounded = np.random.default_rng(8).multinomial(20, plain.values) / 20
    return Scores(plain.true, np.where(rounded == 0, 0.0, rounded))


SCORES = {
    "AUROC none": ("class", "roc_auc"),
    "AUROC macro": ("overall", "macro_roc_auc"),
    "AUROC weighted": ("overall", "weighted_roc_auc"),
    "AveragePrecision none": ("class", "average_precision"),
    "AveragePrecision macro": ("overall", "macro_average_precision"),
    "AveragePrecision weighted": ("overall", "weighted_average_precision"),
    "CalibrationError": ("overall", "expected_calibration_error"),
    "HingeLoss": ("overall", "hinge_loss"),
    "Accuracy top 2": ("overall", "top_k_accuracy"),
    "Precision top 2": ("class", "top_k_precision"),
    "Recall top 2": ("class", "top_k_recall"),
}


def test_every_statistic_of_torchmetrics_on_scores_has_its_value() -> None:
    tally = Tally()
    for name, case in TORCH["scores"].items():
        indices = values(evaluated(scores_of(name), top_k=2))
        assert case.keys() == SCORES.keys()
        for statistic, theirs in case.items():
            tally.add(statistic, indices[SCORES[statistic]], theirs)
    assert tally.equal == 134
    # A score at the edge of two bins is in the upper one there, as in Guo et al. in the lower here.
    assert dict(tally.others["differs"] + Counter()) == {"CalibrationError": 1}
    assert not tally.names("ours") | tally.names("theirs")


@np.errstate(all="ignore")
def test_every_statistic_of_caret_has_its_value() -> None:
    tally = Tally()
    for matrix, case in CARET.items():
        computed = values_of(dense(TABLES[matrix]["matrix"]))
        for name, theirs in case["class"].items():
            tally.add(name, per_class(computed)[CARET_CLASS[name]], theirs)
        for name, key in CARET_OVERALL.items():
            tally.add(name, overall(computed)[key], case["overall"][name])
        table = TABLES[matrix]["matrix"]
        report = rprime.evaluate(confusion_matrix=table, exact=True, families=["core"])
        interval = report.overall["accuracy"].interval
        tally.add(
            "interval", interval, [case["overall"][f"Accuracy{x}"] for x in ("Lower", "Upper")]
        )
        p_value = report.overall["no_information_rate"].p_value
        tally.add("AccuracyPValue", p_value, case["overall"]["AccuracyPValue"])
    assert tally.equal == 564
    # Of two classes with a correction for continuity; with an empty pair of cells not at all.
    assert tally.names("differs") == {"McnemarPValue"}
    assert tally.names("ours") == {"McnemarPValue", "F1", "Pos Pred Value", "Neg Pred Value"}
    assert not tally.names("theirs")


def test_predictive_values_at_a_prevalence_are_those_of_caret() -> None:
    tally = Tally()
    for matrix, case in CARET.items():
        counts = np.array(TABLES[matrix]["matrix"])
        support, labels = counts.sum(axis=1), [f"c{i}" for i in range(len(counts))]
        for i in range(len(counts)) if support.all() else ():
            shares = 0.7 * support / (support.sum() - support[i])
            shares[i] = 0.3
            report = rprime.evaluate(
                confusion_matrix=counts,
                labels=labels,
                population={"prevalence": dict(zip(labels, shares.tolist(), strict=True))},
                indices=["precision", "negative_predictive_value"],
            )
            for key, name in (("precision", "ppv"), ("negative_predictive_value", "npv")):
                ours = report.per_class[labels[i]][key].value
                tally.add(name, ours, case["at"][name][i])
    assert tally.equal == 81
    assert not tally.names("differs") | tally.names("ours") | tally.names("theirs")
