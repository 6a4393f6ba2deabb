"""Suggestions for index names that the catalog does not have, such as those of other libraries."""

from difflib import get_close_matches

from rprime.core.catalog import KEYS

LONGEST_NAME = 64
"""Characters of a name that are compared with the keys."""

ELSEWHERE: dict[str, tuple[str, ...]] = {
    "accuracy_score": ("accuracy",),
    "auc": ("roc_auc",),
    "auc_pr": ("average_precision",),
    "auroc": ("roc_auc",),
    "average_precision_score": ("average_precision",),
    "balanced_accuracy_score": ("balanced_accuracy",),
    "bookmaker_informedness": ("informedness",),
    "brier": ("brier_score",),
    "brier_score_loss": ("brier_score",),
    "cohen_kappa": ("kappa",),
    "cohen_kappa_score": ("kappa",),
    "cohens_kappa": ("kappa",),
    "cross_entropy": ("log_loss",),
    "critical_success_index": ("jaccard",),
    "dice": ("f1",),
    "dice_coefficient": ("f1",),
    "ece": ("expected_calibration_error",),
    "f1_macro": ("macro_f1",),
    "f1_micro": ("micro_f1",),
    "f1_score": ("f1", "macro_f1"),
    "f1_weighted": ("weighted_f1",),
    "f_measure": ("f1",),
    "f_score": ("f1",),
    "fallout": ("false_positive_rate",),
    "fbeta_score": ("f_beta",),
    "fdr": ("false_discovery_rate",),
    "fnr": ("false_negative_rate",),
    "for": ("false_omission_rate",),
    "fpr": ("false_positive_rate",),
    "gini": ("roc_auc",),
    "hamming_loss": ("error_rate",),
    "hinge": ("log_loss",),
    "hinge_loss": ("log_loss",),
    "hit_rate": ("recall",),
    "intersection_over_union": ("jaccard",),
    "iou": ("jaccard",),
    "jaccard_macro": ("macro_jaccard",),
    "jaccard_score": ("jaccard", "macro_jaccard"),
    "logloss": ("log_loss",),
    "macro_avg": ("macro_precision", "macro_recall", "macro_f1"),
    "macro_average": ("macro_precision", "macro_recall", "macro_f1"),
    "matthews_corrcoef": ("mcc",),
    "mean_iou": ("macro_jaccard",),
    "micro_avg": ("micro_precision", "micro_recall", "micro_f1"),
    "miou": ("macro_jaccard",),
    "miss_rate": ("false_negative_rate",),
    "neg_log_loss": ("log_loss",),
    "nmi": ("normalized_mutual_information",),
    "npv": ("negative_predictive_value",),
    "phi_coefficient": ("phi", "class_mcc"),
    "positive_predictive_value": ("precision",),
    "ppv": ("precision",),
    "pr_auc": ("average_precision",),
    "precision_macro": ("macro_precision",),
    "precision_micro": ("micro_precision",),
    "precision_score": ("precision", "macro_precision"),
    "precision_weighted": ("weighted_precision",),
    "recall_macro": ("macro_recall",),
    "recall_micro": ("micro_recall",),
    "recall_score": ("recall", "macro_recall"),
    "recall_weighted": ("weighted_recall",),
    "roc_auc_ovo": ("hand_till_auc",),
    "roc_auc_ovr": ("macro_roc_auc",),
    "roc_auc_score": ("macro_roc_auc", "roc_auc"),
    "selectivity": ("specificity",),
    "sensitivity": ("recall",),
    "threat_score": ("jaccard",),
    "tnr": ("specificity",),
    "top_k": ("top_k_accuracy",),
    "top_k_accuracy_score": ("top_k_accuracy",),
    "tpr": ("recall",),
    "true_negative_rate": ("specificity",),
    "true_positive_rate": ("recall",),
    "weighted_avg": ("weighted_precision", "weighted_recall", "weighted_f1"),
    "weighted_average": ("weighted_precision", "weighted_recall", "weighted_f1"),
    "youden": ("informedness",),
    "youden_j": ("informedness",),
    "youdens_j": ("informedness",),
    "zero_one_loss": ("error_rate",),
}
"""Names of scikit-learn, PyCM, TorchMetrics and caret, and the keys to suggest for them.

They serve suggestions alone: a request with one of them is refused."""


def nearest_keys(name: str) -> tuple[str, ...]:
    """Return the keys that an unknown name may mean, the most likely one first.

    Parameters
    ----------
    name
        A name that is not a key; case, spaces and hyphens do not matter.

    Returns
    -------
    Keys of the catalog; empty if none is near.
    """
    plain = "_".join(name[:LONGEST_NAME].lower().replace("-", " ").replace("_", " ").split())
    if plain in KEYS:
        return (plain,)
    return ELSEWHERE.get(plain) or tuple(get_close_matches(plain, KEYS, n=1, cutoff=0.75))


def unknown_index(name: str) -> str:
    """Say that the catalog has no such index, and which one may be meant; repeats no name."""
    keys = " or ".join(f"`{key}`" for key in nearest_keys(name))
    hint = f"Did you mean {keys}?" if keys else "GET /v1/indices lists them all."
    return f"The catalog has no such index. {hint}"
