"""Statistics of PyCM and scikit-learn have the values that docs/other-tools.md maps them to."""

import json
import os
import re
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics

from rprime.core.scores.scores import Scores
from tests.core.index_values import dense, overall, per_class, values_of
from tests.core.score_values import drawn, evaluated, values
from tests.examples.recipes import out_of_reach, run

ROOT = Path(__file__).parents[2]
PYCM = json.loads((ROOT / "tests/reference/pycm.json").read_text())["cases"]
PAGE = (ROOT / "docs/other-tools.md").read_text()
CLASS: dict[str, str] = {
    "TPR": "recall",
    "TNR": "specificity",
    "PPV": "precision",
    "NPV": "negative_predictive_value",
    "FNR": "false_negative_rate",
    "FPR": "false_positive_rate",
    "FDR": "false_discovery_rate",
    "FOR": "false_omission_rate",
    "ACC": "class_accuracy",
    "ERR": "class_error_rate",
    "F1": "f1",
    "MCC": "class_mcc",
    "BM": "informedness",
    "Y": "informedness",
    "GI": "informedness",
    "MK": "markedness",
    "PLR": "positive_likelihood_ratio",
    "NLR": "negative_likelihood_ratio",
    "DOR": "diagnostic_odds_ratio",
    "TP": "true_positives",
    "TN": "true_negatives",
    "FP": "false_positives",
    "FN": "false_negatives",
    "PRE": "prevalence",
    "PR": "prevalence",
    "TOPR": "predicted_prevalence",
    "G": "fowlkes_mallows",
    "OOC": "fowlkes_mallows",
    "J": "jaccard",
    "LS": "lift",
    "CEN": "class_confusion_entropy",
    "MCEN": "class_modified_confusion_entropy",
    "AUC": "class_balanced_accuracy",
    "AUPR": "kulczynski",
    "ICSI": "icsi",
    "GM": "g_mean",
    "Q": "yule_q",
    "OC": "overlap_coefficient",
    "BB": "braun_blanquet",
}
OVERALL: dict[str, str] = {
    "Overall ACC": "accuracy",
    "Kappa": "kappa",
    "Gwet AC1": "gwet_ac1",
    "Bennett S": "maxwell_re",
    "Kappa Unbiased": "scott_pi",
    "Scott PI": "scott_pi",
    "Chi-Squared": "chi2",
    "Chi-Squared DF": "chi2_degrees_of_freedom",
    "Cramer V": "cramers_v",
    "Response Entropy": "entropy_predicted",
    "Reference Entropy": "entropy_true",
    "Cross Entropy": "cross_entropy_of_margins",
    "KL Divergence": "kullback_leibler_divergence",
    "Joint Entropy": "joint_entropy",
    "Conditional Entropy": "conditional_entropy_predicted",
    "Mutual Information": "mutual_information",
    "RCI": "uncertainty_true",
    "Lambda A": "goodman_kruskal_lambda_true",
    "Lambda B": "goodman_kruskal_lambda_predicted",
    "Hamming Loss": "error_rate",
    "NIR": "no_information_rate",
    "Overall CEN": "confusion_entropy",
    "Overall MCEN": "modified_confusion_entropy",
    "Overall MCC": "mcc",
    "CBA": "macro_braun_blanquet",
    "AUNU": "macro_class_balanced_accuracy",
    "AUNP": "weighted_class_balanced_accuracy",
    "Pearson C": "contingency_coefficient",
    "CSI": "csi",
    "ARI": "adjusted_rand_index",
    "Bangdiwala B": "bangdiwala_b",
    "Krippendorff Alpha": "krippendorff_alpha",
    "Aickin alpha": "aickin_alpha",
    "TPR Macro": "macro_recall",
    "TNR Macro": "macro_specificity",
    "PPV Macro": "macro_precision",
    "NPV Macro": "macro_negative_predictive_value",
    "FPR Macro": "macro_false_positive_rate",
    "FNR Macro": "macro_false_negative_rate",
    "F1 Macro": "macro_f1",
    "ACC Macro": "macro_class_accuracy",
    "TPR Micro": "micro_recall",
    "TNR Micro": "micro_specificity",
    "PPV Micro": "micro_precision",
    "NPV Micro": "micro_negative_predictive_value",
    "FPR Micro": "micro_false_positive_rate",
    "FNR Micro": "micro_false_negative_rate",
    "F1 Micro": "micro_f1",
}
DERIVED: dict[str, Callable[[dict[str, Any], float], Any]] = {
    "DP": lambda indices, _: indices["discriminant_power"] / np.log(10),
    "IS": lambda indices, _: np.log2(indices["lift"]),
    "BCD": lambda indices, _: indices["class_quantity_disagreement"] / 2,
    "HD": lambda indices, w: indices["class_error_rate"] * w,
    "AM": lambda indices, _: indices["false_positives"] - indices["false_negatives"],
    "Phi-Squared": lambda indices, _: indices["phi"] ** 2,
    "Kappa No Prevalence": lambda indices, _: 2 * indices["accuracy"] - 1,
    "Zero-one Loss": lambda indices, w: indices["error_rate"] * w,
}
"""Statistics that are functions of one index; w is the number of items."""
NONE = {
    *("N", "P", "POP", "TON", "TOP", "RACC", "RACCU", "sInd", "dInd", "OP", "IBA", "AGM", "AGF"),
    *("Overall RACC", "Overall RACCU", "Kappa Standard Error", "Standard Error", "RR", "P-Value"),
}
"""Statistics of PyCM without an index of their own: the page says why."""
BETAS = {"F0.5": 0.5, "F2": 2.0}
EMPTY_CLASSES = {
    *("ACC Macro", "CBA", "F1 Macro", "FPR Macro", "NPV Macro", "PPV Macro", "TNR Macro"),
    "Chi-Squared DF",
}
"""PyCM counts classes without items or predictions, the catalog leaves them out."""
ONLY_OURS = {
    *("AUNP", "AUNU", "CSI", "Chi-Squared", "Cramer V", "Phi-Squared", "Pearson C", "DOR", "Q"),
    *("TPR Macro", "FNR Macro", "NPV Macro", "PPV Macro", "KL Divergence"),
}
"""PyCM has none of these where one class is empty, or one product of cells is 0."""
ONLY_THEIRS = {"Aickin alpha", "Cross Entropy"}
"""An iteration that does not converge, and a code without a word for a class with items."""


