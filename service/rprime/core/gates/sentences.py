"""The message of each gate result, for readers of a CI log."""

from rprime.core.gates.result import Result
from rprime.core.gates.rules import Rule, Waiver

PLACES = 4


def sentence(
    result: Result, rule: Rule, *, level: float, together: int, waiver: Waiver | None = None
) -> str:
    """Describe a result with its numbers.

    Parameters
    ----------
    result
        A result without its message.
    rule
        The rule of the result.
    level
        One-sided level of its limits.
    together
        How many results were tested together.
    waiver
        The waiver for the result, in force or not.
    """
    match result.verdict:
        case "pass" | "fail":
            return f"{_measured_side(result, rule, level)}{_waiver_refusal(result, waiver)}."
        case "waived":
            return f"{_measured_side(result, rule, level)}; {_waived(waiver)}."
        case "inconclusive":
            return f"{_inconclusive(result, rule, level, together)}."
        case "no_baseline":
            return f"{_subject(result)}{_now(result)} was not compared: there is no baseline."
        case "not_comparable":
            return f"{_subject(result)} cannot be compared: {_not_comparable_reason(result)}."
        case _:
            return f"{_subject(result)} is undefined ({_plain(result.reason)}), which never passes."


def number(value: float) -> str:
    """Write a number for people: four decimals, no trailing zeros, tiny ones not as 0."""
    if value != 0 and abs(value) < 10**-PLACES:
        return f"{value:.1g}"
    text = f"{value:.{PLACES}f}".rstrip("0").rstrip(".") if abs(value) < 1e6 else f"{value:.6g}"
    return "0" if text == "-0" else text


def _subject(result: Result) -> str:
    return result.index if result.class_ is None else f"{result.index} of class `{result.class_}`"


def _now(result: Result) -> str:
    return "" if result.observed is None else f" is {number(result.observed)} and"


def _measured_side(result: Result, rule: Rule, level: float) -> str:
    """Describe the value and its side of the limit."""
    return f"{_measured(result, rule, level)}{_side(result, rule)}"


def _measured(result: Result, rule: Rule, level: float) -> str:
    verb = _change(result.delta) if rule.compares else f"is {_number_or_undefined(result.observed)}"
    return f"{_subject(result)} {verb}{_limits(result, level)}"


def _change(delta: float | None) -> str:
    if delta is None:
        return "changed"
    if delta == 0:
        return "did not change"
    return f"{'dropped' if delta < 0 else 'rose'} by {number(abs(delta))}"


def _number_or_undefined(value: float | None) -> str:
    return "undefined" if value is None else number(value)


def _limits(result: Result, level: float) -> str:
    if result.interval is None:
        return ""
    low, high = (number(end) for end in result.interval)
    return f" ({number(100 * (1 - level))} % one-sided limits {low} to {high})"


def _side(result: Result, rule: Rule) -> str:
    limit, failed = number(rule.limit), result.verdict != "pass"
    plain = ", point values compared without a test" if rule.test == "none" else ""
    if not rule.compares:
        allowed = "required" if rule.guards_below else "allowed"
        low_side = rule.guards_below == failed
        return f", {'below' if low_side else 'above'} the {limit} {allowed}{plain}"
    if failed:
        return f", more than the {limit} allowed{plain}"
    if rule.test == "none":
        return f", within the {limit} allowed{plain}"
    return f": a {_move(rule)} of more than the {limit} allowed is ruled out"


def _move(rule: Rule) -> str:
    return "drop" if rule.kind == "max_drop" else "rise"


def _waiver_refusal(result: Result, waiver: Waiver | None) -> str:
    """Explain why a waiver does not apply."""
    if waiver is None or result.verdict == "pass":
        return ""
    if result.reason == "waiver_expired":
        return f"; the waiver of {waiver.by} expired after {waiver.expires.isoformat()}"
    return f"; the waiver of {waiver.by} ends at {number(waiver.ceiling)}"


def _waived(waiver: Waiver | None) -> str:
    if waiver is None:
        return "waived"
    last = waiver.expires.isoformat()
    return f"waived by {waiver.by} up to {number(waiver.ceiling)} through {last}: {waiver.reason}"


def _inconclusive(result: Result, rule: Rule, level: float, together: int) -> str:
    match result.reason:
        case "not_enough_items":
            return f"{_measured(result, rule, level)}: {_too_few(result, rule)}"
        case "not_significant_together":
            return f"{_measured(result, rule, level)}: {_one_of_many(result, rule, together)}"
        case _:
            return f"{_measured(result, rule, level)}, but cannot be tested: {_no_test(result)}"


def _too_few(result: Result, rule: Rule) -> str:
    question = _question(rule)
    items = "the items" if result.n is None else f"{number(result.n)} items"
    text = f"{items} are too few to tell whether it {question}"
    if result.min_detectable_drop is None:
        return text
    seen = number(result.min_detectable_drop)
    return f"{text}; they reliably show {_move_or_gap(rule)} from {seen} on"


def _question(rule: Rule) -> str:
    limit = number(rule.limit)
    if rule.compares:
        verb = "dropped" if rule.kind == "max_drop" else "rose"
        return f"{verb} by more than the {limit} allowed"
    return (
        f"is above the {limit} required" if rule.guards_below else f"is below the {limit} allowed"
    )


def _move_or_gap(rule: Rule) -> str:
    return f"a {_move(rule)}" if rule.compares else "a distance"


def _one_of_many(result: Result, rule: Rule, together: int) -> str:
    adjusted = "" if result.p_adjusted is None else f" (adjusted p {number(result.p_adjusted)})"
    beyond = "beyond" if rule.compares else "on the wrong side of"
    return (
        f"{beyond} the limit of {number(rule.limit)} by itself, but among {together} results "
        f"tested together chance alone explains one such result{adjusted}"
    )


def _no_test(result: Result) -> str:
    known = {
        "weighted": "the counts are weighted",
        "non_integer_counts": "the counts are not whole numbers",
        "no_interval": f"there is no interval for {result.index} here",
        "no_evidence": "the variance of the difference cannot be estimated",
    }
    if result.reason in known:
        return f'{known[result.reason]}; `test: "none"` compares the point value'
    return f"the baseline has no value ({_plain(result.reason)})"


def _not_comparable_reason(result: Result) -> str:
    known = {
        "class_missing": "the candidate has no such class",
        "class_missing_in_baseline": "the baseline has no such class",
        "different_test_sets": "candidate and baseline were evaluated on different test sets",
        "classes_differ": "it depends on the list of declared classes, which differs",
    }
    return known.get(result.reason, _plain(result.reason))


def _plain(reason: str) -> str:
    return reason.replace("_", " ")
