"""Names of other libraries and of the papers for indices of the catalog."""

from rprime.core.catalog import KEYS
from rprime.core.families.averages import AVERAGES

_NAMES: dict[str, tuple[str, ...]] = {
    "accuracy": ("accuracy_score", "acc", "overall_accuracy", "osr"),
    "average_precision": ("average_precision_score",),
    "balanced_accuracy": ("balanced_accuracy_score",),
    "adjusted_rand_index": ("adjusted_rand_score", "ari"),
    "bangdiwala_b": ("bangdiwala",),
    "chi2": ("chi_squared",),
    "chi2_degrees_of_freedom": ("chi_squared_df",),
    "class_confusion_entropy": ("cen",),
    "class_modified_confusion_entropy": ("mcen",),
    "conditional_log_likelihood": ("cll",),
    "confusion_entropy": ("overall_cen",),
    "contingency_coefficient": ("pearson_c",),
    "d2_log_loss": ("d2_log_loss_score",),
    "diagnostic_odds_ratio": ("dor",),
    "entropy_predicted": ("response_entropy",),
    "entropy_true": ("reference_entropy",),
    "error_rate": ("hamming_loss", "misclassification_rate", "zero_one_loss"),
    "f1": ("dice", "dice_coefficient", "f1_score", "f_measure", "f_score"),
    "f1_of_macro_averages": ("f-1",),
    "f_beta": ("fbeta", "fbeta_score"),
    "false_discovery_rate": ("fdr",),
    "false_negative_rate": ("fnr", "miss_rate"),
    "false_negatives": ("fn",),
    "false_omission_rate": ("for",),
    "false_positive_rate": ("fallout", "fpr"),
    "false_positives": ("fp",),
    "gt_index": ("gt",),
    "hand_till_auc": ("au1u", "roc_auc_ovo"),
    "informedness": ("bookmaker_informedness", "youden", "youden_j", "youdens_j"),
    "jaccard": (
        "critical_success_index",
        "intersection_over_union",
        "iou",
        "jaccard_index",
        "jaccard_score",
        "threat_score",
        "jcc",
    ),
    "kappa": ("cohen_kappa", "cohen_kappa_score", "cohens_kappa", "ckc"),
    "kullback_leibler_divergence": ("kl_divergence",),
    "linear_weighted_kappa": ("kappa_linear", "linear_kappa", "lwk"),
    "log_loss": ("cross_entropy", "logloss"),
    "macro_class_balanced_accuracy": ("mean_balanced_accuracy",),
    "macro_f1": ("macro_avg_f1", "macro_avg_f1_score", "mean_f1"),
    "macro_jaccard": ("mean_iou", "miou"),
    "macro_negative_predictive_value": ("mean_neg_pred_value",),
    "macro_precision": ("macro_avg_precision", "mean_pos_pred_value", "mean_precision"),
    "macro_recall": ("macro_avg_recall", "mean_recall", "mean_sensitivity"),
    "macro_roc_auc": ("aunu", "roc_auc_ovr"),
    "macro_specificity": ("mean_specificity",),
    "maxwell_re": ("bennett_s", "brennan_prediger", "pabak", "mre"),
    "mcc": ("matthews_corrcoef",),
    "modified_confusion_entropy": ("overall_mcen",),
    "negative_likelihood_ratio": ("nlr",),
    "negative_predictive_value": ("neg_pred_value", "npv"),
    "no_information_rate": ("nir", "accuracy_null"),
    "normalized_mutual_information": ("nmi", "normalized_mutual_info_score", "v_measure_score"),
    "positive_likelihood_ratio": ("plr",),
    "precision": ("pos_pred_value", "positive_predictive_value", "ppv", "precision_score"),
    "pair_fowlkes_mallows": ("fowlkes_mallows_score",),
    "predicted_prevalence": ("detection_prevalence", "topr", "p(s)"),
    "prevalence": ("estimated_prevalence", "p(m)"),
    "probabilistic_auc": ("pauc",),
    "quadratic_weighted_kappa": ("kappa_quadratic", "quadratic_kappa", "qwk"),
    "r_prime": ("rprime", "r'"),
    "rand_index": ("rand_score",),
    "recall": ("hit_rate", "recall_score", "sensitivity", "tpr", "true_positive_rate", "p(s|m)"),
    "roc_auc": ("auroc",),
    "scott_pi": ("kappa_unbiased",),
    "scored_auc": ("sauc",),
    "scott_pi_true_margin": ("spc",),
    "specificity": ("selectivity", "specificity_score", "tnr", "true_negative_rate"),
    "top_k_accuracy": ("top_k", "top_k_accuracy_score"),
    "true_negatives": ("tn",),
    "true_positives": ("tp",),
    "uncertainty_predicted": ("completeness_score",),
    "uncertainty_true": ("homogeneity_score", "rci"),
    "weighted_f1": ("weighted_avg_f1", "weighted_avg_f1_score"),
    "weighted_hand_till_auc": ("au1p",),
    "weighted_precision": ("weighted_avg_precision",),
    "weighted_recall": ("weighted_avg_recall",),
    "weighted_roc_auc": ("aunp", "roc_auc_ovr_weighted"),
}
"""By key, the names of scikit-learn, TorchMetrics, PyCM, caret and the literature.

Symbols of Zhang, Su, Dou 2021 and of Labatut, Cherifi 2011 stand here in small letters.
Only names of the same value stand here. The name of a function whose average is an argument is that
of the per-class index, which is its value for each class (`average=None`)."""


_AVERAGE_LAST = {
    f"{key}_{average}": f"{average}_{key}"
    for key in KEYS
    for average in AVERAGES
    if f"{average}_{key}" in KEYS
}
_SYMBOLS = (
    *("R'", "F-1", "P(s|m)", "P(s)", "P(m)", "CLL"),
    *("OSR", "CKC", "SPC", "MRE", "JCC", "GT", "TPR", "TNR", "PPV", "NPV", "ICSI", "CSI"),
)
"""Symbols of the papers, as they print them."""
_LOWER_CASE = _AVERAGE_LAST | {name: key for key, names in _NAMES.items() for name in names}
ALIASES = _LOWER_CASE | {name: _LOWER_CASE.get(name.lower(), name.lower()) for name in _SYMBOLS}
"""The key that each name stands for."""


def canonical(name: str) -> str:
    """Return the key of the index that a name stands for; any other name unchanged."""
    return ALIASES.get(name, name)


def names_of(key: str) -> tuple[str, ...]:
    """Return the names that an index has in other libraries and in the papers."""
    return tuple(sorted(name for name, meant in _LOWER_CASE.items() if meant == key))
