"""An evaluation or a comparison, here or by a service, as a CI job needs it."""

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from typer import Argument, Option

from rprime.commands import options
from rprime.commands.exit_status import refuse
from rprime.commands.history_source import DEFAULT_STORE, HistorySource, StoreUrl, connect_or_end
from rprime.commands.options import ServiceOptions
from rprime.core.published import Json

if TYPE_CHECKING:
    from rprime.client.clients import Client
    from rprime.commands.evaluation import EvaluationOutcome
    from rprime.report.subject import ReportSubject


_origin = partial(Option, rich_help_panel="Where it belongs")


@options.with_output
@options.with_service
def evaluate(
    file: Annotated[
        list[str],
        Argument(
            metavar="FILE",
            help="CSV, Parquet or Arrow with the columns y_true, y_pred and optionally "
            "y_pred_baseline, sample_weight, item_id, group, score:<label>; NPZ with arrays of "
            "these names, or confusion_matrix and labels; a confusion matrix as CSV; or a request "
            "of POST /evaluate as JSON. "
            "It may end in .gz; - reads standard input. With --engine: any number of CSV or "
            "Parquet files, globs, folders or URIs, quoted.",
        ),
    ],
    *,
    engine: options.EngineOption = None,
    columns: options.ColumnsOption = None,
    count: options.CountOption = None,
    slice_: options.SlicesOption = None,
    crossing: options.CrossingsOption = None,
    population: options.PopulationOption = None,
    custom: options.CustomOption = None,
    baseline: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="What to compare with: a file as above, or one with other predictions (y_pred) "
            "for the same items; constant=majority, uniform or prior, which does not look at them; "
            "or a stored evaluation, as alias=NAME, version=, branch=, latest or evaluation=; "
            "version=7,model=NAME is one of another model.",
        ),
    ] = None,
    gates: options.GatesOption = None,
    no_worse_than: Annotated[
        float | None,
        Option(
            metavar="DROP",
            help="A gate without a file: against the baseline, accuracy drops by at most DROP, as "
            ".02, and the recall of the classes by at most 0.1. In a project with the alias "
            "`agreed`, this holds against that evaluation, too.",
        ),
    ] = None,
    index: Annotated[
        list[str] | None,
        Option(
            metavar="KEY",
            help="An index to show in place of the summary, as r_prime; can be repeated. "
            "`rprime indices` lists them.",
        ),
    ] = None,
    request: options.RequestOption = None,
    strict: options.Strict = False,
    first: Annotated[
        bool,
        Option(
            "--first",
            help="End with 0 where there is no baseline yet, as the first evaluation of a model "
            "in its project does by itself.",
        ),
    ] = False,
    service: ServiceOptions | None,
    table_only: options.TableOnly = False,
    project: Annotated[str | None, _origin(help="Keep the evaluation in this project.")] = None,
    model: Annotated[str | None, _origin(help="Name of the model.")] = None,
    version: Annotated[str | None, _origin(help="Version of the model.")] = None,
    branch: Annotated[str | None, _origin(help="Branch of the repository.")] = None,
    commit: Annotated[str | None, _origin(help="Commit of the repository.")] = None,
    tag: Annotated[list[str] | None, _origin(help="A word to find it by; can be repeated.")] = None,
    source: Annotated[str | None, _origin(help="Address of the run, for people.")] = None,
    keep_items: Annotated[
        bool | None,
        _origin(
            "--keep-items/--no-keep-items",
            help="Keep what was predicted for each item, for paired comparison later; default: "
            "where items are sent.",
        ),
    ] = None,
    table: Annotated[
        bool, Option("--table", help="Add the table to the JSON.", rich_help_panel="Output")
    ] = False,
    output: options.Output,
) -> None:
    """Evaluate a classifier: print the report, and end with the verdict of the gate.

    It ends with:

    0 where the gate passes or nothing is demanded, where it is inconclusive, said loudly, and for
    the first evaluation of a model

    1 where the gate fails

    2 for bad input or usage

    3 where a result is undecided, the gate is inconclusive, or there is none, under --strict

    4 where the service gives no answer

    5 where the gate could not be judged, as without a baseline
    """
    names = {"project": project, "model": model, "version": version, "branch": branch}
    origin = names | {"commit": commit, "tags": tag, "source": source, "keep_items": keep_items}
    from rprime.commands.ci_request import assemble, chosen_members, custom_member
    from rprime.commands.evaluation import run
    from rprime.commands.renderings import changed_member, conclude

    chosen = chosen_members(columns, slice_, crossing, population, count=count)
    chosen |= changed_member(output) | custom_member(custom)
    if index:
        chosen["indices"] = index
    if no_worse_than is not None:
        if gates is not None:
            refuse("--no-worse-than is a gate of its own: give it or --gates, not both")

        chosen["gates"] = first_gate(no_worse_than, service, project)
    ci_request = assemble(
        *file,
        baseline=baseline,
        gates=gates,
        request=request,
        origin=origin,
        engine=engine,
        chosen=chosen,
    )
    outcome = run(ci_request, service, table=table, table_only=table_only)
    conclude(outcome, output, gates, strict=strict, first=first)


