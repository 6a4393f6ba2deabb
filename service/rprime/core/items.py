"""Items: the per-item codes of one labelled test set, what paired comparison needs."""

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
        Shape (n,), unsigned integers; k stands for an unclassified item.
    groups
        Shape (n,), codes of the groups that items belong to (one patient, one video);
        None where items are independent.
    weights
        Shape (n,), non-negative sample weights; None where every item counts once.
    """

    true: Array
    predicted: Array
    groups: Array | None = None
    weights: Array | None = None
