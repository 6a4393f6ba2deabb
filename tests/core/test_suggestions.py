"""Names of other libraries lead to the index that they mean."""

import pytest

from rprime.core.catalog import KEYS
from rprime.core.suggestions import ELSEWHERE, nearest_keys, unknown_index

MEANT = {
    "accuracy_score": "accuracy",
    "auroc": "roc_auc",
    "average_precision_score": "average_precision",
    "balanced_accuracy_score": "balanced_accuracy",
    "brier_score_loss": "brier_score",
    "cohen_kappa": "kappa",
    "dice": "f1",
    "ece": "expected_calibration_error",
    "f1_macro": "macro_f1",
    "f1_score": "f1",
    "f1_weighted": "weighted_f1",
    "fpr": "false_positive_rate",
    "gini": "roc_auc",
    "hamming_loss": "error_rate",
    "hinge": "log_loss",
    "iou": "jaccard",
    "jaccard_score": "jaccard",
    "log-loss": "log_loss",
    "macro_avg": "macro_precision",
    "matthews_corrcoef": "mcc",
    "npv": "negative_predictive_value",
    "ppv": "precision",
    "precision_score": "precision",
    "recall_score": "recall",
    "roc_auc_score": "macro_roc_auc",
    "sensitivity": "recall",
    "tnr": "specificity",
    "top_k": "top_k_accuracy",
    "tpr": "recall",
    "youden": "informedness",
}
"""Thirty names of scikit-learn, TorchMetrics, caret and the literature."""


@pytest.mark.parametrize("name", MEANT)
def test_a_name_of_another_library_leads_to_the_index(name: str) -> None:
    assert nearest_keys(name)[0] == MEANT[name]


@pytest.mark.parametrize(
    ("name", "key"),
    [("acuracy", "accuracy"), ("recal", "recall"), ("Macro F1", "macro_f1"), ("MCC", "mcc")],
)
def test_a_misspelt_key_leads_to_the_key(name: str, key: str) -> None:
    assert nearest_keys(name) == (key,)


def test_what_is_near_nothing_leads_nowhere() -> None:
    assert nearest_keys("xyzzy") == ()
    assert "GET /v1/indices" in unknown_index("xyzzy")


def test_only_keys_are_suggested_and_none_is_called_unknown() -> None:
    assert {key for keys in ELSEWHERE.values() for key in keys} <= set(KEYS)
    assert not set(ELSEWHERE) & set(KEYS)
