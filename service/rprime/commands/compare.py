"""A comparison of two classifiers, here or by a service."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from rprime.commands import options
from rprime.commands.exit_status import defects
from rprime.commands.options import OnServiceError, ServiceOptions


@options.with_report_files
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
    server: options.Server = None,
    key: options.Key = None,
    timeout: options.Timeout = 60.0,
    retries: options.Retries = 3,
    on_service_error: options.OnError = OnServiceError.FAIL,
    table_only: options.TableOnly = False,
    as_json: options.AsJson = False,
    json_file: options.JsonFile = None,
    annotations: options.Annotations = False,
    files: Mapping[str, Path | None],
) -> None:
    """Compare a candidate with a baseline; every difference is candidate minus baseline.

    Ends as `rprime evaluate` does. With --json it prints what POST /v1/compare answers.
    """
    service = ServiceOptions.of(server, key, timeout, retries, on_service_error)
    with defects():
        from rprime.commands.ci_request import assemble, reference_of
        from rprime.commands.evaluation import (
            compare_operation,
            run_operation,
        )
        from rprime.commands.renderings import conclude, publish
        from rprime.commands.stored_comparison import compare_stored

        stored = reference_of(candidate)
        if stored is not None:
            outcome = compare_stored(stored, baseline, service, gates=gates, request=request)
        else:
            ci_request = assemble(
                candidate, baseline=baseline, gates=gates, request=request, columns=columns
            )
            outcome = run_operation(compare_operation(), ci_request, service, table_only=table_only)
        publish(
            outcome,
            as_json=as_json,
            annotations=annotations,
            files=files,
            json_file=json_file,
        )
        conclude(outcome.verdict, judged=outcome.judged, strict=strict)
