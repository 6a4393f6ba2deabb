"""A comparison of two classifiers, here or by a service."""

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from rprime.commands import options
from rprime.commands.exit_status import defects, refuse
from rprime.commands.history_source import DEFAULT_STORE, HistorySource, StoreUrl, absent, newest
from rprime.commands.options import ServiceOptions

if TYPE_CHECKING:
    from rprime.client.clients import Client
    from rprime.commands.evaluation import EvaluationOutcome
    from rprime.report.subject import ReportSubject

Json = dict[str, Any]


@options.with_output
@options.with_service
def compare(
    candidate: Annotated[
        str,
        typer.Argument(
            help="The new one: a file as `rprime evaluate` takes it, or a stored evaluation as "
            "evaluation=ID or, with --project, alias=NAME, version=, branch= or latest; "
            "version=7,model=NAME is one of this model."
        ),
    ],
    baseline: Annotated[
        str,
        typer.Argument(
            help="What it is compared with: such a file, or one with other predictions (y_pred) "
            "for the same items; or a stored evaluation, named in the same way."
        ),
    ],
    *,
    project: Annotated[str | None, typer.Option(help="Whose evaluations are named.")] = None,
    columns: options.Columns = None,
    slice_: Annotated[
        list[str] | None,
        typer.Option(
            "--slice",
            metavar="COLUMN",
            help="Of files: as for `rprime evaluate`. Of stored evaluations: compare this slice "
            "alone, as region=EU; repeated, a crossing.",
        ),
    ] = None,
    crossing: options.Crossings = None,
    population: options.Population = None,
    gates: options.Gates = None,
    request: options.Request = None,
    strict: options.Strict = False,
    service: ServiceOptions | None,
    store: StoreUrl = DEFAULT_STORE,
    table_only: options.TableOnly = False,
    output: options.Output,
) -> None:
    """Compare a candidate with a baseline; every difference is candidate minus baseline.

    Ends as `rprime evaluate` does. With --json it prints what POST /v1/compare answers.
    """
    with defects(), ExitStack() as connections:
        from rprime.commands.ci_request import assemble, chosen_members, reference_of
        from rprime.commands.evaluation import run
        from rprime.commands.history import slice_member
        from rprime.commands.mappings import read_gates, read_mapping
        from rprime.commands.renderings import conclude, publish

        new, old = reference_of(candidate), reference_of(baseline)
        history = HistorySource(service, store)
        if new is None:
            if old is not None and service is not None:
                with history.client() as client:
                    baseline = f"evaluation={_identified(client, project, old)}"
            chosen = chosen_members(columns, slice_ or (), crossing or (), population)
            ci_request = assemble(
                candidate, baseline=baseline, gates=gates, request=request, chosen=chosen
            )
            outcome = run(ci_request, service, compares=True, table_only=table_only)
        elif old is None:
            refuse(f"a stored evaluation is compared with another one; {baseline} names none")
        elif columns or crossing or population:
            refuse("--columns, --crossing and --population are about files, not stored evaluations")
        else:
            client = connections.enter_context(history.client())
            new = {"evaluation": _identified(client, project, new)}
            asked = {"candidate": new, "baseline": old, **slice_member(slice_)}
            if gates is not None:
                asked["gates"] = read_gates(gates)
            if request is not None:
                asked["options"] = read_mapping(request, "members of a request")
            outcome = _stored(client, asked, baseline)
        publish(outcome, output, gates)
        conclude(outcome, strict=strict)


def _identified(client: "Client", project: str | None, reference: Json) -> str:
    """Return the id of a stored evaluation."""
    from rprime.client.calls import Call, path_of

    (by, name), *_ = reference.items()
    if by == "evaluation":
        return str(name)
    if project is None:
        refuse(f"{by}={name} is looked up in a project: name it by --project")
    if by == "alias":
        path = path_of("projects", project, "aliases", name)
        with absent(f"{project} has no alias {name}, or the key may not see it"):
            return client.ask(
                Call("GET", path, lambda content, _: str(orjson.loads(content)["evaluation"]))
            )
    names = {} if by == "latest" else {by: name}
    return newest(client, project, names | {"model": reference.get("model")})


def _stored(client: "Client", asked: Json, baseline: str) -> "EvaluationOutcome":
    """Compare two stored evaluations; `baseline` is what the second one is called."""
    from rprime.application.report_subject import request_of_report, subject_of_report
    from rprime.client import calls
    from rprime.commands.evaluation import EvaluationOutcome, answered

    answer = client.ask(calls.comparison(orjson.dumps(asked)))

    def subject() -> "ReportSubject":
        of: Any = {"slice": asked["slice"]} if "slice" in asked else {}
        report = client.evaluation(asked["candidate"]["evaluation"], table=True, **of).model
        if answer.model.population is None:
            report = report.model_copy(update={"population": None})
        # The warnings of the report are those of its own comparison and gate, too.
        evaluation = request_of_report(report).evaluate()
        shown = replace(subject_of_report(report, evaluation), baseline=baseline)
        return answered(shown, evaluation, answer)

    return EvaluationOutcome(answer.content, answer.verdict, answer.judged, subject)
