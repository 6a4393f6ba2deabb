"""Models of the items of a baseline that a candidate lacks, relabelled or moved."""

from pydantic import Field

from rprime.schemas.fields import Answer


class MissingCounts(Answer):
    """How many items are missing, and why; they are not compared."""

    items: int = Field(description="Items of the baseline.")
    removed: int = Field(description="Items that the candidate lacks.")
    relabelled: int = Field(description="Items with another true class.")
    moved: int = Field(description="Items with another slice of the column, in both of these.")


class MissingOfSlice(MissingCounts):
    """How many items of a slice are missing, and why."""

    slice: dict[str, str] = Field(description="The value of each column that it is of.")


class MissingItems(MissingCounts):
    """Items of the baseline that the candidate lacks, relabelled or moved, and its new ones."""

    added: int = Field(description="Items that only the candidate has.")
    classes: dict[str, MissingCounts] = Field(
        description="The classes that lack items, by the true class of the baseline."
    )
    slices: list[MissingOfSlice] = Field(
        description="The slices that lack items, those that lack the largest share first. One that "
        "items moved to counts these, too."
    )
    new_classes: dict[str, int] = Field(description="The added items by their true class.")
