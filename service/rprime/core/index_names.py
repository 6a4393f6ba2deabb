"""Names of indices: keys, their aliases, and the nearest key to a misspelt name."""

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import takewhile

from rprime.core.catalog import CLASS_INDICES, KEYS
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


MOST_NAMED = 5
"""Most names in a sentence."""
MOST_LISTED = 20
"""Most names of members that are listed where none is near."""
LONGEST_NAME = 64
"""Characters of a name that are compared with the keys."""
RELATED: dict[str, tuple[str, ...]] = {
    "auc": ("roc_auc", "macro_roc_auc"),
    "auc_pr": ("average_precision",),
    "brier": ("brier_score",),
    "aupr": ("average_precision",),
    "brier_score_loss": ("brier_score",),
    "calibration_error": ("expected_calibration_error",),
    "conditional_entropy": ("conditional_entropy_predicted", "conditional_entropy_true"),
    "ece": ("expected_calibration_error",),
    "gini": ("roc_auc",),
    "hamming_distance": ("error_rate",),
    "hinge": ("hinge_loss",),
    "macro_avg": ("macro_precision", "macro_recall", "macro_f1"),
    "macro_average": ("macro_precision", "macro_recall", "macro_f1"),
    "micro_avg": ("micro_precision", "micro_recall", "micro_f1"),
    "multiclass_accuracy": ("macro_recall", "accuracy"),
    "mutual_info_score": ("mutual_information",),
    "phi_squared": ("phi",),
    "phi_coefficient": ("phi", "class_mcc"),
    "pr_auc": ("average_precision",),
    "roc_auc_ovo_weighted": ("weighted_hand_till_auc",),
    "roc_auc_score": ("macro_roc_auc", "roc_auc"),
    "weighted_avg": ("weighted_precision", "weighted_recall", "weighted_f1"),
    "weighted_average": ("weighted_precision", "weighted_recall", "weighted_f1"),
}
"""Names whose value is another one, or depends on arguments, and the keys to suggest for them."""
_AMBIGUOUS = {
    "AP": "AP is `accuracy` in Zhang, Su, Dou 2021, and `average_precision` elsewhere",
    "P": "P is `macro_precision` in Zhang, Su, Dou 2021, and `precision` of each class elsewhere",
    "R": "R is `macro_recall` or the index `r` in Zhang, Su, Dou 2021, and `recall` elsewhere",
}
"""Symbols that stand for several indices, and what they mean where."""
_KNOWN = (*KEYS, *ALIASES, *RELATED)
_LONG = tuple(name for name in _KNOWN if len(name) > len("tpr_"))
"""Names that are recognised if misspelt; a short one is as near to its opposite."""
_PREFIX = re.compile("^(overall|multiclass|binary|neg)_")
"""What other libraries put before the name of an index."""
_MOST_NAMES = 1000
_SHORTEST = 4
"""Letters of a name from which on one other letter is a misspelling."""
_NEAR = 0.83
"""A name is near another one from this ratio of `difflib` on."""


def listed(parts: Sequence[str]) -> str:
    """Name the first ones, and say how many more there are."""
    more = len(parts) - MOST_NAMED
    return ", ".join(parts[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def resembling(name: str, names: Sequence[str]) -> list[str]:
    """Return the known names of which a name is a misspelling.

    They differ in case or punctuation alone, or from four letters on in one letter that is missing,
    added or another one, or in two neighbours that changed places. Names with other digits are
    other names.
    """
    plain, digits = _letters(name), re.findall(r"\d+", name)
    same_digits = (other for other in names[:_MOST_NAMES] if re.findall(r"\d+", other) == digits)
    return [other for other in same_digits if _is_misspelt(plain, _letters(other))]


def nearest_name(name: str, names: Sequence[str]) -> str:
    """Ask which of the known names an unknown one may be; where none is near, list them.

    The name may have any length.
    """
    plain = name[:LONGEST_NAME].lower()
    near = get_close_matches(plain, names, n=1)
    near = near or [other for other in names if other.startswith(plain)]
    if near and len(plain) > 1:
        return f"Did you mean `{near[0]}`?"
    if not names:
        return "Leave it out: nothing is known here."
    if len(names) > MOST_LISTED:
        return "Leave it out; docs/http-api.md lists the names."
    return f"Known here: {', '.join(f'`{other}`' for other in names)}."


def nearest_names(name: str, names: Sequence[str]) -> str:
    """Say which of the known names are nearest to an unknown one; empty if none is near."""
    near = get_close_matches(name[:LONGEST_NAME], names[:_MOST_NAMES], n=MOST_NAMED)
    near = list(dict.fromkeys([*resembling(name, names), *near]))
    return f" The nearest: {listed([f'`{other}`' for other in near])}." if near else ""


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name[:LONGEST_NAME].casefold()))


