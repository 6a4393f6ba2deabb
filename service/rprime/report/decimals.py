"""Numbers as people read them: four decimals, thousands separated, no number without a sign."""

PLACES = 4
ABSENT = "\u2013"
MINUS = "\u2212"


def fixed(value: float) -> str:
    """Write a number for machines: fixed decimals, no separator, never a negative zero."""
    text = f"{value:.{PLACES}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text


def decimal(value: float | None) -> str:
    """Write a value."""
    if value is None:
        return ABSENT
    text = f"{abs(value):,.{PLACES}f}"
    return f"{MINUS}{text}" if value < 0 and text.strip("0.,") else text


def signed(value: float | None) -> str:
    """Write a change: with its sign, unless nothing changed at all."""
    if value is None:
        return ABSENT
    sign = "" if value == 0 else MINUS if value < 0 else "+"
    return f"{sign}{abs(value):,.{PLACES}f}"


def span(low: float | None, high: float | None) -> str:
    """Write an interval; without an upper end it is infinite."""
    if low is None:
        return ABSENT
    return f"[{decimal(low)}, {decimal(high)}]" if high is not None else f"[{decimal(low)}, ∞)"


def count(items: float) -> str:
    """Write a number of items: whole ones without decimals."""
    return f"{items:,.0f}" if float(items).is_integer() else decimal(items)


def percent(share: float) -> str:
    """Write a level of confidence."""
    return f"{100 * share:g} %"


def bound(value: float) -> str:
    """Write the end of an axis or range: no more decimals than it needs."""
    text = f"{abs(value):.{PLACES}f}".rstrip("0").rstrip(".")
    return f"{MINUS}{text}" if value < 0 and text != "0" else text
