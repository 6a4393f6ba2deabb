"""The plugin of pytest: the fixture `rprime_gate`, which holds a classifier against a gate.

pytest imports this module whenever it starts, so everything else is imported by the first use.
"""

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rprime.client.clients import Client
    from rprime.client.report import Report
    from rprime.client.values import Differences
    from rprime.schemas.gate import Gate

Given = Mapping[str, Any] | str | Path


class GateWarning(UserWarning):
    """The gate did not pass, and this is no reason to fail the test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("rprime", "gates of classifiers")
    group.addoption(
        "--rprime-update",
        action="store_true",
        help="make what `rprime_gate` evaluates the new baselines; a gate that fails only warns",
    )
    group.addoption(
        "--rprime-plan",
        action="store_true",
        help="simulate how many items an inconclusive gate needs; this takes seconds or a minute",
    )


@pytest.fixture
def rprime_gate(request: pytest.FixtureRequest) -> "GateFixture":
    """Hold a classifier against a gate: `rprime_gate(y_true, y_pred, gates="gates.yaml")`."""
    return GateFixture(request.node)


class GateFixture:
    """The fixture `rprime_gate` of one test."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._config = item.config

    def __call__(
        self,
        y_true: object = None,
        y_pred: object = None,
        *,
        gates: Given,
        baseline: Given | None = None,
        **request: Any,  # noqa: ANN401 (each member has its type)
    ) -> "Report":
        """Evaluate a classifier; fail the test if the gate fails, warn if it is inconclusive.

        Parameters
        ----------
        y_true, y_pred
            The true and the predicted label of every item.
        gates
            The rules, or a file of them, YAML or JSON.
        baseline
            Evidence, such as `{"y_pred": ...}`; a JSON file of it, which `--rprime-update` writes;
            or with `project` a stored evaluation, as `{"alias": "champion"}`. Paths are relative
            to the root of the tests.
        **request
            Other evidence and options, as of `rprime.evaluate`. With `project` the service at
            RPRIME_SERVER evaluates, with the key in RPRIME_KEY, and stores the evaluation.

        Returns
        -------
        The report.

        Raises
        ------
        ProblemError, ServiceUnavailableError
            If the request is wrong, or the service does not answer: neither is a verdict.
        """
        members = {**request, "y_true": y_true, "y_pred": y_pred, "gates": self._rules(gates)}
        baseline_side: object = baseline
        if isinstance(baseline, str | Path):
            path = self._config.rootpath / baseline
            baseline_side = _read(path) if path.exists() else None
        arguments = {**members, "baseline": baseline_side}
        if "project" in arguments:
            with self._client() as client:
                report = client.evaluate(table=True, **arguments)
        else:
            from rprime.client.in_process import evaluate

            report = evaluate(**arguments)
        self._attach(report)
        gate = report.gate
        assert gate is not None  # noqa: S101 (the request has gates)
        updated = self._config.getoption("--rprime-update") and self._update(
            baseline, members, report.id
        )
        if report.verdict == "fail" and not updated:
            pytest.fail(_described(gate), pytrace=False)
        if report.verdict != "pass":
            needed = "The baseline is updated."
            if not updated:
                needed = self._needed(members, gate, report.comparison)
            warnings.warn(GateWarning(f"{_described(gate)}\n{needed}"), stacklevel=2)
        return report

    def _rules(self, gates: Given) -> Mapping[str, Any]:
        if isinstance(gates, Mapping):
            return gates
        from rprime.commands.exit_status import Refusal
        from rprime.commands.mappings import read_gates

        try:
            return read_gates(self._config.rootpath / gates)
        except Refusal as refusal:
            pytest.fail(refusal.why, pytrace=False)

    def _update(
        self, baseline: Given | None, members: Mapping[str, Any], stored: str | None
    ) -> bool:
        """Write the file of the baseline, or move its alias; return whether there is one."""
        if isinstance(baseline, str | Path):
            from rprime.client.request import body

            path = self._config.rootpath / baseline
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body(**_evidence(members)) + b"\n")
            return True
        if baseline is None or "alias" not in baseline:
            return False
        from rprime.commands.history import point

        with self._client() as client:
            point(client, members["project"], baseline["alias"], str(stored), if_absent=False)
        return True

    def _client(self) -> "Client":
        from rprime.client.clients import Client

        if not (server := os.environ.get("RPRIME_SERVER")):
            raise pytest.UsageError("`project` needs a service: set RPRIME_SERVER to its address")
        return Client(server, key=os.environ.get("RPRIME_KEY"))

    def _attach(self, report: "Report") -> None:
        """Add the report to the sections of the test, and its values to JUnit and other logs."""
        from rprime.report.measures import Measures
        from rprime.report.terminal import render_terminal

        subject = report.subject()
        self._item.add_report_section("call", "rprime", render_terminal(subject))
        values = {
            measure.index.key: measure.value for measure in Measures(subject).overall.values()
        }
        properties = {
            "rprime_verdict": report.verdict,
            **{f"rprime_{k}": v for k, v in values.items()},
        }
        self._item.user_properties += [(key, value) for key, value in properties.items() if value]

    def _needed(
        self, members: Mapping[str, Any], gate: "Gate", comparison: "Differences | None"
    ) -> str:
        """Say what an inconclusive gate needs."""
        if any(result.verdict == "no_baseline" for result in gate.results):
            return "It needs a baseline: `pytest --rprime-update` makes this evaluation one."
        if not self._config.getoption("--rprime-plan"):
            return "`pytest --rprime-plan` computes how many items it needs."
        from rprime.client.errors import ProblemError
        from rprime.client.in_process import plan

        pairing, flips = (
            (None, None) if comparison is None else (comparison.pairing, comparison.flips)
        )
        changed = 0.0 if flips is None else flips.right_to_wrong + flips.wrong_to_right
        options: dict[str, Any] = {
            "pairing": pairing,
            "discordance": changed / len(members["y_true"]) if changed else None,
        }
        try:
            return "\n".join(plan(members["gates"], **options, **_evidence(members)).advice)
        except ProblemError as problem:
            return f"How many items it needs cannot be computed: {problem}"


def _evidence(members: Mapping[str, Any]) -> dict[str, Any]:
    from rprime.client.request import ModelFields

    return {
        key: members[key] for key in ModelFields.__annotations__ if members.get(key) is not None
    }


def _read(path: Path) -> object:
    """Read a baseline; a `UsageError` names a file that is not JSON."""
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        how = "restore it, or write it again with --rprime-update"
        raise pytest.UsageError(f"{path} is not JSON ({error}): {how}") from None


def _described(gate: "Gate") -> str:
    """Describe a verdict and, line by line, the results that do not pass."""
    from rprime.report.verdicts import finding, headline, said, separate, summary

    results = [result for result in separate(gate) if result.effect != "pass"]
    lines = [f"{finding(result)}: {said(result)}" for result in results]
    return "\n".join([f"{headline(gate).words}. {summary(gate)}", *lines])
