"""Suggestions for index names that the catalog does not have."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from rprime.core.aliases import ALIASES, canonical
from rprime.core.catalog import KEYS

LONGEST_NAME = 64
"""Characters of a name that are compared with the keys."""
RELATED: dict[str, tuple[str, ...]] = {
    "auc": ("roc_auc", "macro_roc_auc"),
    "auc_pr": ("average_precision",),
    "brier": ("brier_score",),
    "brier_score_loss": ("brier_score",),
    "calibration_error": ("expected_calibration_error",),
    "ece": ("expected_calibration_error",),
    "gini": ("roc_auc",),
    "kappa_linear": ("weighted_kappa",),
    "kappa_quadratic": ("weighted_kappa",),
    "macro_avg": ("macro_precision", "macro_recall", "macro_f1"),
    "macro_average": ("macro_precision", "macro_recall", "macro_f1"),
    "micro_avg": ("micro_precision", "micro_recall", "micro_f1"),
    "mutual_info_score": ("mutual_information",),
    "neg_log_loss": ("log_loss",),
    "phi_coefficient": ("phi", "class_mcc"),
    "pr_auc": ("average_precision",),
    "quadratic_weighted_kappa": ("weighted_kappa",),
    "roc_auc_score": ("macro_roc_auc", "roc_auc"),
    "weighted_avg": ("weighted_precision", "weighted_recall", "weighted_f1"),
    "weighted_average": ("weighted_precision", "weighted_recall", "weighted_f1"),
}
"""Names whose value is another one, or depends on arguments, and the keys to suggest for them."""
_KNOWN = (*KEYS, *ALIASES, *RELATED)
_MOST_NAMES = 1000
_NEAR = 0.83
"""A name is near another one from this ratio of `difflib` on."""


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
    near = [plain] if plain in _KNOWN else get_close_matches(plain, _KNOWN, n=1, cutoff=_NEAR)
    return tuple(key for one in near for key in RELATED.get(one) or (canonical(one),))


def nearest_slices(name: Mapping[str, str], known: Sequence[Mapping[str, str]]) -> str:
    """Ask which of the known slices an unknown one may be; empty if none is near."""
    texts = [_text(one) for one in known[:_MOST_NAMES]]
    near = get_close_matches(_text(name), texts, n=3)
    return f" Did you mean {' or '.join(f'`{text}`' for text in near)}?" if near else ""


def _text(name: Mapping[str, str]) -> str:
    return ", ".join(f"{column}={value}" for column, value in sorted(name.items()))


def unknown_index(name: str) -> str:
    """Say that the catalog has no such index, and which one may be meant; repeats no name."""
    keys = nearest_keys(name)
    hint = f"Did you mean {' or '.join(f'`{key}`' for key in keys)}?"
    if keys == ("weighted_kappa",):
        hint += " It needs the option `kappa_weights`."
    return f"The catalog has no such index. {hint if keys else 'GET /v1/indices lists them all.'}"
