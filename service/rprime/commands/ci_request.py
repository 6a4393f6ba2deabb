"""What a command submits: evidence, a baseline and gates from files, as one request."""

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from rprime.application import EvaluationRequest, read_request
from rprime.commands.evidence_files import ColumnFile, read_evidence
from rprime.commands.exit_status import refuse, refuse_here
from rprime.commands.inputs import STDIN
from rprime.commands.mappings import read_gates, read_mapping
from rprime.commands.options import settings
from rprime.core.published import Json
from rprime.evidence import read_columns, read_members
from rprime.evidence.reader import MEMBERS
from rprime.problems.problem import Problem
from rprime.settings import Limits

_SLICE = re.compile(r"(?:([^=(),]+)=)?\s*(?:cut\(([^(),]+),([^()]+)\)|([^=(),]+))")
_REFERENCE = re.compile(
    r"(?:(alias|version|branch|evaluation)=(.+?)|(latest))((?:,(?:model|project)=[^,=]+)*)"
)


class JsonRequest(NamedTuple):
    """A request as the service takes it."""

    body: bytes

    def read(self, limits: Limits) -> EvaluationRequest:
        """Read it; a `Problem` says what is wrong with it."""
        return read_request(self.body, limits)

    @property
    def members(self) -> Json:
        """The rest of the request, the baseline included."""
        content = orjson.loads(self.body)
        return {name: value for name, value in content.items() if name not in MEMBERS}


class ColumnFileRequest(NamedTuple):
    """A request whose items are columns of files."""

    candidate: ColumnFile
    members: Json
    """The rest of the request; `labels` may be there."""
    baseline: ColumnFile | None = None
    """Other predictions for the same items, or evidence with true labels of its own."""

    def read(self, limits: Limits) -> EvaluationRequest:
        """Read it; a `Problem` says what is wrong with it."""
        request = written(self.members)
        with ExitStack() as files:
            candidate, *others = (files.enter_context(file.opened()) for file in self.files)
            baseline = others[0] if others else None
            document = read_columns(*candidate, request, local(limits), baseline=baseline)
        return read_request(document, limits)

    def place_of(self, pointer: str) -> str:
        """Return the file, and of CSV the line, of the item that a JSON pointer names."""
        name, *others = pointer.split("/")[1:] or [""]
        if name == "confusion_matrix":
            return self.candidate.name
        if name in self.members or not others or not others[-1].isdigit():
            return ""
        return self.files[-1 if name == "baseline" else 0].place_of(int(others[-1]))

    @property
    def files(self) -> list[ColumnFile]:
        """The files to read."""
        return [file for file in (self.candidate, self.baseline) if file is not None]


class CiRequest(NamedTuple):
    """A request, and what only a service with a history can answer in it."""

    request: JsonRequest | ColumnFileRequest
    kept_there: Mapping[str, Any]
    """Members that are sent besides: a stored baseline, where the evaluation belongs."""
    baseline: str | None
    """What it is compared with, in words."""
    origin: Mapping[str, Any]
    """Where it belongs, for renderings."""


def assemble(
    file: str,
    *more: str,
    baseline: str | None = None,
    gates: Path | None = None,
    request: Path | None = None,
    origin: Mapping[str, Any] | None = None,
    engine: str | None = None,
    chosen: Mapping[str, Any] | None = None,
) -> CiRequest:
    """Put a request together.

    Parameters
    ----------
    file, *more
        The evidence; several files where an engine opens them.
    baseline
        A file with evidence, or with only other predictions; a stored one, as `alias=main`; or a
        constant classifier, as `constant=majority`.
    gates, request
        Files with rules, and with further members of the request.
    origin
        Where the evaluation belongs, by names of the contract.
    chosen
        Members of the request that options stand for, as `chosen_members` returns them.
    """
    files = [file, *more]
    if more and engine is None:
        refuse(
            "several files are counted by --engine; without one, give a single file, and what it "
            "is compared with as --baseline FILE"
        )
    members = read_mapping(request, "members of a request") if request else {}
    if "rules" in members:
        refuse(f"{request} holds the rules of a gate: name it by --gates")
    if gates is not None:
        _add(members, "gates", read_gates(gates), str(gates))
    reference = reference_of(baseline)
    kept = {name: value for name, value in (origin or {}).items() if value or value is False}
    if engine is not None:
        kept.setdefault("source", ", ".join(files)[:2048])  # the most that the contract allows
    provenance = dict(kept)
    if "project" in kept:
        # The reader, too, needs it: the anchor of a gate belongs to a project.
        _add(members, "project", kept.pop("project"), "--project")
    if reference:
        _add(kept, "baseline", reference, str(baseline))
    constant = constant_of(baseline)
    if constant:
        _add(members, "baseline", constant, str(baseline))
    other = None if reference or constant else baseline
    options = {
        "slice_cuts": "--slice",
        "slice_crossings": "--crossing",
        "gates": "--no-worse-than",
        "indices": "--index",
        "changed_items": "--changed",
    }
    for name, value in (chosen or {}).items():
        # What changes against a stored baseline is seen where it is stored.
        there = reference is not None and name == "changed_items"
        _add(kept if there else members, name, value, options.get(name, f"--{name}"))
    submitted = (
        _counted(files, other, members, engine) if engine else _request(file, other, members)
    )
    inline = isinstance(submitted, ColumnFileRequest) or "baseline" in members
    baseline_name = baseline or ("y_pred_baseline" if inline else None)
    return CiRequest(request=submitted, kept_there=kept, baseline=baseline_name, origin=provenance)


