"""Suggestions for names that do not exist, and lists of names."""

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import takewhile

from rprime.core.aliases import ALIASES, canonical
from rprime.core.catalog import CLASS_INDICES, KEYS
from rprime.core.families.averages import AVERAGES

MOST_NAMED = 5
"""Most names in a sentence."""
MOST_LISTED = 16
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
    near = near or [other for other in names if plain and other.startswith(plain)]
    if near:
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
