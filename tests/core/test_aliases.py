"""Names of other libraries: the same values as there, and no suggestion of an opposite."""

import json
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pytest

import rprime
from rprime.core.catalog import CLASS_INDICES, KEYS, OVERALL_INDICES
from rprime.core.index_names import (
    ALIASES,
    RELATED,
    canonical,
    names_of,
    nearest_keys,
    unknown_index,
)

RNG = np.random.default_rng(5)
TRUE = RNG.choice(4, 300, p=[0.4, 0.3, 0.2, 0.1])
SCORES = RNG.dirichlet(np.ones(4), 300) * 0.6 + 0.4 * np.eye(4)[TRUE]
PREDICTED = SCORES.argmax(axis=1)
COMPLEMENTS = [
    ("accuracy", "error_rate"),
    ("recall", "false_negative_rate"),
    ("specificity", "false_positive_rate"),
    ("precision", "false_discovery_rate"),
    ("negative_predictive_value", "false_omission_rate"),
]
OPPOSITES = {*COMPLEMENTS, *((b, a) for a, b in COMPLEMENTS)}

LABELS = ("y_true", "y_pred")
SKLEARN: dict[str, dict[str, Any]] = {
    "accuracy_score": {},
    "average_precision_score": {"of_scores": True, "average": None},
    "balanced_accuracy_score": {},
    "cohen_kappa_score": {},
    "f1_score": {"average": None},
    "hamming_loss": {},
    "jaccard_score": {"average": None},
    "log_loss": {"of_scores": True},
    "matthews_corrcoef": {},
    "normalized_mutual_info_score": {},
    "precision_score": {"average": None},
    "recall_score": {"average": None},
    "top_k_accuracy_score": {"of_scores": True, "k": 2},
    "zero_one_loss": {},
    "completeness_score": {},
    "fowlkes_mallows_score": {},
    "homogeneity_score": {},
    "rand_score": {},
    "v_measure_score": {},
}
"""Functions of scikit-learn that have an alias, and their arguments."""
SCORERS = {
    f"{name}_{average}": (f"{name}_score", {"average": average})
    for name in ("f1", "precision", "recall", "jaccard")
    for average in ("macro", "micro", "weighted")
} | {
    "roc_auc_ovr": ("roc_auc_score", {"multi_class": "ovr"}),
    "roc_auc_ovo": ("roc_auc_score", {"multi_class": "ovo"}),
    "roc_auc_ovr_weighted": ("roc_auc_score", {"multi_class": "ovr", "average": "weighted"}),
}
"""Names of `scoring` in scikit-learn, with the function and the arguments that they stand for."""


@pytest.fixture(scope="module")
def report() -> rprime.Report:
    return rprime.evaluate(
        TRUE.tolist(), PREDICTED.tolist(), y_score=SCORES, top_k=2, families=["all"]
    )


def values(report: rprime.Report, name: str) -> list[float | None]:
    """Return the values that a name stands for: of each class, or the overall one."""
    if canonical(name) in CLASS_INDICES and canonical(name) not in OVERALL_INDICES:
        return [indices[name].value for indices in report.per_class.values()]
    return [report.overall[name].value]


@pytest.mark.parametrize("name", SKLEARN)
def test_an_alias_has_the_value_of_scikit_learn(report: rprime.Report, name: str) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    arguments = dict(SKLEARN[name])
    predictions = SCORES if arguments.pop("of_scores", False) else PREDICTED
    expected = getattr(metrics, name)(TRUE, predictions, **arguments)
    assert values(report, name) == pytest.approx(np.atleast_1d(expected).tolist(), rel=1e-12)


@pytest.mark.parametrize("name", SCORERS)
def test_an_alias_has_the_value_of_a_scorer(report: rprime.Report, name: str) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    function, arguments = SCORERS[name]
    predictions = SCORES if name.startswith("roc_auc") else PREDICTED
    expected = getattr(metrics, function)(TRUE, predictions, **arguments)
    assert name in ALIASES
    assert values(report, name) == pytest.approx([expected], rel=1e-12)


def test_the_names_of_a_classification_report_are_its_values(report: rprime.Report) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    expected = metrics.classification_report(TRUE, PREDICTED, output_dict=True)
    for average in ("macro avg", "weighted avg"):
        for metric in ("precision", "recall", "f1-score"):
            name = f"{average}_{metric}".replace(" ", "_").replace("-", "_")
            assert values(report, name) == pytest.approx([expected[average][metric]])


