"""The history from a terminal or a job: what there is, how it went, and which version is best."""

import json
from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Option, Typer

from rprime.commands import options
from rprime.commands.exit_status import put, refuse, say
from rprime.commands.history_source import (
    HistorySource,
    Project,
    absent,
    newest,
    page,
    with_history,
)
from rprime.core.quantities import conditions
from rprime.report.text import count, decimal, isolated, shown, signed, span

if TYPE_CHECKING:
    from pydantic import BaseModel

    from rprime.client.clients import Client
    from rprime.schemas.history import Trend, TrendItem

DEFAULT_INDEX = "r_prime"
app = Typer(help="List stored evaluations, show one, follow an index, rank versions.")

AnyProject = Annotated[str | None, Option("--project", help="Whose evaluations.")]
Model = Annotated[str | None, Option(help="Of this model.")]
VersionOption = Annotated[str | None, Option(help="Of this version.")]
Branch = Annotated[str | None, Option(help="Of this branch.")]
Commit = Annotated[str | None, Option(help="Of this commit, in full.")]
IndexOption = Annotated[str, Option(help="Key of the index.")]
ClassOption = Annotated[str | None, Option("--class", help="Of this class.")]
SliceOption = Annotated[
    list[str] | None,
    Option(
        "--slice",
        metavar="COLUMN=VALUE",
        help="Of this slice, as region=EU; repeated, of a crossing.",
    ),
]
Limit = Annotated[int, Option(min=1, max=200, help="At most so many.")]


@app.callback(invoke_without_command=True)
@with_history
def list_(
    ctx: Context,
    *,
    project: AnyProject = None,
    model: Model = None,
    version: VersionOption = None,
    branch: Branch = None,
    commit: Commit = None,
    verdict: Annotated[str | None, Option(help="With this verdict.")] = None,
    tag: Annotated[str | None, Option(help="With this tag.")] = None,
    index: Annotated[
        list[str] | None,
        Option(help="Key of an index to show, by default r_prime; can be repeated."),
    ] = None,
    limit: Limit = 20,
    as_json: Annotated[bool, Option("--json", help="One line of JSON for each.")] = False,
    history: HistorySource,
) -> None:
    """List the evaluations of a project, newest first, each with values of indices."""
    if ctx.invoked_subcommand is not None:
        return
    if project is None:
        refuse("name the --project, or a command: `rprime history --help` lists them")
    filters: Any = {"model": model, "version": version, "branch": branch, "commit": commit}
    filters |= {"verdict": verdict, "tag": tag}
    with history.client() as client:
        evaluations = page(
            client,
            project,
            limit,
            filters | {"index": index or (None if as_json else DEFAULT_INDEX)},
        )
    if as_json:
        for evaluation in evaluations:
            put(evaluation.model_dump_json(exclude_unset=True).encode() + b"\n")
        return
    if not evaluations:
        say(f"{project} has no such evaluation")
        return
    keys = [key.upper() for key in evaluations[0].values]
    head = ("CREATED", "MODEL", "VERSION", "BRANCH", "COMMIT", *keys, "VERDICT", "ID")
    rows = []
    for evaluation in evaluations:
        names = (
            evaluation.model,
            evaluation.version,
            evaluation.branch,
            (evaluation.commit or "")[:12],
        )
        verdict = f"{evaluation.verdict or '-'}{' (waived)' if evaluation.waived else ''}"
        rows.append(
            (
                _moment(evaluation),
                *names,
                *map(_value, evaluation.values.values()),
                verdict,
                evaluation.id,
            )
        )
    print_rows(head, rows)


@app.command(epilog=options.example("rprime history show --project digits --version 12"))
@with_history
def show(
    evaluation: Annotated[str | None, Argument(help="Its id; else the newest match.")] = None,
    *,
    project: AnyProject = None,
    model: Model = None,
    version: VersionOption = None,
    branch: Branch = None,
    commit: Commit = None,
    slice_: SliceOption = None,
    as_json: options.AsJson = False,
    history: HistorySource,
) -> None:
    """Print the report on an evaluation: by its id, or the newest of a version or a commit."""
    from rprime.report.terminal import render_terminal

    of: Any = slice_member(slice_)
    with history.client() as client:
        if evaluation is None:
            if project is None:
                refuse("name an id, or the --project and what is known, such as --commit")
            names = {"model": model, "version": version, "branch": branch, "commit": commit}
            evaluation = newest(client, project, names)
        report = client.evaluation(evaluation, table=True, **of)
    if as_json:
        put(report.content)
        return
    put(render_terminal(report.subject()).encode())
    if report.weakest:
        key = report.weakest_by
        rows = []
        for part in (report.slices[place] for place in report.weakest):
            name = conditions(part.slice)
            value, difference = part.overall.root[key], part.difference_to_rest[key].value
            rows.append((name, count(part.items), _value(value), _span(value), signed(difference)))
        print_rows(("SLICE, WEAKEST FIRST", "ITEMS", key.upper(), "INTERVAL", "TO THE REST"), rows)