def found(name: str, case: dict[str, Any], indices: dict[str, Any]) -> Any:
    if name in BETAS:
        return per_class(values_of(dense(case["matrix"]), beta=BETAS[name]))["f_beta"]
    if name in DERIVED:
        return DERIVED[name](indices, float(np.sum(case["matrix"])))
    return indices[(CLASS | OVERALL)[name]]


def is_band(name: str) -> bool:
    return name.startswith("SOA") or (name.endswith("I") and name[:-1] in (*CLASS, "DP"))


@np.errstate(all="ignore")
def test_every_statistic_of_pycm_has_its_value_or_a_reason() -> None:
    equal = 0
    differ: set[tuple[str, str]] = set()
    only_ours: set[str] = set()
    only_theirs: set[str] = set()
    for matrix, case in PYCM.items():
        values_here = values_of(dense(case["matrix"]))
        for scope, read in (("class", per_class), ("overall", overall)):
            indices = read(values_here)
            for name, listed in case[scope].items():
                if name in NONE or is_band(name):
                    continue
                ours, theirs = np.atleast_1d(found(name, case, indices)), np.array(listed, float)
                for value, other in zip(ours, np.atleast_1d(theirs), strict=True):
                    if np.isfinite(value) and np.isfinite(other):
                        same = value == pytest.approx(other, rel=1e-9, abs=1e-9)
                        equal += same
                        differ |= set() if same else {(name, matrix)}
                    elif np.isfinite(value) or np.isfinite(other):
                        (only_ours if np.isfinite(value) else only_theirs).add(name)
    assert {name for name, _ in differ} == EMPTY_CLASSES
    assert {m for _, m in differ} <= {"absent", "one_true_class", "never_predicted", "constant"}
    assert (only_ours, only_theirs) == (ONLY_OURS, ONLY_THEIRS)
    assert equal == 2493


def test_the_stored_values_are_those_of_pycm_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_spec("pycm") is None and "RPRIME_TEST_REGISTRIES" in os.environ:
        run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
        arguments = ("install", "--quiet", "--no-deps", "--target", tmp_path / "site", "pycm==4.6")
        done = run(tmp_path / "venv" / "bin" / "pip", *arguments, cwd=tmp_path)
        if done.returncode != 0:
            out_of_reach(done.stderr)
        monkeypatch.syspath_prepend(tmp_path / "site")
    pycm = pytest.importorskip("pycm", reason="needs PyCM, or RPRIME_TEST_REGISTRIES=1")
    for case in PYCM.values():
        rows = {i: dict(enumerate(row)) for i, row in enumerate(case["matrix"])}
        confusion = pycm.ConfusionMatrix(matrix=rows)
        for name in CLASS.keys() & case["class"].keys():
            live = [v if v != "None" else None for v in confusion.class_stat[name].values()]
            assert live == pytest.approx(case["class"][name], nan_ok=True), name