def reference_of(baseline: str | None) -> Json | None:
    """Read the name of a stored evaluation, as `version=7,model=svc,project=a`; None for a file."""
    match = _REFERENCE.fullmatch(baseline or "")
    if match is None:
        return None
    by, name, _, beside = match.groups()
    named = dict(pair.split("=", 1) for pair in beside.split(",")[1:])
    return {by or "latest": name or True, **named}


def constant_of(baseline: str | None) -> Json | None:
    """Read the name of a constant classifier, as `constant=majority`; None for any other side."""
    name, sign, kind = (baseline or "").partition("=")
    return {name: kind} if sign and name == "constant" else None


def _request(file: str, baseline: str | None, members: Json) -> JsonRequest | ColumnFileRequest:
    if baseline is not None and baseline != STDIN and not Path(baseline).exists():
        named = baseline if ":" in baseline else f"alias:{baseline}"
        hint = f"; a stored evaluation is named as {named.replace(':', '=', 1)}"
        refuse(f"there is no file {baseline}{'' if '.' in baseline else hint}")
    candidate = read_evidence(file)
    other = None if baseline is None else read_evidence(baseline)
    if isinstance(candidate, ColumnFile) and not isinstance(other, bytes):
        if other is not None and "baseline" in members:
            refuse(f"{baseline}: there is a `baseline` already")
        return ColumnFileRequest(candidate, members, other)
    reading: Json = {n: members[n] for n in ("columns", "slice_cuts") if n in members}
    if isinstance(candidate, bytes):
        _name_slices(candidate, file, members)
        if isinstance(other, ColumnFile):
            members.pop("columns", None)
    if other is not None:
        part = _members(other, reading) if isinstance(other, ColumnFile) else other
        _add(members, "baseline", _fragment(part, str(baseline)), str(baseline))
    if isinstance(candidate, bytes):
        return JsonRequest(splice(candidate, members))
    if isinstance(other, bytes) and not _is_evidence(other):
        # JSON predictions of items that are columns: all of it becomes JSON.
        members.pop("columns", None)
        return JsonRequest(splice(_members(candidate, reading), members))
    return ColumnFileRequest(candidate, members)


def _name_slices(body: bytes, file: str, members: Json) -> None:
    """Leave it to a JSON request which slices it has; refuse to choose others."""
    columns = members.pop("columns", {})
    chosen = {name for name in columns if name.startswith("slice:")}
    if others := {name: columns[name] for name in columns if name not in chosen}:
        members["columns"] = others
    content = orjson.loads(body) if chosen and _fragment(body, file) else {}
    there = content.get("slices") or {} if isinstance(content, dict) else {}
    for name in sorted(chosen):
        if name.removeprefix("slice:") not in there:
            refuse(f"{file} is JSON, and its `slices` do not have what {name} chooses")


def _is_evidence(body: bytes) -> bool:
    """Whether a JSON baseline has items or a table of its own."""
    content = orjson.loads(body)
    is_prediction = isinstance(content, dict) and not {"y_pred", "y_score"}.isdisjoint(content)
    return not is_prediction or "y_true" in content


def local(limits: Limits) -> Limits:
    """Return limits for files, which may use all memory."""
    return limits.model_copy(update={"other_body_bytes": 2**62})


def _members(file: ColumnFile, members: Mapping[str, Any]) -> bytes:
    """Return the columns of a file as JSON, to stand within JSON."""
    try:
        with file.opened() as source:
            content = read_members(*source, local(settings().limits), members)
    except Problem as problem:
        refuse_here(problem, file.name)
    return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)


def _counted(files: Sequence[str], baseline: str | None, members: Json, engine: str) -> JsonRequest:
    """Let an engine count the items."""
    from rprime.commands.tallies import COUNTED_BY, read_tables

    candidate, *others = read_tables(files, engine, members)
    for other in others:
        _add(members, "baseline", _fragment(other, files[0]), f"{files[0]}, y_pred_baseline")
    if baseline is not None:
        other, *_ = read_tables([baseline], engine, members)
        _add(members, "baseline", _fragment(other, baseline), baseline)
    for name in COUNTED_BY:
        members.pop(name, None)
    return JsonRequest(splice(candidate, members))


