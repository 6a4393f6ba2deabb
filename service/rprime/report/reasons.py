"""Why a value is not there, in the words of the reader."""

_WORDS = {
    "no_true_samples": "no item of the class",
    "no_predictions": "the class is never predicted",
    "no_samples": "no items",
    "single_class": "needs two classes",
    "chance_agreement_is_one": "chance agreement is one",
    "non_integer_counts": "no interval: fractional counts",
    "weighted": "no interval: weighted counts",
    "no_interval": "no interval for this index",
    "not_resampled": "no bootstrap interval here",
    "no_scores": "needs scores",
    "not_probabilities": "the scores are not probabilities",
    "no_class_defined": "defined in no class",
    "excluded_classes_differ": "a class is undefined on one side",
    "classes_differ": "the lists of classes differ",
    "no_evidence": "no variance can be estimated",
}


def explained(reason: str) -> str:
    """Say why a value or its interval is not there; nothing where it is."""
    return _WORDS.get(reason, reason.replace("_", " "))
