"""The per-item codes of one labelled test set, as paired comparison needs them."""

from dataclasses import dataclass

from rprime.core.arrays import Array


@dataclass(frozen=True, eq=False)
class Items:
    """True and predicted classes of n items, as codes into the declared classes.

    Parameters
    ----------
    true
        Shape (n,), unsigned integers below k.
    predicted
        Shape (n,), unsigned integers; k means unclassified.
    groups
        Shape (n,), codes of the groups of the items (one patient, one video); None if the
        items are independent.
    weights
        Shape (n,), non-negative sample weights; None if every item counts once.
    ids
        Shape (n,), distinct numbers of 64 bits that identify the items in every test set; None
        if they have none.
    """

    true: Array
    predicted: Array
    groups: Array | None = None
    weights: Array | None = None
    ids: Array | None = None
