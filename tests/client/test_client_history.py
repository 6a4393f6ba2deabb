"""The client reads and changes the history of a service."""

import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from rprime.client.clients import Client
from rprime.client.errors import ProblemError
from rprime.client.methods import Methods
from tests.examples.recipes import OPENAPI
from tests.history_service import ServeApp, keep, keeping, matrix


@pytest.fixture
def service(serve_app: ServeApp, tmp_path: Path) -> Iterator[httpx.Client]:
    with keeping(serve_app, tmp_path) as service:
        yield service


def test_an_alias_is_set_and_moved_by_who_knows_it(service: httpx.Client) -> None:
    old, new = (keep(service, matrix(errors))["id"] for errors in (5, 3))
    with Client(str(service.base_url)) as client:
        first = client.promote("pets", "champion", old)
        assert client.alias("pets", "champion") == first
        for replaces in (None, first.model_copy(update={"etag": '"other"'})):
            with pytest.raises(ProblemError) as refused:
                client.promote("pets", "champion", new, replaces=replaces)
            assert refused.value.code == "precondition_failed"
        assert client.promote("pets", "champion", new, replaces=first).evaluation == new
        assert [alias.evaluation for alias in client.aliases("pets").items] == [new]
        assert [project.name for project in client.projects().items] == ["pets"]


GATES: Any = {"rules": [{"index": "accuracy", "min_value": 0.5}]}
MATRIX: Any = {"confusion_matrix": [[80, 20], [10, 90]]}
ITEMS: Any = {"y_true": ["a", "b"] * 600, "y_pred": ["a", "b", "b"] * 400}
CALLS: dict[str, tuple[str, Callable[[Client, str], Any]]] = {
    "evaluateV1": ("evaluate", lambda c, _: c.evaluate(**MATRIX)),
    "evaluateBatch": ("evaluate_batch", lambda c, _: c.evaluate_batch([MATRIX])),
    "compare": ("compare", lambda c, i: c.compare({"evaluation": i}, MATRIX)),
    "lintGate": ("lint", lambda c, _: c.lint(GATES, replicates=100, **MATRIX)),
    "planGate": ("plan", lambda c, _: c.plan(GATES, **MATRIX)),
    "listIndices": ("indices", lambda c, _: c.indices(scope="class", family="core", limit=3)),
    "getIndex": ("index", lambda c, _: c.index("overall", "r_prime")),
    "listEvaluations": ("evaluations", lambda c, _: c.evaluations("pets", index="kappa")),
    "getEvaluation": ("evaluation", lambda c, i: c.evaluation(i, family="core")),
    "getRendering": ("rendering", lambda c, i: c.rendering(i, "csv", index="accuracy")),
    "getVerdict": ("verdict", lambda c, i: c.verdict(i)),
    "getEvaluationFigure": ("figure", lambda c, i: c.figure(i, "per_class", index="f1")),
    "listProjects": ("projects", lambda c, _: c.projects(limit=1)),
    "setProject": ("set_project", lambda c, _: c.set_project("pets", badge_public=True)),
    "purgeProject": ("purge", lambda c, _: c.purge("pets", keep_last=1, dry_run=True)),
    "listAliases": ("aliases", lambda c, _: c.aliases("pets", limit=1)),
    "getAlias": ("alias", lambda c, _: c.alias("pets", "champion")),
    "putAlias": ("promote", lambda c, i: c.promote("pets", "other", i)),
    "aliasHistory": ("alias_history", lambda c, _: c.alias_history("pets", "champion")),
    "getTrend": ("trend", lambda c, _: c.trend("pets")),
    "getLeaderboard": ("leaderboard", lambda c, _: c.leaderboard("pets")),
    "getBadgeJson": ("badge", lambda c, _: c.badge("pets", index="r_prime")),
    "getProjectFigure": ("project_figure", lambda c, _: c.project_figure("pets", form="png")),
    "studySlices": (
        "weak_slices",
        lambda c, _: c.weak_slices(**ITEMS, slices={"s": ["u", "v", "w", "x"] * 300}),
    ),
    "studyDiscrimination": ("discrimination", lambda c, _: c.discrimination(["kappa"], k=3)),
    "studyAgreement": (
        "agreement",
        lambda c, _: c.agreement(values={"f1": [0.1, 0.2, 0.3], "mcc": [0.3, 0.2, 0.1]}),
    ),
    "getVersion": ("version", lambda c, _: c.version()),
    "deleteAlias": (
        "delete_alias",
        lambda c, _: c.delete_alias("pets", "champion", current=c.alias("pets", "champion")),
    ),
    "deleteEvaluation": ("delete_evaluation", lambda c, i: c.delete_evaluation(i)),
    "deleteProject": ("delete_project", lambda c, _: c.delete_project("pets")),
}
"""By operation, the method that asks for it, and a call."""
WITHOUT_METHOD = {
    "evaluate": "it is evaluateV1 without its version",
    "getBadgeSvg": "a picture for web pages, which load it from its address",
    "getPrintedFigure": "a fixed picture of a paper: `rprime study discrimination --figure 1`",
    "exportEvaluations": "a backup of any length, which `rprime export` writes to a file",
    "importEvaluations": "a backup of any length, which `rprime import` reads from a file",
    "getMetrics": "for Prometheus",
    "livez": "for what starts the service again",
    "readyz": "for load balancers; each retry of a client waits for it",
}
"""Operations that are not for programs which evaluate, and why."""


def test_every_operation_has_a_method_or_a_reason() -> None:
    document = json.loads(OPENAPI.read_text(encoding="utf-8"))
    operations = {
        operation["operationId"]
        for path in document["paths"].values()
        for operation in path.values()
    }
    assert operations == CALLS.keys() | WITHOUT_METHOD.keys()
    methods = {name for name, _ in inspect.getmembers(Methods) if not name.startswith("_")}
    assert methods == {name for name, _ in CALLS.values()}


@pytest.mark.parametrize("operation", CALLS)
def test_every_method_is_answered(service: httpx.Client, operation: str) -> None:
    identifier = keep(service, matrix(5, gates=GATES))["id"]
    keep(service, matrix(3, gates=GATES))
    name, call = CALLS[operation]
    with Client(str(service.base_url)) as client:
        client.promote("pets", "champion", identifier)
        if operation == "deleteEvaluation":
            client.delete_alias("pets", "champion", current=client.alias("pets", "champion"))
        answer = call(client, identifier)
    if name.startswith("delete") or name == "set_project":
        assert answer is None
    elif "figure" in name:
        assert answer.startswith((b"<svg", b"<?xml", b"\x89PNG"))
    else:
        assert answer