@app.command(
    epilog=options.example("rprime history trend --project digits --index recall --class 7")
)
@with_history
def trend(
    *,
    project: Project,
    index: IndexOption = DEFAULT_INDEX,
    class_: ClassOption = None,
    slice_: SliceOption = None,
    model: Model = None,
    branch: Branch = None,
    limit: Limit = 50,
    as_json: options.AsJson = False,
    history: HistorySource,
) -> None:
    """Print an index over the evaluations, oldest first, and where and why it fell most."""
    query: Any = {"class_": class_, "model": model, "branch": branch, "limit": limit}
    of: Any = slice_member(slice_)
    with history.client() as client:
        series = client.trend(project, index, **query, **of)
        if as_json:
            _put(series)
            return
        head = ("CREATED", "MODEL", "VERSION", "VALUE", "INTERVAL", "SINCE ANCHOR", "VERDICT", "ID")
        rows = []
        for item in series.items:
            numbers = (_value(item), _span(item), signed(item.since_anchor))
            rows.append(
                (_moment(item), item.model, item.version, *numbers, item.verdict, item.evaluation)
            )
        print_rows(head, rows)
        _explain(client, series, of)


@app.command(epilog=options.example("rprime history leaderboard --project digits --index macro_f1"))
@with_history
def leaderboard(
    *,
    project: Project,
    index: IndexOption = DEFAULT_INDEX,
    class_: ClassOption = None,
    slice_: SliceOption = None,
    test_set: Annotated[str | None, Option(help="Default: that of the newest.")] = None,
    model: Model = None,
    branch: Branch = None,
    limit: Annotated[int, Option(min=1, max=50, help="The best so many.")] = 20,
    as_json: options.AsJson = False,
    history: HistorySource,
) -> None:
    """Rank the versions in tiers: those of one tier cannot be told apart."""
    query: Any = {"class_": class_, "test_set": test_set, "model": model, "branch": branch}
    query |= slice_member(slice_)
    with history.client() as client:
        ranking = client.leaderboard(project, index, limit=limit, **query)
    if as_json:
        _put(ranking)
        return
    rows = (
        (str(tier.tier), entry.model, entry.version, _value(entry), _span(entry), entry.evaluation)
        for tier in ranking.tiers
        for entry in tier.versions
    )
    print_rows(("TIER", "MODEL", "VERSION", "VALUE", "INTERVAL", "ID"), rows)
    for tier in ranking.tiers:
        _say(f"Tier {tier.tier}: {shown(tier.why)}")
    if test_set is None:
        _say("Only evaluations on the newest test set are ranked; --test-set chooses another one.")
    for left in ranking.unranked:
        _say(f"Not ranked: {_name(left)}, {left.reason}")


@app.command(epilog=options.example("rprime history purge --project digits --keep-last 20"))
@with_history
def purge(
    *,
    project: Project,
    keep_last: Annotated[int | None, Option(help="Keep so many of each model.")] = None,
    newer_than_days: Annotated[float | None, Option(help="Keep younger ones.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only count.")] = False,
    history: HistorySource,
) -> None:
    """Delete what no criterion keeps; an alias always protects its evaluation."""
    kept: Any = {"keep_last": keep_last, "newer_than_days": newer_than_days}
    with history.client(read_only=dry_run) as client:
        answer = client.purge(project, dry_run=dry_run, **kept)
    what = "would be deleted" if dry_run else "deleted"
    say(f"{answer.deleted} {what}, {answer.kept} kept, {answer.aliased} of them only for an alias")


@with_history
def promote(
    evaluation: Annotated[
        str, Argument(help="Its id, or the report that --json-file of `evaluate` wrote.")
    ],
    alias: Annotated[str, Argument(help="Such as champion.")],
    *,
    project: Project,
    if_absent: Annotated[
        bool, Option("--if-absent", help="Set the alias, but never move it.")
    ] = False,
    if_passed: Annotated[
        bool, Option("--if-passed", help="Only if the gate of the evaluation passed.")
    ] = False,
    force: Annotated[bool, Option("--force", help="Also an evaluation whose gate failed.")] = False,
    history: HistorySource,
) -> None:
    """Point an alias at an evaluation, unless somebody else does so at the same time.

    It ends with 0, too, where --if-absent or --if-passed leaves the alias as it is. An evaluation
    whose gate failed is refused without --force.
    """
    identifier = _id_of(evaluation)
    with history.client(read_only=False) as client:
        with absent(f"there is no such evaluation: {identifier}"):
            verdict = client.evaluation(identifier).verdict or "no_gate"
        failed = verdict == "fail" and not force
        if if_passed and verdict != "pass":
            say(f"{_unmoved(client, project, alias)}: the verdict is {verdict}")
        elif failed and if_absent:
            say(f"{_unmoved(client, project, alias)}: --if-absent takes no failed evaluation")
        elif failed:
            refuse(f"the gate of {identifier} failed; --force points {alias} at it all the same")
        elif point(client, project, alias, identifier, if_absent=if_absent):
            say(f"{alias} of {project} points at {identifier}")
        else:
            say(f"{alias} of {project} is set already and stays as it is")