def splice(body: bytes, members: Mapping[str, Any]) -> bytes:
    """Add members to an object without touching what is there.

    So the reader still sees, and refuses, a name that stands twice; and a body that is no object
    stays as it is, for the reader to say so.
    """
    try:
        content = orjson.loads(body) if members else None
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, dict):
        return body
    return body.rstrip()[:-1] + (b"," if content else b"") + written(members)[1:]


def written(members: Mapping[str, Any]) -> bytes:
    """Return members of a request as JSON."""
    try:
        return orjson.dumps(dict(members))
    except TypeError as error:
        refuse(f"a value has no JSON: {error}")


_OF_COMPARISONS = ("baseline", "gates", "changed_items")


def comparison_body(body: bytes) -> bytes:
    """Turn a request to evaluate against a baseline into one to compare."""
    content = orjson.loads(body)
    comparison = {name: content.pop(name) for name in _OF_COMPARISONS if name in content}
    side = MEMBERS | {"test_set"}
    comparison["candidate"] = {name: content.pop(name) for name in side if name in content}
    return orjson.dumps(comparison | ({"options": content} if content else {}))


def _add(members: Json, name: str, value: object, source: str) -> None:
    if name in members:
        refuse(f"{source}: there is a `{name}` already")
    members[name] = value


def _fragment(part: bytes, file: str) -> object:
    """Return evidence as a part of a larger document."""
    try:
        orjson.loads(part)
    except orjson.JSONDecodeError as error:
        refuse(f"{file} is not valid JSON: line {error.lineno}, column {error.colno}")
    return orjson.Fragment(part)


def custom_member(custom: list[str] | None) -> Json:
    """Return the member with indices of one's own, each given as NAME=EXPR; none without any."""
    pairs = [text.partition("=") for text in custom or ()]
    if not all(equals for _, equals, _ in pairs):
        refuse("--custom is NAME=EXPR, as cost=\"cells['fraud', 'ok'] / items\"")
    return {"custom": {name.strip(): text.strip() for name, _, text in pairs}} if pairs else {}


def chosen_members(
    columns: str | None,
    slices: Sequence[str] | None,
    crossings: Sequence[str] | None = None,
    population: str | None = None,
    *,
    count: str | None = None,
    option: str = "--slice",
) -> Json:
    """Return the members of a request that options stand for; `option` is that of the slices.

    Parameters
    ----------
    columns
        The columns to read, as `y_true=label,y_pred=prediction`; None: all.
    slices
        Columns, as `region` or `age_band=cut(age, 18, 30, 50)`.
    crossings
        Names of slices that are combined, as `region,age_band`.
    population
        A file, `uniform` or JSON.
    count
        The column of counts of a table in long form.
    """
    pairs = [part.strip().partition("=") for part in (columns or "").split(",") if part.strip()]
    read = {name.strip(): (source if sign else name).strip() for name, sign, source in pairs}
    if len(read) < len(pairs):
        refuse("--columns: a column is named twice")
    if count is not None:
        _add(read, "count", count, "--count")
    cuts: dict[str, int | list[float]] = {}
    for text in slices or ():
        match = _SLICE.fullmatch(text.strip())
        if match is None:
            refuse(f"{option} {text}: a column is named as region, or as cut(age, 18, 30, 50)")
        name, source, edges, plain = (part and part.strip() for part in match.groups())
        name = name or source or plain
        if f"slice:{name}" in read:
            refuse(f"{option} {text}: there is a slice {name} already")
        read[f"slice:{name}"] = source or plain
        if edges is not None:
            cuts[name] = _cut(f"{option} {text}", edges)
    members = {
        "columns": read,
        "slice_cuts": cuts,
        "slice_crossings": [[part.strip() for part in each.split(",")] for each in crossings or ()],
        "population": population and _population(population),
    }
    return {name: value for name, value in members.items() if value}


def _cut(text: str, edges: str) -> int | list[float]:
    try:
        numbers = [float(edge) for edge in edges.split(",")]
    except ValueError:
        refuse(f"{text}: a cut is at numbers")
    alone = len(numbers) == 1 and numbers[0].is_integer() and "." not in edges
    return int(numbers[0]) if alone else numbers


def _population(text: str) -> Json:
    if text == "uniform":
        return {"prevalence": text}
    if text.lstrip().startswith("{"):
        try:
            population = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            refuse(f"--population is not valid JSON: {error}")
    elif Path(text).exists():
        population = read_mapping(Path(text), "a population")
    else:
        refuse(f"--population {text}: there is no such file; else it is uniform, or JSON")
    # Shares by class need no other name.
    return (
        population
        if {"prevalence", "strata", "shares"} & set(population)
        else {"prevalence": population}
    )
