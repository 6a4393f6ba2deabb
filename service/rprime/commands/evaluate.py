"""An evaluation, here or by a service, as a CI job needs it."""

from functools import partial
from typing import Annotated

import typer

from rprime.commands import options
from rprime.commands.exit_status import defects
from rprime.commands.options import ServiceOptions

_origin = partial(typer.Option, rich_help_panel="Where it belongs")


@options.with_output
@options.with_service
def evaluate(
    file: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="CSV, Parquet or Arrow with the columns y_true, y_pred and optionally "
            "y_pred_baseline, sample_weight, item_id, group, score:<label>; NPZ with arrays of "
            "these names, or confusion_matrix and labels; or a request of POST /evaluate as JSON. "
            "It may end in .gz; - reads standard input. With --engine: any number of CSV or "
            "Parquet files, globs, folders or URIs, quoted.",
        ),
    ],
    *,
    engine: options.Engine = None,
    columns: options.Columns = None,
    slice_: options.Slices = None,
    crossing: options.Crossings = None,
    population: options.Population = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="What to compare with: a file as above, or one with other predictions (y_pred) "
            "for the same items; or a stored evaluation, as alias=NAME, version=, branch=, latest "
            "or evaluation=; version=7,model=NAME is one of another model.",
        ),
    ] = None,
    gates: options.Gates = None,
    request: options.Request = None,
    strict: options.Strict = False,
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
        bool, typer.Option("--table", help="Add the table to the JSON.", rich_help_panel="Output")
    ] = False,
    output: options.Output,
) -> None:
    """Evaluate a classifier: print the report, and end with the verdict of the gate.

    It ends with:

    0 where the gate passes or nothing is demanded, and where it is inconclusive, said loudly

    1 where the gate fails

    2 for bad input or usage

    3 where the gate is inconclusive under --strict

    4 where the service gives no answer

    5 where the gate fails only because it could not be judged
    """
    origin = {
        "project": project,
        "model": model,
        "version": version,
        "branch": branch,
        "commit": commit,
        "tags": tag,
        "source": source,
        "keep_items": keep_items,
    }
    with defects():
        from rprime.commands.ci_request import assemble, chosen_members
        from rprime.commands.evaluation import run
        from rprime.commands.renderings import conclude, publish

        ci_request = assemble(
            *file,
            baseline=baseline,
            gates=gates,
            request=request,
            origin=origin,
            engine=engine,
            chosen=chosen_members(columns, slice_ or (), crossing or (), population),
        )
        outcome = run(ci_request, service, table=table, table_only=table_only)
        publish(outcome, output, gates)
        conclude(outcome, strict=strict)
