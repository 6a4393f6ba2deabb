"""The sentences that say the results of a gate to readers of a CI log."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from rprime.core.gates.kinds import VERDICTS, Against, VerdictCode
from rprime.core.gates.results import GateVerdict, Result
from rprime.core.gates.rules import Rule, Waiver
from rprime.core.quantities import conditions, plural

PLACES = 4
MOST_NAMED = 5
"""Most classes or results named one by one in a sentence."""


def gate_sentence(
    verdict: GateVerdict,
    results: Sequence[Result],
    *,
    judged: bool,
    differences: Mapping[Against, str | None],
    accepted: str = "",
) -> str:
    """State the verdict of a gate, and what it rests on.

    `differences` say how test sets differ, `accepted` which missing items do not count.
    """
    if verdict == "no_rules":
        return "The gate has no rules, so nothing was judged."
    if verdict == "fail":
        results = [result for result in results if result.effect == "fail"]
    shown = [r for r in results if r.verdict != "pass" and r.reason not in CAUSES]
    opening = OPENINGS[verdict] if judged else "The gate could not be judged"
    opening += f" ({accepted} accepted)" if accepted else ""
    listing = _all_of(shown) if verdict == "fail" else _open(shown)
    lead = {"pass": ", but", "fail": ":"}.get(verdict, ", with these results")
    clause = f"{lead} {listing}" if shown else ""
    if verdict == "pass" and shown and all(result.verdict == "undecided" for result in shown):
        few = plural(len(shown), "result", "have")
        clause = f"; {few} too few items to pass alone: {_all_of(shown)}"
    common = dict.fromkeys((r.reason, r.against) for r in results if r.reason in CAUSES)
    sentences = [f"{opening}{clause}."]
    for reason, against in common:
        if reason == "no_baseline" or against is None:
            sentences.append(f"There is no {against}.")
        else:
            how = differences.get(against) or "The test sets differ."
            sentences.append(how if against == "baseline" else f"Against the anchor: {how}")
    return " ".join(sentences)


PASSED = "The gate passed."
OPENINGS = {
    "pass": "The gate passed",
    "fail": "The gate failed",
    "inconclusive": "The gate is inconclusive",
    "no_baseline": "The gate could not be judged",
}
CAUSES = ("different_test_sets", "no_baseline")
"""Why a whole comparison tells nothing: the sentence of the gate says it for all results."""


def _all_of(results: Sequence[Result]) -> str:
    """Name results by their rules and classes."""
    rules: dict[str, list[Result]] = {}
    for result in results:
        anchored = " against the anchor" if result.against == "anchor" else ""
        rules.setdefault(f"{result.rule}{_on_slice(result)}{anchored}", []).append(result)
    parts = []
    for owner, members in list(rules.items())[:MOST_NAMED]:
        labels = tuple(result.class_ for result in members if result.class_ is not None)
        about = [f"of {quoted_names(labels)}"] if labels else []
        if any(result.average_of is not None for result in members):
            about.insert(0, "on average")
        parts.append(f"{owner} {' and '.join(about)}" if about else owner)
    more = len(rules) - MOST_NAMED
    return ", ".join(parts) + (f" and {more} more rules" if more > 0 else "")


def _open(results: Sequence[Result]) -> str:
    """Name suspects first, then the other results by what was found."""
    suspects = [r for r in results if r.suspect]
    parts = [f"suspect: {_all_of(suspects)}"] if suspects else []
    for verdict in (VERDICTS[code] for code in NAMED_LAST):
        rest = [r for r in results if r.verdict == verdict.name and not r.suspect]
        parts += [f"{verdict.word}: {_all_of(rest)}"] if rest else []
    return "; ".join(parts)


NAMED_LAST = (
    VerdictCode.undecided,
    VerdictCode.fail,
    VerdictCode.waived,
    VerdictCode.not_comparable,
    VerdictCode.undefined,
    VerdictCode.no_baseline,
)
"""The verdicts of results that do not pass, in the order in which they are named."""


def quoted_names(labels: Sequence[str], noun: str = "classes") -> str:
    """Name classes or slices, at most `MOST_NAMED` of them one by one."""
    shown = ", ".join(f"`{label}`" for label in labels[:MOST_NAMED])
    noun = SINGULAR[noun] if len(labels) == 1 else noun
    more = len(labels) - MOST_NAMED
    return f"{noun} {shown}" + (f" and {more} more" if more > 0 else "")


SINGULAR = {"classes": "class", "slices": "slice"}


def result_sentence(
    result: Result, rule: Rule, *, together: int, waiver: Waiver | None = None
) -> str:
    """Describe a result with its numbers; so many results were tested together."""
    match result.verdict:
        case "pass" | "fail":
            return f"{_measured(result, rule)}{_side(result, rule)}{_refusal(result, waiver)}."
        case "waived":
            why = "waived"
            if waiver is not None:
                last, most = waiver.expires.isoformat(), number(waiver.ceiling)
                why = f"waived by {waiver.by} up to {most} through {last}: {waiver.reason}"
            return f"{_measured(result, rule)}{_side(result, rule)}; {why}."
        case "undecided":
            return f"{_undecided(result, rule, together)}{_refusal(result, waiver)}."
        case "no_baseline":
            now = "" if result.observed is None else f" is {number(result.observed)} and"
            absent = f"there is no {result.against}"
            if result.reason == "class_missing_in_baseline":
                absent = f"the {result.against} has no such class"
            return f"{_subject(result, rule)}{now} was not compared: {absent}."
        case "not_comparable":
            return f"{_subject(result, rule)} cannot be compared: {_not_comparable(result, rule)}."
        case _:
            why = _plain(result.reason) + MENDS.get(result.reason, "")
            return f"{_subject(result, rule)} is undefined ({why}), which never passes."


@lru_cache(maxsize=1024)
def number(value: float) -> str:
    """Write a number for people: four decimals, no trailing zeros, tiny ones not as 0."""
    if value != 0 and abs(value) < 10**-PLACES:
        return f"{value:.1g}"
    text = f"{value:.{PLACES}f}".rstrip("0").rstrip(".") if abs(value) < 1e6 else f"{value:.6g}"
    return "0" if text == "-0" else text


def _subject(result: Result, rule: Rule) -> str:
    name = rule.target.subject(result.class_)
    if rule.traits.between_slices:
        return f"the largest difference of {name} between the slices of {rule.columns[0]}"
    if result.average_of is None:
        return name + _on_slice(result)
    noun = "classes" if result.columns is None else f"slices of {' and '.join(result.columns)}"
    if result.columns and rule.classes is not None:
        noun = f"classes in the {noun}"
    return f"{name} on average over {result.average_of} {noun}"


def _on_slice(result: Result) -> str:
    """Name the slice, if it is about one."""
    if result.slice is None:
        return ""
    return f" on slice {conditions(result.slice)}"


def _measured(result: Result, rule: Rule) -> str:
    """Describe the value or its change, with its limits."""
    if rule.traits.compares and (delta := result.delta) is not None:
        change = "did not change"
        if delta:
            change = f"{'dropped' if delta < 0 else 'rose'} by {number(abs(delta))}"
        since = " since the anchor" if result.against == "anchor" else ""
        return f"{_subject(result, rule)} {change}{since}{_limits_of_change(result)}"
    value = "undefined" if result.observed is None else number(result.observed)
    limits, low, high = "", result.lower_limit, result.upper_limit
    if low is not None and high is not None:
        limits = _limits(result, f" {number(low)}", number(high))
    return f"{_subject(result, rule)} is {value}{limits}"


def _limits_of_change(result: Result) -> str:
    """State the limits as sizes of a drop or a rise, so that no sign changes in a sentence."""
    low, high, delta = result.lower_limit, result.upper_limit, result.delta
    if low is None or high is None or delta is None:
        return ""
    if low < 0 < high or not delta:
        drop, rise = number(max(-low, 0.0)), number(max(high, 0.0))
        return _limits(result, f": a drop of {drop}", f"a rise of {rise}")
    nearest, farthest = sorted((abs(low), abs(high)))
    return _limits(result, f" {number(nearest)}", number(farthest))


def _limits(result: Result, first: str, other: str) -> str:
    """State two one-sided limits, which hold together with less confidence than each."""
    level = number(100 * (result.level or 0))
    return f" (limits{first} and {other}, each with {level} % confidence)"


def _side(result: Result, rule: Rule) -> str:
    """Describe the side of the limit on which the value is."""
    untested, words = rule.test == "none", rule.words
    clause = words.kept_point if untested else words.kept
    if result.verdict != "pass":
        clause = words.broken
    clause = clause.format(limit=number(rule.limit))
    if result.average_of is not None and result.verdict == "pass":
        clause += " on average"
    return clause + (", point values compared without a test" if untested else "")


def _move(rule: Rule) -> str:
    return rule.traits.words.direction


def _refusal(result: Result, waiver: Waiver | None) -> str:
    """Explain why a waiver does not apply."""
    if waiver is None or result.verdict == "pass":
        return ""
    if result.reason == "waiver_expired":
        return f"; the waiver of {waiver.by} expired after {waiver.expires.isoformat()}"
    return f"; the waiver of {waiver.by} ends at {number(waiver.ceiling)}"


def _undecided(result: Result, rule: Rule, together: int) -> str:
    if result.reason == "class_lost":
        return f"{_subject(result, rule)} has no value: the candidate has none of its few items"
    if result.p_value is None:
        return _untested(result, rule)
    return f"{_measured(result, rule)}{_why_open(result, rule, together)}"


def _why_open(result: Result, rule: Rule, together: int) -> str:
    """Say why the tests of a result leave it open."""
    if result.reason == "few_groups":
        return ", but its items are in fewer than 8 effective groups: nothing passes"
    if result.reason == "missing_items":
        kept = f"it is not shown that it keeps the limit {number(rule.limit)}"
        if rule.traits.tolerates:
            kept = f"a {_move(rule)} of more than the {number(rule.limit)} allowed is not ruled out"
        return f", but with the {_lost(result)} counted as wrong {kept}"
    if result.suspect:
        return f": suspect, {_suspicion(result, rule, together)}"
    p_value, adjusted_p = result.p_value or 0, result.p_adjusted or 0
    alone = adjusted_p > p_value
    if result.reason == "not_significant_together" and alone:
        return (
            f": tested alone it would fail (p-value {number(p_value)}), but among {together} "
            "results tested together it does not: adjusted for them the p-value is "
            f"{number(adjusted_p)}"
        )
    return f": {_too_few(result, rule)}"


def _suspicion(result: Result, rule: Rule, together: int) -> str:
    """Say what is shown of a suspect, and what is not."""
    low, high, limit = result.lower_limit, result.upper_limit, number(rule.limit)
    nearest = high if rule.traits.guards_below else low
    if nearest is not None and abs(nearest) > rule.limit:
        shown = f"tested alone it would be beyond the {limit} allowed"
        if result.average_of is not None:
            return shown
        return (
            f"{shown}, but among {together} results tested together only a {_move(rule)} is shown"
        )
    return f"a {_move(rule)} is shown, but not one of more than the {limit} allowed"


def _too_few(result: Result, rule: Rule) -> str:
    items = "the items are" if result.n is None else plural(round(result.n), "item", "are")
    question = rule.words.question.format(limit=number(rule.limit))
    text = f"{items} too few to tell whether it {question}"
    if result.min_detectable_drop is None:
        return text
    seen = number(result.min_detectable_drop)
    return f"{text}; a {_move(rule)} of {seen} would fail in 8 of 10 cases"


def _untested(result: Result, rule: Rule) -> str:
    """Say what could not be tested, and whether it lies beyond the limit."""
    if result.delta is None and result.observed is None:
        return f"{_subject(result, rule)} has no value on either side ({_plain(result.reason)})"
    explanations = {
        "weighted": "the counts are weighted, and the weights of the items are unknown, or differ "
        "between the sides",
        "non_integer_counts": "the counts are not whole numbers",
        "no_interval": f"there is no interval for {rule.target.name} here",
        "not_resampled": f"there is no bootstrap interval for {rule.target.name} here",
        "no_evidence": "there is no evidence to test it by",
        "too_small_to_average": "no class or slice is large enough for an average",
        "few_items": "a class of the slice has fewer than 10 items, or there are few errors",
    }
    why = explanations.get(result.reason, f"the baseline has no value ({_plain(result.reason)})")
    hint = '; `test: "none"` compares the point value' if result.reason in explanations else ""
    return f"{_measured(result, rule)}, but cannot be tested: {why}{hint}"


def _not_comparable(result: Result, rule: Rule) -> str:
    explanations = {
        "slice_missing": "the candidate has no such slice",
        "slice_missing_in_baseline": f"the {result.against} has no such slice",
        "slices_missing_in_baseline": f"the {result.against} has no slices, which the store does "
        "not keep: send its predictions with the request",
        "class_missing": "the candidate has no such class",
        "class_lost": "the candidate has none of its items",
        "missing_items": f"with the {_lost(result)} counted as wrong, the rule would fail",
        "class_missing_in_baseline": "the baseline has no such class",
        "no_items": "the class has no items",
        "no_class": "no class has enough items" + " in every slice" * rule.traits.between_slices,
        "different_test_sets": "the test sets differ",
        "no_scores": f"the {result.against} has no scores, nor this index of any",
        "not_probabilities": f"the scores of the {result.against} are not probabilities",
        "classes_differ": "it depends on the list of declared classes, which differs",
    }
    text = explanations.get(result.reason, _plain(result.reason))
    if result.reason in ("no_items", "no_class") and rule.traits.compares:
        return f"{text} on both sides" if result.reason == "no_class" else f"{text} on one side"
    return text


MENDS = {
    "no_scores": ": send `y_score`, or columns `score:<label>`",
    "not_probabilities": ": the scores of an item must sum to 1",
}
"""What to do where no evidence of this form ever has the value."""


def _lost(result: Result) -> str:
    """Name the missing items of a result."""
    return (
        f"{plural(result.missing_items or 0, 'missing item')} of the {result.against or 'baseline'}"
    )


def _plain(reason: str) -> str:
    return reason.replace("_", " ")
