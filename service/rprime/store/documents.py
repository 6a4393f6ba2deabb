"""The JSON documents that a store keeps of an evaluation, each with its version.

A stored document is an envelope, `{"version":3,"gate":{...}}`; those of version 2 had none. Reading
takes a document of any version to the form of today by one step for each version. What a step knows
of the old form stands here in full: it imports no class, model or sentence, so that a change of
those never changes what was stored.

A new optional member needs no new version: an older document lacks it, and readers take the default
of its declaration. A member that is renamed, removed or takes other values, and an option with
another default, need one: raise `VERSION`, and write the step from the last version.
"""

import re
from collections.abc import Callable
from typing import Any

import orjson

from rprime.store.errors import StoreNewerError

Json = dict[str, Any]
"""Declared here, since nothing that reads what is stored comes from elsewhere."""
VERSION = 3
"""The version that is written."""

BARE_VERSION = 2
"""The version of a document without an envelope."""

_ENVELOPE = re.compile(rb'\{"version":([0-9]+),"[a-z_]+":')


def enveloped(name: str, document: bytes, *, version: int = VERSION) -> bytes:
    """Return a document of this name as it is stored."""
    return b'{"version":%d,"%s":%s}' % (version, name.encode(), document)


def read_document(name: str, stored: bytes) -> bytes:
    """Return a stored document of this name in the form of today."""
    envelope = _ENVELOPE.match(stored)
    if envelope is None:
        return upgraded(name, stored, BARE_VERSION)
    return upgraded(name, stored[envelope.end() : -1], int(envelope[1]))


def upgraded(name: str, document: bytes, version: int) -> bytes:
    """Return a document of any version in the form of today."""
    if version > VERSION:
        raise StoreNewerError(
            f"A stored document has version {version}, this rprime knows {VERSION}; install the "
            "newer rprime again."
        )
    steps = [step for number, step in _STEPS.get(name, {}).items() if number >= version]
    if not steps or document == b"null":
        return document
    content: Json = orjson.loads(document)
    for step in steps:
        content = step(content)
    return orjson.dumps(content, option=_SORTED.get(name, 0))


# Version 1 is that of 0.1.0.

_POLICIES_2 = {"pass": "all_must_pass", "not_fail": "proven_only"}
_JUDGED_2 = {"pass", "fail", "inconclusive", "waived"}
_OPENINGS_2 = {
    "pass": "The gate passed",
    "fail": "The gate failed",
    "inconclusive": "The gate is inconclusive",
}
_OPEN_2 = {
    "inconclusive": "undecided",
    "fail": "failing (warning only)",
    "waived": "waived",
    "not_comparable": "not comparable",
    "undefined": "undefined",
    "no_baseline": "without a baseline",
}
_CAUSES_2 = {"different_test_sets": "The test sets differ.", "no_baseline": "There is no baseline."}
_MOST_NAMED_2 = 5


def _options_to_2(options: Json) -> Json:
    gates = options.get("gates")
    if gates is None:
        return options
    if gates.get("looks") == "spend":
        # The first look had the level 6 alpha / pi^2; no smaller budget has one as low.
        gates["looks"] = {"budget": 2}
    for rule in gates["rules"]:
        if rule.get("policy") is not None:
            rule["policy"] = _POLICIES_2[rule["policy"]]
    return options


def _comparison_to_2(comparison: Json) -> Json:
    comparison["classes"]["without_items"] = []
    return comparison | {"items": None}


def _gate_to_2(gate: Json) -> Json:
    results = [_result_to_2(result, gate["alpha"]) for result in gate["results"]]
    failed = gate["verdict"] == "fail"
    deciding = [r for r in results if not failed or r["effect"] == "fail"]
    judged = any(result["verdict"] in _JUDGED_2 for result in deciding)
    message = _sentence_2(gate["verdict"], deciding, judged=judged)
    return gate | {"results": results, "judged": judged, "message": message, "budget": None}


def _result_to_2(result: Json, alpha: float) -> Json:
    low, high = result.pop("interval") or (None, None)
    against = "baseline" if result["kind"] in {"max_drop", "max_gain"} else None
    level = None if low is None and high is None else 1 - alpha
    added: Json = {"slice": None, "confusion": None, "suspect": False, "against": against}
    return result | added | {"lower_limit": low, "upper_limit": high, "level": level}


def _sentence_2(verdict: str, results: list[Json], *, judged: bool) -> str:
    """State the verdict of a gate by the results that decide it, which 0.1.0 did not."""
    if verdict == "no_rules":
        return "The gate has no rules, so nothing was judged."
    open_results = [
        result
        for result in results
        if result["verdict"] != "pass" and result["reason"] not in _CAUSES_2
    ]
    opening = _OPENINGS_2[verdict] if judged else "The gate could not be judged"
    if open_results:
        lead = {"pass": ", but", "fail": ":"}.get(verdict, ", with these results")
        listed = _rules_2 if verdict == "fail" else _by_verdict_2
        opening += f"{lead} {listed(open_results)}"
    reasons = dict.fromkeys(result["reason"] for result in results)
    causes = [_CAUSES_2[reason] for reason in reasons if reason in _CAUSES_2]
    return " ".join([f"{opening}.", *causes])