@pytest.mark.parametrize(
    ("name", "function", "arguments"),
    [
        ("aunu", "roc_auc_score", {"multi_class": "ovr"}),
        ("aunp", "roc_auc_score", {"multi_class": "ovr", "average": "weighted"}),
        ("au1u", "roc_auc_score", {"multi_class": "ovo"}),
        ("au1p", "roc_auc_score", {"multi_class": "ovo", "average": "weighted"}),
        ("chi_squared", "chi2", {}),
    ],
)
def test_names_of_ferri_and_of_pycm(name: str, function: str, arguments: dict[str, str]) -> None:
    """The areas of Ferri, Hernandez-Orallo and Modroiu 2009 are those of scikit-learn."""
    if function == "chi2":
        stats = pytest.importorskip("scipy.stats.contingency")
        expected = stats.chi2_contingency(stats.crosstab(TRUE, PREDICTED)[1]).statistic
    else:
        expected = pytest.importorskip("sklearn.metrics").roc_auc_score(TRUE, SCORES, **arguments)
    evaluation = rprime.evaluate(TRUE.tolist(), PREDICTED.tolist(), y_score=SCORES, indices=[name])
    assert values(evaluation, name) == pytest.approx([expected], rel=1e-12)


REFERENCE = Path(__file__).parents[1] / "reference"
TORCHMETRICS = {
    "CohenKappa none": "cohen_kappa",
    "F1Score macro": "mean_f1",
    "F1Score none": "dice",
    "FBetaScore none": "fbeta",
    "HammingDistance micro": "hamming_loss",
    "JaccardIndex macro": "miou",
    "JaccardIndex none": "iou",
    "NegativePredictiveValue none": "npv",
    "Recall macro": "mean_sensitivity",
    "Recall none": "sensitivity",
    "Specificity none": "tnr",
}
"""Statistics of TorchMetrics by names that people give them."""


MEANT_OTHERWISE = {"ACC", "AUNP", "AUNU", "Cross Entropy"}
"""Elsewhere `acc` is the overall accuracy, and the others are of scores, not of tables."""


def named_values(matrix: list[list[int]], name: str) -> Any:
    report = rprime.evaluate(confusion_matrix=matrix, indices=[name], beta=2, undefined="zero")
    numbers = values(report, name)
    return numbers if len(numbers) > 1 else numbers[0]


def test_an_alias_has_the_value_of_pycm() -> None:
    equal = set()
    for case in json.loads((REFERENCE / "pycm.json").read_text())["cases"].values():
        if not all(map(sum, (*case["matrix"], *zip(*case["matrix"], strict=True)))):
            continue  # Of classes without items or predictions PyCM says other things.
        for name, expected in (case["class"] | case["overall"]).items():
            alias = name.lower().replace(" ", "_")
            if alias in ALIASES and expected is not None and name not in MEANT_OTHERWISE:
                ours = np.atleast_1d(np.array(named_values(case["matrix"], alias), float))
                theirs = np.atleast_1d(np.array(expected, float))
                both = np.isfinite(ours) & np.isfinite(theirs)
                np.testing.assert_allclose(ours[both], theirs[both], rtol=1e-9, err_msg=name)
                equal |= {alias} if both.any() else set()
    assert {"tpr", "tnr", "ppv", "npv", "fnr", "fpr", "fdr", "for", "dor", "plr", "nir"} <= equal
    assert {"tp", "fp", "fn", "tn", "cen", "mcen", "overall_cen", "overall_mcen", "ari"} <= equal


@pytest.mark.parametrize("statistic", TORCHMETRICS)
def test_an_alias_has_the_value_of_torchmetrics(statistic: str) -> None:
    tables = json.loads((REFERENCE / "pycm.json").read_text())["cases"]
    stored = json.loads((REFERENCE / "torchmetrics.json").read_text())["tables"]
    compared = 0
    for matrix, case in stored.items():
        if all(map(sum, (*tables[matrix]["matrix"], *zip(*tables[matrix]["matrix"], strict=True)))):
            ours = named_values(tables[matrix]["matrix"], TORCHMETRICS[statistic])
            assert ours == pytest.approx(case[statistic], rel=1e-5), matrix
            compared += 1
    assert compared > 3


THIRTY = (
    "auroc",
    "average_precision_score",
    "balanced_accuracy_score",
    "cohen_kappa",
    "dice",
    "f1_macro",
    "f1_score",
    "f1_weighted",
    "fpr",
    "hamming_loss",
    "iou",
    "jaccard_score",
    "macro_avg_f1",
    "matthews_corrcoef",
    "mean_iou",
    "nmi",
    "npv",
    "ppv",
    "precision_score",
    "recall_macro",
    "recall_score",
    "roc_auc_ovo",
    "roc_auc_ovr",
    "sensitivity",
    "tnr",
    "top_k",
    "tpr",
    "youden",
    "zero_one_loss",
    "fnr",
)


@pytest.mark.parametrize("name", THIRTY)
def test_a_name_of_another_library_is_answered_with_the_key(name: str) -> None:
    scores: Any = {"y_score": SCORES} if "auc" in name or name[0] == "a" or "top" in name else {}
    evaluation = rprime.evaluate(TRUE.tolist(), PREDICTED.tolist(), indices=[name], **scores)
    keys = {*evaluation.overall, *next(iter(evaluation.per_class.values()))}
    assert keys == {canonical(name)}