@pytest.mark.parametrize("name", PYCM)
@pytest.mark.filterwarnings("ignore")  # scikit-learn warns of every degenerate matrix
def test_every_statistic_of_scikit_learn_on_tables_has_its_value(name: str) -> None:
    counts = np.array(PYCM[name]["matrix"])
    k = len(counts)
    true, predicted = (np.repeat(codes.ravel(), counts.ravel()) for codes in np.indices((k, k)))
    pair, options = (true, predicted), {"labels": range(k), "zero_division": 0.0}
    indices = overall(values_of(dense(counts), undefined="zero", beta=2.0, kappa_weights="linear"))
    plain = overall(values_of(dense(counts)))
    expected = {
        "accuracy": metrics.accuracy_score(*pair),
        "error_rate": metrics.zero_one_loss(*pair),
        "rand_index": metrics.rand_score(*pair),
        "adjusted_rand_index": metrics.adjusted_rand_score(*pair),
        "uncertainty_true": metrics.homogeneity_score(*pair),
        "uncertainty_predicted": metrics.completeness_score(*pair),
        "normalized_mutual_information": metrics.v_measure_score(*pair),
        "mutual_information": metrics.mutual_info_score(*pair) / np.log(2),
        "kappa": metrics.cohen_kappa_score(*pair, labels=range(k)),
        "weighted_kappa": metrics.cohen_kappa_score(*pair, labels=range(k), weights="linear"),
        **{
            f"{weights}_weighted_kappa": metrics.cohen_kappa_score(
                *pair, labels=range(k), weights=weights
            )
            for weights in ("linear", "quadratic")
        },
        "mcc": metrics.matthews_corrcoef(*pair),
    }
    for average in ("macro", "micro", "weighted"):
        for key, function in (
            ("recall", metrics.recall_score),
            ("precision", metrics.precision_score),
            ("f1", metrics.f1_score),
            ("jaccard", metrics.jaccard_score),
        ):
            expected[f"{average}_{key}"] = function(*pair, average=average, **options)
        beta = metrics.fbeta_score(*pair, beta=2, average=average, **options)
        expected[f"{average}_f_beta"] = beta
    for key, value in expected.items():
        # Where one labelling is constant, scikit-learn gives 0 or 1 and the catalog a reason.
        if np.isfinite(indices[key]) and np.isfinite(value):
            assert indices[key] == pytest.approx(value, abs=1e-9), key
    assert np.isfinite([indices[key] for key in expected]).sum() >= len(expected) - 7
    for key, adjusted in (("balanced_accuracy", False), ("adjusted_balanced_accuracy", True)):
        if np.isfinite(plain[key]):
            value = metrics.balanced_accuracy_score(*pair, adjusted=adjusted)
            assert plain[key] == pytest.approx(value), key


@pytest.mark.parametrize(("n", "k", "sharp"), [(60, 3, 1), (200, 5, 2), (80, 4, 0), (300, 10, 3)])
def test_every_statistic_of_scikit_learn_on_scores_has_its_value(
    n: int, k: int, sharp: float
) -> None:
    scores = drawn(np.random.default_rng(n), n, k, sharp)
    assert_as_scikit_learn(scores)


def test_equal_scores_have_the_values_of_scikit_learn() -> None:
    plain = drawn(np.random.default_rng(7), 120, 3)
    rounded = np.random.default_rng(8).multinomial(20, plain.values) / 20
    assert_as_scikit_learn(Scores(plain.true, np.where(rounded == 0, 0.0, rounded)))


def assert_as_scikit_learn(scores: Scores) -> None:
    y, p, k = scores.true, scores.values, scores.k
    indices = values(evaluated(scores, top_k=1))
    expected = {
        "macro_roc_auc": metrics.roc_auc_score(y, p, multi_class="ovr"),
        "weighted_roc_auc": metrics.roc_auc_score(y, p, multi_class="ovr", average="weighted"),
        "micro_roc_auc": metrics.roc_auc_score(y, p, multi_class="ovr", average="micro"),
        "hand_till_auc": metrics.roc_auc_score(y, p, multi_class="ovo"),
        "weighted_hand_till_auc": metrics.roc_auc_score(
            y, p, multi_class="ovo", average="weighted"
        ),
        "brier_score": metrics.brier_score_loss(y, p, scale_by_half=False),
        "d2_brier_score": metrics.d2_brier_score(y, p),
        "hinge_loss": metrics.hinge_loss(y, p),
        "top_k_accuracy": metrics.accuracy_score(y, p.argmax(1)),
    }
    for average in ("macro", "micro", "weighted"):
        precision = metrics.average_precision_score(np.eye(k)[y], p, average=average)
        expected[f"{average}_average_precision"] = precision
    if p[np.arange(len(y)), y].min() > 0:
        expected["log_loss"] = metrics.log_loss(y, p)
        expected["d2_log_loss"] = metrics.d2_log_loss_score(y, p)
    for key, value in expected.items():
        assert indices["overall", key] == pytest.approx(value, abs=1e-9), key


def test_the_page_names_every_statistic() -> None:
    for name in {*CLASS, *OVERALL, *DERIVED, *NONE, *BETAS}:
        assert f"`{name}`" in PAGE, name
    for name, key in (CLASS | OVERALL).items():
        assert re.search(rf"^\|.*`{re.escape(name)}`.*\|.*`{key}`.*\|", PAGE, re.MULTILINE), name
