"""Answer requests that lint a gate."""

import orjson

from rprime import evidence
from rprime.application.request import (
    EvidenceErrorsAsProblems,
    ViolationCollector,
    class_limits,
    gate_of,
)
from rprime.core.gates.lint import GateLint, LintError, lint
from rprime.core.options import Options
from rprime.problems.problem import Problem, Violation
from rprime.schemas.request import LintRest
from rprime.settings import Limits


def lint_request(body: bytes, limits: Limits) -> bytes:
    """Lint the gate of a request by simulation.

    Raises
    ------
    Problem
        400 or 422.
    """
    with EvidenceErrorsAsProblems():
        document = evidence.parse(body, limits.json_depth)
    faults = ViolationCollector(document)
    wanted = faults.validated(LintRest)
    read = faults.read(lambda: evidence.read(document, class_limits(limits)))
    faults.refuse()
    assert wanted is not None  # noqa: S101 (refused otherwise)
    assert read is not None  # noqa: S101 (refused otherwise)
    gate = gate_of(wanted.gates, Options())
    assert gate is not None  # noqa: S101 (the request has gates)
    try:
        found = lint(
            gate,
            read.table,
            read.labels,
            pairing=wanted.pairing,
            discordance=wanted.discordance,
            replicates=wanted.replicates,
            seed=wanted.seed,
        )
    except LintError as error:
        violation = Violation(f"/{read.kind}", "not_for_lint", str(error))
        raise Problem("invalid_request", errors=[violation]) from None
    return lint_document(found)


def lint_document(found: GateLint) -> bytes:
    """Render the result of linting as JSON."""
    return orjson.dumps(
        {
            "false_fail_rate": found.false_fail_rate,
            "inconclusive_rate": found.inconclusive_rate,
            "rules": [
                {
                    "id": rule.id,
                    "class": rule.class_,
                    "false_fail_rate": rule.false_fail_rate,
                    "inconclusive_rate": rule.inconclusive_rate,
                    "detectable_drop": rule.detectable_drop,
                }
                for rule in found.rules
            ],
            "advice": found.advice,
        }
    )