def test_a_gate_takes_an_alias() -> None:
    rules: list[dict[str, Any]] = [
        {"index": "matthews_corrcoef", "min_value": 0.2},
        {"index": "sensitivity", "classes": "all", "min_value": 0.1},
    ]
    evaluation = rprime.evaluate(TRUE.tolist(), PREDICTED.tolist(), gates={"rules": rules})
    assert evaluation.gate is not None
    assert {result.index for result in evaluation.gate.results} == {"mcc", "recall"}
    assert evaluation.gate.results[0].rule == "mcc.min_value"


def test_no_alias_is_a_key_and_all_stand_for_keys() -> None:
    assert not {*ALIASES, *RELATED} & {*KEYS}
    assert not {*ALIASES} & {*RELATED}
    assert {*ALIASES.values()} | {key for keys in RELATED.values() for key in keys} <= {*KEYS}
    assert "matthews_corrcoef" in names_of("mcc")


@pytest.mark.parametrize(
    "meant", ["fpr", "fnr", "tpr", "tnr", "fdr", "npv", *sorted(dict(OPPOSITES))]
)
def test_no_misspelling_leads_to_the_opposite(meant: str) -> None:
    key = canonical(meant)
    shorter = [meant[:i] + meant[i + 1 :] for i in range(len(meant))]
    longer = [meant[:i] + c + meant[i:] for i in range(len(meant) + 1) for c in ascii_lowercase]
    wrong = [name for name in (*shorter, *longer) if name not in ALIASES and name not in KEYS]
    assert not [name for name in wrong if (key, *nearest_keys(name)) in OPPOSITES]


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("acuracy", ("accuracy",)),
        ("recal", ("recall",)),
        ("mcro_f1", ("micro_f1", "macro_f1")),
        ("sensitivty", ("recall",)),
        ("Macro F1", ("macro_f1",)),
        ("MCC", ("mcc",)),
        ("macro avg f1-score", ("macro_f1",)),
        ("log-loss", ("log_loss",)),
        ("gini", ("roc_auc",)),
        ("quadratic kappa", ("quadratic_weighted_kappa",)),
        ("TPR Macro", ("macro_recall",)),
        ("FNR Micro", ("micro_false_negative_rate",)),
        ("Overall MCC", ("mcc",)),
        ("Overall ACC", ("accuracy",)),
        ("TOPR", ("predicted_prevalence",)),
        ("RACC", ()),
        ("Conditional Entropy", ("conditional_entropy_predicted", "conditional_entropy_true")),
        ("multiclass_accuracy", ("macro_recall", "accuracy")),
        ("multiclass_matthews_corrcoef", ("mcc",)),
        ("neg_brier_score", ("brier_score",)),
        ("xyzzy", ()),
        ("ndcg_score", ()),
    ],
)
def test_an_unknown_name_leads_to_what_is_near(name: str, keys: tuple[str, ...]) -> None:
    assert nearest_keys(name) == keys


def test_a_suggestion_says_what_is_missing() -> None:
    assert "GET /v1/indices" in unknown_index("xyzzy")
    with pytest.raises(rprime.ProblemError, match="'recal': The catalog has no such index"):
        rprime.evaluate([1], [1], indices=["recal"])


def test_the_symbols_of_the_papers_are_names() -> None:
    """Zhang, Su, Dou 2021, equations 1 to 23; Labatut, Cherifi 2011, section 4."""
    table = [[880, 10, 10], [20, 70, 0], [2, 0, 8]]
    symbols = {
        "R'": "r_prime",
        "F-1": "f1_of_macro_averages",
        "P(s|m)": "recall",
        "P(s)": "predicted_prevalence",
        "P(m)": "prevalence",
        "CLL": "conditional_log_likelihood",
        "OSR": "accuracy",
        "CKC": "kappa",
        "SPC": "scott_pi_true_margin",
        "MRE": "maxwell_re",
        "JCC": "jaccard",
        "GT": "gt_index",
        "TPR": "recall",
        "CSI": "csi",
        "ICSI": "icsi",
    }
    for symbol, key in symbols.items():
        assert canonical(symbol) == canonical(symbol.lower()) == key
    report = rprime.evaluate(confusion_matrix=table, indices=["R'", "CKC", "F-1", "P(s|m)"])
    assert report.overall["R'"].value == pytest.approx(958 / 1000)
    assert report.per_class["0"]["P(s|m)"].value == pytest.approx(880 / 900)


@pytest.mark.parametrize(
    ("symbol", "meanings"),
    [
        ("AP", ("`accuracy` in Zhang", "`average_precision` elsewhere")),
        ("ap", ("`accuracy` in Zhang", "`average_precision` elsewhere")),
        ("R", ("`macro_recall` or the index `r`", "`recall` elsewhere")),
        ("P", ("`macro_precision` in Zhang", "`precision` of each class elsewhere")),
    ],
)
def test_a_symbol_of_several_meanings_is_refused_with_all(
    symbol: str, meanings: tuple[str, ...]
) -> None:
    with pytest.raises(rprime.ProblemError) as refusal:
        rprime.evaluate(confusion_matrix=[[8, 2], [1, 9]], indices=[symbol])
    assert all(meaning in str(refusal.value) for meaning in meanings)