def _is_misspelt(name: str, right: str) -> bool:
    if name == right or min(len(name), len(right)) < _SHORTEST:
        return name == right != ""
    same = (a == b for a, b in zip(name, right, strict=False))
    start = sum(takewhile(bool, same))
    left, rest = name[start:], right[start:]
    edits = ((left[1:], rest), (left, rest[1:]), (left[1:], rest[1:]))
    swapped = left[:2] == rest[1::-1] and left[2:] == rest[2:]
    return swapped or any(a == b for a, b in edits)


def nearest_keys(name: str) -> tuple[str, ...]:
    """Return the keys that an unknown name may mean, the most likely one first, if one is near.

    Case, spaces and hyphens do not matter.
    """
    plain = "_".join(name[:LONGEST_NAME].lower().replace("-", " ").replace("_", " ").split())
    if plain not in _KNOWN:
        plain = _PREFIX.sub("", plain)
    rest, _, average = plain.rpartition("_")
    averaged = f"{average}_{canonical(rest)}"
    kind, _, single = plain.partition("_")
    if kind in AVERAGES and canonical(single) in CLASS_INDICES and plain not in _KNOWN:
        near = [single]
    elif average in AVERAGES and canonical(rest) in CLASS_INDICES and averaged not in KEYS:
        near = [rest]
    elif plain in _KNOWN or averaged in KEYS:
        near = [plain if plain in _KNOWN else averaged]
    else:
        near = get_close_matches(plain, _LONG, cutoff=_NEAR)
        ratios = [SequenceMatcher(None, candidate, plain).ratio() for candidate in near]
        near = [
            candidate for candidate, ratio in zip(near, ratios, strict=True) if ratio == ratios[0]
        ]
    keys = (key for candidate in near for key in RELATED.get(candidate) or (canonical(candidate),))
    return tuple(dict.fromkeys(keys))


def nearest_classes(name: str, classes: Sequence[str]) -> str:
    """Ask which of the known classes an unknown one may be; where none is near, name some."""
    if name == "all":
        return " For every class write `classes: all`, without brackets."
    plain = {label.casefold(): label for label in classes[:_MOST_NAMES]}
    if near := get_close_matches(name.casefold(), plain, n=3):
        return f" Did you mean {' or '.join(f'`{plain[label]}`' for label in near)}?"
    return f" The classes are {listed([f'`{label}`' for label in classes])}."


def nearest_slices(name: Mapping[str, str], slices: Sequence[Mapping[str, str]]) -> str:
    """Ask which of the known slices an unknown one may be; empty if none is near."""
    texts = [_text(part) for part in slices[:_MOST_NAMES]]
    near = get_close_matches(_text(name), texts, n=3)
    return f" Did you mean {' or '.join(f'`{text}`' for text in near)}?" if near else ""


def _text(name: Mapping[str, str]) -> str:
    return ", ".join(f"{column}={value}" for column, value in sorted(name.items()))


def unknown_index(name: str) -> str:
    """Say that the catalog has no such index, and which one may be meant; repeats no name."""
    if meanings := _AMBIGUOUS.get(name.upper()):
        return f"The name has several meanings. {meanings}."
    keys = nearest_keys(name)
    hint = f"Did you mean {' or '.join(f'`{key}`' for key in keys)}?"
    return f"The catalog has no such index. {hint if keys else 'GET /v1/indices lists them all.'}"
