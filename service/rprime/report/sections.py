"""Sections: what a report says after its verdict, in the one order of all renderings."""

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
