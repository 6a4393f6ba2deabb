"""Sections: what a report says after its verdict, in the one order of all renderings."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

T = TypeVar("T")

SECTIONS = {
    "gate": "Gate",
    "changes": "What changed",
    "warnings": "Before you trust these numbers",
    "overall": "Overall",
    "slices": "Slices",
    "classes": "Classes",
    "confusion": "Confusion",
    "scores": "Scores",
    "causes": "Where the change comes from",
    "all": "All overall indices",
}
"""Their titles. The reasons of a verdict come first, what everybody can look up comes last."""


def in_order(parts: Mapping[str, T]) -> Iterator[T]:
    """Yield the parts of a report that a rendering has, in the order of the sections.

    Raises
    ------
    KeyError
        For a part that is no section.
    """
    places = list(SECTIONS)
    yield from (parts[name] for name in sorted(parts, key=places.index))