def _by_verdict_2(results: list[Json]) -> str:
    parts = []
    for verdict, word in _OPEN_2.items():
        same = [result for result in results if result["verdict"] == verdict]
        parts += [f"{word}: {_rules_2(same)}"] if same else []
    return "; ".join(parts)


def _rules_2(results: list[Json]) -> str:
    """Name results by their rules and classes, the first few of both."""
    rules: dict[str, list[str]] = {}
    for result in results:
        labels = rules.setdefault(result["rule"], [])
        labels += [] if result["class"] is None else [result["class"]]
    parts = []
    for rule, labels in list(rules.items())[:_MOST_NAMED_2]:
        noun = "class" if len(labels) == 1 else "classes"
        named = ", ".join(f"`{label}`" for label in labels[:_MOST_NAMED_2])
        more = len(labels) - _MOST_NAMED_2
        end = f" and {more} more" if more > 0 else ""
        parts.append(f"{rule} of {noun} {named}{end}" if labels else rule)
    more = len(rules) - _MOST_NAMED_2
    return ", ".join(parts) + (f" and {more} more rules" if more > 0 else "")


# Version 2 is that of 0.2.0.

_DECIDED_3 = {"pass", "fail", "waived"}
_POLICIES_3 = {"all_must_pass": "each"}
"""The others are the default of today, an average."""


_UNAVERAGED_3 = (
    *("true_positives", "true_negatives", "false_positives", "false_negatives"),
    *("prevalence", "predicted_prevalence", "lift", "gt_index"),
    *("positive_likelihood_ratio", "negative_likelihood_ratio", "diagnostic_odds_ratio"),
    *("class_quantity_disagreement", "class_allocation_disagreement"),
)
_REMOVED_3 = {f"{kind}_{key}" for kind in ("macro", "weighted") for key in _UNAVERAGED_3}
"""Averages that are no longer computed."""


def _options_to_3(options: Json) -> Json:
    """Write options and gates with the names of today, so that a page can judge by them again.

    The verdict that was given under them stays as it is. A rule on an average that is gone is left
    out with its waivers.
    """
    options = options | {"options": _indices_to_3(options.get("options", {}))}
    gates = options.get("gates")
    if gates is None:
        return options
    gone = {_name_3(rule) for rule in gates["rules"] if rule.get("index") in _REMOVED_3}
    gates["rules"] = [rule for rule in gates["rules"] if _name_3(rule) not in gone]
    if "waivers" in gates:
        gates["waivers"] = [waiver for waiver in gates["waivers"] if waiver["rule"] not in gone]
    effects = {
        "undecided" if name == "inconclusive" else name: effect
        for name, effect in gates.pop("on", {}).items()
    }
    looks = gates.pop("looks", "ignore")
    if looks != "ignore":
        gates["max_looks"] = looks["budget"]
    for rule in gates["rules"]:
        policy = rule.pop("policy", None)
        if policy in _POLICIES_3:
            rule["policy"] = _POLICIES_3[policy]
        elif policy == "suspects_fail":
            effects["suspect"] = "fail"
    return options | {"gates": gates | ({"effects": effects} if effects else {})}


def _indices_to_3(options: Json) -> Json:
    """Name families alone, which came besides the family `core`, and no average that is gone."""
    changed = dict(options)
    if "families" in options and "indices" not in options:
        changed["families"] = list(dict.fromkeys(["core", *options["families"]]))
    kept = [key for key in changed.pop("indices", ()) if key not in _REMOVED_3]
    return changed | ({"indices": kept} if kept else {})


_KINDS_3 = ("min_value", "max_value", "max_drop", "max_gain", "min_gain", "max_gap")


def _name_3(rule: Json) -> str:
    """Return the name of a rule, which it has from its index and kind by default."""
    kinds = [name for name in _KINDS_3 if name in rule]
    columns = rule.get("slices", [])
    columns = [columns] if isinstance(columns, str) else columns
    return rule.get("id") or ".".join([str(rule.get("index")), *kinds, *columns])


def _gate_to_3(gate: Json) -> Json:
    """Call a result that the items do not decide `undecided`, and count these."""
    results = gate.get("results", ())
    for result in results:
        if result["verdict"] == "inconclusive":
            result["verdict"] = "undecided"
    open_ones = sum(result["verdict"] not in _DECIDED_3 for result in results)
    kept = {name: value for name, value in gate.items() if name != "budget"}
    return kept | {"max_looks": gate.get("budget"), "undecided": open_ones}


_STEPS: dict[str, dict[int, Callable[[Json], Json]]] = {
    "options": {1: _options_to_2, 2: _options_to_3},
    "gate": {1: _gate_to_2, 2: _gate_to_3},
    "comparison": {1: _comparison_to_2},
}
"""The step from each version to the next one, for the documents that it changed."""

_SORTED = {"options": orjson.OPT_SORT_KEYS}
"""Equal options have equal bytes."""