def _unmoved(client: "Client", project: str, alias: str) -> str:
    """Say that an alias stays as it is, or that it does not exist and what sets it."""
    from rprime.client.calls import Call, path_of
    from rprime.client.errors import ProblemError

    path = path_of("projects", project, "aliases", alias)
    try:
        client.ask(Call("GET", path, lambda *_: None))
    except ProblemError as problem:
        if problem.status != HTTPStatus.NOT_FOUND:
            raise
        return f"{alias} of {project} is not set (--if-absent sets it)"
    return f"{alias} of {project} stays as it is"


def _id_of(evaluation: str) -> str:
    """Return the id; a path is one of a report."""
    if not evaluation.endswith(".json"):
        return evaluation
    try:
        identifier: object = json.loads(Path(evaluation).read_bytes()).get("id")
    except OSError as error:
        refuse(f"cannot read {evaluation}: {error.strerror}")
    except (ValueError, AttributeError):
        refuse(f"{evaluation} is no report")
    if not isinstance(identifier, str):
        refuse(f"{evaluation} has no id: its evaluation was not stored")
    return identifier


def point(client: "Client", project: str, alias: str, evaluation: str, *, if_absent: bool) -> bool:
    """Set an alias; return False where it is set already and must not be moved."""
    from rprime.client.errors import ProblemError

    current = None
    if not if_absent:
        try:
            current = client.alias(project, alias)
        except ProblemError as problem:
            if problem.status != HTTPStatus.NOT_FOUND:
                raise
    try:
        client.promote(project, alias, evaluation, replaces=current)
    except ProblemError as problem:
        if not if_absent or problem.code != "precondition_failed":
            raise
        return False
    return True


def _explain(client: "Client", series: "Trend", of: Any) -> None:  # noqa: ANN401 (a slice)
    """Say after which evaluation the index fell most, and by which predictions."""
    from rprime.core.catalog import find
    from rprime.report.changed_predictions import changed_predictions

    label = series.class_
    entry = find("overall" if label is None else "class", series.index)
    upward = None if entry is None else entry.higher_is_better
    falls = [
        (abs(change), change, before, after)
        for change, before, after in _steps(series.items)
        if upward is not None and change and (change < 0) == upward
    ]
    if not falls:
        return
    _, change, before, after = max(falls, key=itemgetter(0))
    _say(f"It got worse most from {_name(before)} to {_name(after)}: {signed(change)}")
    sides: Any = ({"evaluation": after.evaluation}, {"evaluation": before.evaluation})
    compared = client.compare(*sides, **of).comparison
    for changed in changed_predictions(None if compared is None else compared.model):
        rows = [
            (*(name or "unclassified" for name in names), *numbers)
            for names, numbers in changed.rows
            if label is None or shown(label) in names
        ]
        if rows:  # tables of slices have no rows of a class
            print_rows(tuple(map(str.upper, (*changed.names, *changed.numbers))), rows[:5])


def _steps(items: "list[TrendItem]") -> "Iterator[tuple[float, TrendItem, TrendItem]]":
    """Yield each change of the value from one evaluation of a model to its next."""
    last: dict[str | None, tuple[float, TrendItem]] = {}
    for item in items:
        if item.value is not None:
            if item.model in last:
                value, before = last[item.model]
                yield item.value - value, before, item
            last[item.model] = item.value, item


def slice_member(names: Sequence[str] | None) -> dict[str, dict[str, str]]:
    """Return the slice that `--slice` names as a member of a request; none without one."""
    from pydantic_core import PydanticCustomError

    from rprime.schemas.population import read_slice

    try:
        return {"slice": dict(read_slice(names))} if names else {}
    except PydanticCustomError as error:
        refuse(f"--slice {' '.join(names or ())}: {error}")


def _moment(item: Any) -> str:  # noqa: ANN401 (a summary or a step)
    return f"{item.created_at:%Y-%m-%d %H:%M}Z"


def _name(item: Any) -> str:  # noqa: ANN401 (a step or a version that is not ranked)
    from rprime.report.subject import evaluation_name
    from rprime.store.ids import created_at

    return shown(evaluation_name(item.model, item.version, created_at(item.evaluation)))


def _value(item: Any) -> str:  # noqa: ANN401 (any item with a value)
    return decimal(None if item is None else item.value)


def _span(item: Any) -> str:  # noqa: ANN401 (any item with an interval)
    return span(*(item.interval or (None, None)))


def print_rows(head: Sequence[str], rows: Iterable[Sequence[str | None]]) -> None:
    """Print columns side by side, a dash for what is missing."""
    table = [tuple(head), *(tuple(isolated(shown(c or "-")) for c in row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        _say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))


def _say(text: str) -> None:
    put(f"{text.rstrip()}\n".encode())


def _put(answer: "BaseModel") -> None:
    put(answer.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
