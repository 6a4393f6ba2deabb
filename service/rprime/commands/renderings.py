"""The outcome, where people and jobs look for it: terminal, files, annotations, job summary."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import orjson
from rich.console import Console
from typer import Exit

from rprime.commands.evaluation import EvaluationOutcome
from rprime.commands.exit_status import Status, attempting, put, put_error, say
from rprime.commands.mappings import rule_places
from rprime.commands.options import Output
from rprime.core.quantities import plural
from rprime.report.annotations import render_annotations
from rprime.report.csv import field
from rprime.report.formats import BY_NAME
from rprime.report.measures import Measures
from rprime.report.subject import ReportSubject
from rprime.report.terminal import Terminal, render_terminal

_LOUD = {
    None: "NO GATE: no rules were given, so nothing was decided; this is no pass.",
    "fail": "GATE FAILED.",
    "no_baseline": "NOT JUDGED: there is no baseline; this is no pass.",
    "inconclusive": "INCONCLUSIVE: the gate neither passed nor failed; this is no pass.",
    "no_rules": "NO RULES: the gate has none, so nothing was decided; this is no pass.",
}


def conclude(
    outcome: EvaluationOutcome,
    output: Output,
    gates: Path | None,
    *,
    strict: bool,
    first: bool = False,
) -> NoReturn:
    """Print and write what was asked for, and end with the status of the verdict.

    Annotations stand at the rules in the file of gates. `first` says that no baseline is expected.
    """
    paths = {name: path for name, path in output.files.items() if path is not None}
    files = [(path, BY_NAME[name].render(outcome.subject)) for name, path in paths.items()]
    if output.changed is not None:
        files.append((output.changed, _changed(outcome)))
    if output.json_file is not None:
        files.append((output.json_file, outcome.content + b"\n"))
    for path, content in files:
        with attempting(f"write {path}"):
            path.write_bytes(content)
    _append("GITHUB_STEP_SUMMARY", lambda: BY_NAME["markdown"].render(outcome.subject) + b"\n")
    _append("GITHUB_OUTPUT", lambda: _outputs(outcome))
    if output.as_json:
        put(outcome.content + b"\n")
        for note in outcome.notes:
            say(note.detail)
    elif sys.stdout.isatty():
        Console().print(Terminal(outcome.subject))
    else:
        put(render_terminal(outcome.subject).encode())
    if output.annotations:
        _annotate(outcome.subject, gates, err=output.as_json)
    if outcome.verdict == "no_baseline":
        _end_without_baseline(outcome, first=first)
    _end(outcome, strict=strict)


def changed_member(output: Output) -> dict[str, bool]:
    """Return the member of a request that the output needs."""
    return {} if output.changed is None else {"changed_items": True}


def _changed(outcome: EvaluationOutcome) -> bytes:
    """Write the changed items as CSV, and say which are not in it."""
    changed = orjson.loads(outcome.content)["changed_items"]
    if changed is None:
        say("--changed: the items are not compared one by one, so that none is known to change")
    elif changed["left_out"]:
        say(f"--changed: the first {len(changed['items']):,} of {changed['total']:,} items")
    rows = [item.values() for item in (changed or {"items": []})["items"]]
    lines = (",".join(field(text or "") for text in row) for row in rows)
    return "".join(f"{line}\n" for line in ("item_id,y_true,was,is,change", *lines)).encode()


def _end_without_baseline(outcome: EvaluationOutcome, *, first: bool) -> NoReturn:
    """End with 0 for a first evaluation, else with the status of a gate that was not judged."""
    if outcome.first or first:
        why = outcome.first or "--first: no baseline is expected."
        say(f"FIRST, not judged. {why} This ends with 0, the next one with 5 without a baseline.")
    else:
        say(_LOUD["no_baseline"])
    if outcome.missing:
        put_error(f"  {outcome.missing}\n")
    raise Exit(Status.DONE if outcome.first or first else Status.NOT_JUDGED)


def _end(outcome: EvaluationOutcome, *, strict: bool) -> NoReturn:
    """End with the status of the verdict, and say loudly what is no pass."""
    status, verdict = Status.DONE, outcome.verdict
    if verdict == "fail":
        status = Status.FAILED if outcome.judged else Status.NOT_JUDGED
    elif strict and (verdict in _LOUD or outcome.undecided):
        status = Status.INCONCLUSIVE
    if status is Status.NOT_JUDGED:
        say("GATE FAILED, because it could not be judged: this says nothing about the model.")
    elif (verdict in _LOUD and (verdict or strict)) or outcome.undecided:
        counted = f"{plural(outcome.undecided, 'result')} undecided." if outcome.undecided else ""
        loud = _LOUD.get(verdict, "PASSED, with")
        strictly = "" if verdict == "fail" or strict else "It ends with 0 without --strict."
        say(" ".join(filter(None, (loud, counted, strictly))))
    raise Exit(status)


def _annotate(subject: ReportSubject, gates: Path | None, *, err: bool) -> None:
    places = {} if gates is None else rule_places(gates)
    for place in places.values():
        # GitHub knows files by their paths in the repository, wherever a step works.
        place["file"] = os.path.relpath(place["file"], os.environ.get("GITHUB_WORKSPACE"))
    text = render_annotations(subject, places)
    if err:
        put_error(text)
    else:
        put(text.encode())


def _append(variable: str, content: Callable[[], bytes]) -> None:
    """Append to a file of a job of GitHub Actions, where there is one."""
    if path := os.environ.get(variable):
        try:
            with Path(path).open("ab") as file:
                file.write(content())
        except OSError as error:
            say(f"cannot write to {path}, which {variable} names: {error.strerror}")


def _outputs(outcome: EvaluationOutcome) -> bytes:
    """Return the outputs for later steps of a job: verdict, id and first figures."""
    outputs: dict[str, object] = {"verdict": outcome.verdict, "evaluation": outcome.subject.id}
    outputs["undecided"] = outcome.undecided if outcome.verdict else None
    outputs |= {
        measure.index.key: measure.value for measure in Measures(outcome.subject).overall.values()
    }
    texts = {name: str(value) for name, value in outputs.items() if value is not None}
    # None of them may bring a line of its own.
    return "".join(f"{name}={''.join(texts[name].split())}\n" for name in texts).encode()