@options.with_output
@options.with_service
def compare(
    candidate: Annotated[
        str,
        Argument(
            help="The new one: a file as `rprime evaluate` takes it, or a stored evaluation as "
            "evaluation=ID or, with --project, alias=NAME, version=, branch= or latest; "
            "version=7,model=NAME is one of this model."
        ),
    ],
    baseline: Annotated[
        str,
        Argument(
            help="What it is compared with: such a file, or one with other predictions (y_pred) "
            "for the same items; or constant=majority, uniform or prior; or a stored evaluation, "
            "named in the same way."
        ),
    ],
    *,
    project: Annotated[str | None, Option(help="Whose evaluations are named.")] = None,
    columns: options.ColumnsOption = None,
    count: options.CountOption = None,
    slice_: Annotated[
        list[str] | None,
        Option(
            "--slice",
            metavar="COLUMN",
            help="Of files: as for `rprime evaluate`. Of stored evaluations: compare this slice "
            "only, as region=EU; repeated, a crossing.",
        ),
    ] = None,
    crossing: options.CrossingsOption = None,
    population: options.PopulationOption = None,
    custom: options.CustomOption = None,
    gates: options.GatesOption = None,
    request: options.RequestOption = None,
    strict: options.Strict = False,
    service: ServiceOptions | None,
    store: StoreUrl = DEFAULT_STORE,
    table_only: options.TableOnly = False,
    output: options.Output,
) -> None:
    """Compare a candidate with a baseline; every difference is candidate minus baseline.

    Ends as `rprime evaluate` does. With --json it prints what POST /v1/compare answers.
    """
    with ExitStack() as connections:
        from rprime.commands.ci_request import (
            assemble,
            chosen_members,
            constant_of,
            custom_member,
            reference_of,
        )
        from rprime.commands.evaluation import run
        from rprime.commands.history import slice_member
        from rprime.commands.mappings import read_gates, read_mapping
        from rprime.commands.renderings import changed_member, conclude

        new = reference_of(_in_project(candidate, project))
        if new is None and service is not None:
            # A stored candidate has a project, in which its baseline is looked up.
            baseline = _in_project(baseline, project)
        old = reference_of(baseline) or constant_of(baseline)
        if new is None:
            chosen = chosen_members(columns, slice_, crossing, population, count=count)
            chosen |= changed_member(output) | custom_member(custom)
            ci_request = assemble(
                candidate, baseline=baseline, gates=gates, request=request, chosen=chosen
            )
            outcome = run(ci_request, service, compares=True, table_only=table_only)
        elif old is None:
            refuse(f"a stored evaluation is compared with another one; {baseline} names none")
        elif columns or count or crossing or population or custom:
            refuse("--columns, --count, --crossing, --population and --custom are about files")
        elif output.changed is not None:
            refuse("--changed needs a file with item_id on one side: a store keeps no texts of ids")
        else:
            client = connections.enter_context(HistorySource(service, store).client())
            comparison = {"candidate": new, "baseline": old, **slice_member(slice_)}
            if gates is not None:
                comparison["gates"] = read_gates(gates)
            if request is not None:
                comparison["options"] = read_mapping(request, "members of a request")
            outcome = _stored(client, comparison, baseline)
        conclude(outcome, output, gates, strict=strict)


def _in_project(side: str, project: str | None) -> str:
    """Name the project of a stored evaluation, which an id does not need."""
    from rprime.commands.ci_request import reference_of

    reference = reference_of(side)
    if reference is None or not {"evaluation", "project"}.isdisjoint(reference):
        return side
    if project is None:
        refuse(f"{side} is looked up in a project: name it by --project")
    return f"{side},project={project}"


def _stored(client: "Client", comparison: Json, baseline: str) -> "EvaluationOutcome":
    """Compare two stored evaluations; `baseline` is what the second one is called."""
    from rprime.application.report_subject import request_of_report, subject_of_report
    from rprime.client import calls
    from rprime.commands.evaluation import EvaluationOutcome, answered, details

    answer = client.ask(calls.comparison(orjson.dumps(comparison)))

    def subject() -> "ReportSubject":
        of: Any = {"slice": comparison["slice"]} if "slice" in comparison else {}
        candidate = answer.model.candidate
        assert candidate is not None  # noqa: S101 (it is stored)
        assert candidate.resolved is not None  # noqa: S101 (as above)
        report = client.evaluation(candidate.resolved, table=True, **of).model
        if answer.model.population is None:
            report = report.model_copy(update={"population": None})
        # The warnings of the report are those of its own comparison and gate, too.
        evaluation = request_of_report(report).evaluate()
        shown = replace(subject_of_report(report, evaluation), baseline=baseline)
        return answered(shown, evaluation, answer)

    judged, undecided = answer.judged, answer.undecided
    missing = details(answer.warnings, "no_baseline")
    return EvaluationOutcome(answer.content, answer.verdict, judged, undecided, subject, missing)


AGREED = "agreed"
"""The alias that is the anchor, where the project has it."""
_CLASS_DROP = 0.1


def first_gate(drop: float, service: ServiceOptions | None, project: str | None) -> Json:
    """Return gates that allow this drop in accuracy, and a drop in the recall of the classes.

    A class has fewer items than the test set, so its limit is 0.1, or `drop` if that is larger.
    """
    if not 0 < drop < 1:
        refuse(f"--no-worse-than {drop:g}: it is the drop allowed in accuracy, as .02 for 2 points")
    rules = rules_of(drop, max(drop, _CLASS_DROP))
    anchored = service is not None and project is not None and _is_agreed(service, project)
    return {"rules": rules} | ({"anchor": {"alias": AGREED}} if anchored else {})


def rules_of(drop: float, class_drop: float) -> list[Json]:
    """Return rules that allow this drop in accuracy, and this one in the recall of the classes."""
    return [
        {"index": "accuracy", "max_drop": drop},
        {"index": "recall", "classes": "all", "max_drop": class_drop},
    ]


def _is_agreed(service: ServiceOptions, project: str) -> bool:
    from rprime.client.errors import ProblemError

    with connect_or_end(service) as client:
        try:
            client.alias(project, AGREED)
        except ProblemError as problem:
            if problem.status != HTTPStatus.NOT_FOUND:
                raise
            return False
    return True
