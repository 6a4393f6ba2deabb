"""Numbers of things in sentences."""

VERBS = {"are": "is", "have": "has", "need": "needs"}
"""The verbs of one thing."""


def plural(number: float, noun: str, verb: str = "") -> str:
    """Write a number of things, `1 class` or `2,000 classes`, and a verb that fits."""
    if number == 1:
        return " ".join(filter(None, ("1", noun, VERBS.get(verb, verb))))
    digits = f"{number:,.0f}" if float(number).is_integer() else f"{number:,.4f}"
    return " ".join(filter(None, (digits, f"{noun}{'es' if noun.endswith('s') else 's'}", verb)))
