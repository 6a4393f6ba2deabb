"""A comparison of two classifiers, here or by a service."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rprime.commands import options
from rprime.commands.exit_status import defects, refuse
from rprime.commands.options import ServiceOptions

if TYPE_CHECKING:
    from rprime.commands.evaluation import EvaluationOutcome


@options.with_output
@options.with_service
def compare(
    candidate: Annotated[
        str,
        typer.Argument(help="The new one: a file as `rprime evaluate` takes it, or evaluation=ID."),
    ],
    baseline: Annotated[
        str,
        typer.Argument(
            help="What it is compared with: such a file, or one with other predictions (y_pred) "
            "for the same items; a stored evaluation as evaluation=ID or version=7."
        ),
    ],
    *,
    columns: options.Columns = None,
    gates: options.Gates = None,
    request: options.Request = None,
    strict: options.Strict = False,
    service: ServiceOptions | None,
    table_only: options.TableOnly = False,
    output: options.Output,
) -> None:
    """Compare a candidate with a baseline; every difference is candidate minus baseline.

    Ends as `rprime evaluate` does. With --json it prints what POST /v1/compare answers.
    """
    with defects():
        from rprime.commands.ci_request import assemble, reference_of
        from rprime.commands.evaluation import compare_operation, run_operation
        from rprime.commands.renderings import conclude, publish

        stored = reference_of(candidate)
        if stored is not None:
            outcome = _stored(stored, baseline, service, gates, request)
        else:
            ci_request = assemble(
                candidate, baseline=baseline, gates=gates, request=request, columns=columns
            )
            outcome = run_operation(compare_operation(), ci_request, service, table_only=table_only)
        publish(outcome, output)
        conclude(outcome.verdict, judged=outcome.judged, strict=strict)


def _stored(
    candidate: dict[str, Any],
    baseline: str,
    service: ServiceOptions | None,
    gates: Path | None,
    request: Path | None,
) -> "EvaluationOutcome":
    """Ask a service to compare two stored evaluations, with rules and options from files."""
    from rprime.commands.ci_request import reference_of
    from rprime.commands.evaluation import ask
    from rprime.commands.mappings import read_gates, read_mapping
    from rprime.commands.stored_comparison import compare_stored

    if service is None:
        refuse("a stored evaluation needs --server; give files to compare here")
    reference = reference_of(baseline)
    if "evaluation" not in candidate or reference is None:
        refuse("two stored evaluations are compared as evaluation=ID evaluation=ID")
    members: dict[str, Any] = {"gates": read_gates(gates)} if gates else {}
    members |= {"options": read_mapping(request, "members of a request")} if request else {}
    return compare_stored(partial(ask, service=service), candidate, reference, baseline, members)
