"""Reports in stores of MLflow, as MLflow itself reads them."""

import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow.entities import Run
from sklearn.metrics import recall_score

import rprime as library
import rprime.mlflow
from rprime.client.clients import Client

TRUE = ["cat", "dog", "dog", "a/b: c", "naïve", ".."] * 30
PREDICTED = ["cat", "dog", "cat", "a/b: c", "naïve", "dog"] * 30
GATE = {"rules": [{"index": "accuracy", "min_value": 0.5}]}


pytestmark = [
    pytest.mark.slow,
    # MLflow uses what pandas deprecates.
    pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning"),
]


@pytest.fixture(autouse=True, scope="module")
def tracking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Track into a SQLite store of MLflow."""
    folder = tmp_path_factory.mktemp("mlflow")
    with warnings.catch_warnings():
        # Importing these warns of what MLflow does with other packages.
        warnings.simplefilter("ignore")
        import_module("mlflow.store.tracking.sqlalchemy_store")
        import_module("mlflow.models.evaluation.evaluators.classifier")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder}/mlflow.db")
        experiment = mlflow.create_experiment("animals", f"file://{folder}/artifacts")
        patch.setenv("MLFLOW_EXPERIMENT_ID", experiment)
        yield


def logged(run_id: str) -> Run:
    return mlflow.MlflowClient().get_run(run_id)


def text(run_id: str, name: str) -> str:
    return mlflow.artifacts.load_text(f"runs:/{run_id}/{name}")


def test_the_active_run_gets_values_limits_verdict_and_pages() -> None:
    report = library.evaluate(TRUE, PREDICTED, gates=GATE)
    with mlflow.start_run() as run:
        returned = rprime.mlflow.log(report)
    record = logged(run.info.run_id)
    assert record.data.metrics == returned
    assert returned["rprime/macro_recall"] == pytest.approx(
        recall_score(TRUE, PREDICTED, average="macro")
    )
    limits = [returned[f"rprime/kappa_{end}"] for end in ("lower", "upper")]
    assert tuple(limits) == report.overall.kappa.interval
    assert returned["rprime/class/a_b_ c/recall"] == 1
    assert returned["rprime/class/naïve/recall"] == 1
    assert returned["rprime/class/_/recall"] == 0
    assert record.data.tags["rprime.verdict"] == report.verdict == "pass"
    assert record.data.tags["rprime.input_digest"] == report.input_digest
    assert text(run.info.run_id, "rprime/report.json").encode() == report.content
    assert "<title>" in text(run.info.run_id, "rprime/report.html")
    for figure in ("confusion", "radar", "per_class"):
        assert "<svg" in text(run.info.run_id, f"rprime/{figure}.svg")


def test_two_reports_in_one_run_have_prefixes_and_undefined_values_are_named() -> None:
    whole = library.evaluate(TRUE, PREDICTED, indices=["recall"], intervals=False)
    partial = library.evaluate(
        ["a", "a", "b"], ["a", "a", "a"], indices=["precision"], intervals=False, labels=list("abc")
    )
    with mlflow.start_run() as run:
        pass
    for prefix, report in (("validation", whole), ("test", partial)):
        rprime.mlflow.log(report, run_id=run.info.run_id, prefix=prefix)
    assert mlflow.active_run() is None
    data = logged(run.info.run_id).data
    assert data.metrics["validation/class/dog/recall"] == 0.5
    assert {"test/class/a/precision", "test/class/b/precision"} & data.metrics.keys() == {
        "test/class/a/precision"
    }
    assert "class/b/precision" in data.tags["test.undefined"]
    assert "validation.undefined" not in data.tags
    assert "test.verdict" not in data.tags


def test_classes_whose_names_become_equal_are_told_apart() -> None:
    labels = ["a/b", "a:b", "a_b", "a_b_1", "..", "."]
    with mlflow.start_run():
        metrics = rprime.mlflow.log(library.evaluate(labels, labels, indices=["recall"]))
    names = {name.split("/")[2] for name in metrics if name.startswith("rprime/class/")}
    assert len(names) == len(labels)


@pytest.mark.parametrize("classes", [10, 300])
def test_the_summary_its_limits_and_few_indices_of_few_classes_are_metrics(classes: int) -> None:
    most = range(classes - 5, classes)
    labels = [f"{number:03}" for number in (*range(classes), *range(classes), *most)]
    report = library.evaluate(labels, labels)
    with mlflow.start_run() as run:
        metrics = rprime.mlflow.log(report)
    of_classes = {name for name in metrics if name.startswith("rprime/class/")}
    chosen = [*most, *range(min(classes - 5, 15))]
    assert of_classes == {
        f"rprime/class/{number:03}/{key}"
        for number in chosen
        for key in ("r_prime", "recall", "precision")
    }
    ends = ("", "_lower", "_upper")
    overall = {f"rprime/{key}{end}" for key in report.overall for end in ends}
    assert metrics.keys() - of_classes <= overall
    assert len(metrics) <= 90
    assert logged(run.info.run_id).data.metrics == metrics
    assert text(run.info.run_id, "rprime/report.json").encode() == report.content


def test_all_indices_of_a_report_that_names_them_are_metrics() -> None:
    report = library.evaluate(TRUE, PREDICTED, families=["all"], intervals=False)
    with mlflow.start_run():
        metrics = rprime.mlflow.log(report)
    defined = {key for key, entry in report.overall.items() if entry.value is not None}
    assert {f"rprime/{key}" for key in defined} <= metrics.keys()


def test_a_report_of_a_service_needs_its_table_or_logs_nothing(server: str) -> None:
    request: dict[str, Any] = {"y_true": TRUE, "y_pred": PREDICTED, "gates": GATE}
    with Client(server) as client, mlflow.start_run() as run:
        bare = client.evaluate(**request)
        with pytest.raises(ValueError, match="table"):
            rprime.mlflow.log(bare)
        assert not logged(run.info.run_id).data.metrics
        report = client.evaluate(table=True, project="animals", **request)
        metrics = rprime.mlflow.log(report)
    assert metrics["rprime/accuracy"] == report.overall["accuracy"].value
    assert logged(run.info.run_id).data.tags["rprime.evaluation"] == report.id


# mlflow.models.evaluate


DATA = pd.DataFrame({"x": np.arange(len(TRUE)), "y": TRUE, "found": PREDICTED})


def test_mlflow_evaluates_predictions() -> None:
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(
            data=DATA,
            targets="y",
            predictions="found",
            model_type="classifier",
            evaluators="rprime",
            evaluator_config={"gates": GATE, "confidence": 0.9},
        )
    report = library.evaluate(TRUE, PREDICTED, gates=GATE, confidence=0.9)
    limits = [result.metrics[f"rprime/r_prime_{end}"] for end in ("lower", "upper")]
    assert tuple(limits) == report.overall["r_prime"].interval
    assert logged(run.info.run_id).data.tags["rprime.verdict"] == "pass"


@pytest.mark.parametrize("columns", [1, 2])
def test_mlflow_evaluates_a_model(columns: int) -> None:
    def model(data: pd.DataFrame) -> object:
        predictions = [PREDICTED[number] for number in data["x"]]
        return predictions if columns == 1 else pd.DataFrame({"found": predictions, "sure": 1.0})

    result = mlflow.models.evaluate(
        model,
        DATA[["x", "y"]],
        targets="y",
        predictions=None if columns == 1 else "found",
        model_type="classifier",
        evaluators=["rprime"],
        evaluator_config={"rprime": {"prefix": "test", "indices": ["accuracy"]}},
    )
    assert result.metrics["test/accuracy"] == pytest.approx(4 / 6)


def test_options_of_other_evaluators_are_none_of_ours() -> None:
    evaluator = rprime.mlflow.Evaluator()
    assert evaluator.can_evaluate(model_type="classifier", evaluator_config={})
    assert not evaluator.can_evaluate(model_type="regressor", evaluator_config={})
    with pytest.warns(UserWarning, match="no option log_model_explainability"):
        assert not evaluator.can_evaluate(
            model_type="classifier", evaluator_config={"log_model_explainability": False}
        )


def test_a_misspelt_option_is_refused() -> None:
    with pytest.raises(library.ProblemError, match="confidense"):
        mlflow.models.evaluate(
            data=DATA,
            targets="y",
            predictions="found",
            model_type="classifier",
            evaluators="rprime",
            evaluator_config={"confidense": 0.9, "gates": GATE},
        )
