"""Reports in MLflow: values as metrics, verdicts as tags, pages and figures as artifacts."""

import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any, Literal, get_args

import mlflow
from mlflow.entities import RunTag
from mlflow.models.evaluation import EvaluationResult, ModelEvaluator

from rprime.client.in_process import evaluate
from rprime.client.report import Report
from rprime.client.request import RequestFields
from rprime.client.values import Values
from rprime.core.quantities import plural
from rprime.report.formats import BY_NAME
from rprime.schemas.report import Value

_UNFIT = re.compile(r"^\.{1,2}$|[^\w\-. ]")
"""Of the name of a class, what a part of the name of a metric cannot be or hold."""
_MOST_NAMED = 50
"""Undefined values that a tag names."""
_MOST_CLASSES = 20
_OF_A_CLASS = 3
"""Classes that have metrics, those with most items, and indices of each: its first ones."""
_Figure = Literal["confusion", "radar", "per_class"]


def log(
    report: Report,
    *,
    run_id: str | None = None,
    prefix: str = "rprime",
    model_id: str | None = None,
) -> dict[str, float]:
    """Log a report to a run of MLflow, and return the metrics.

    Metrics are named as `rprime/r_prime` overall, with `_lower` and `_upper` for the limits of
    their intervals, and as `rprime/class/cat/recall` for a class: three indices of the 20 classes
    with most items. The artifact `report.json` has the rest. MLflow has no undefined metrics, so
    these are left out, and the tag `rprime.undefined` names them. In the names of classes `_`
    replaces what MLflow does not allow, such as a slash.

    Parameters
    ----------
    report
        Of `rprime.evaluate`, or of a service with `table=True`.
    run_id
        The run; None: the active run, or a new one.
    prefix
        What the names of metrics, tags and artifacts begin with, such as "validation".
    model_id
        The logged model that the metrics are about; None: the active one, if there is one.

    Raises
    ------
    ValueError
        If a service gave the report without its table; nothing is logged then.
    """
    values = dict(_values(report))
    metrics = {f"{prefix}/{name}": value for name, value in values.items() if value is not None}
    undefined = [name for name, value in values.items() if value is None]
    tags = [RunTag(f"{prefix}.{key}", value) for key, value in _tags(report, undefined).items()]
    texts = {
        "report.json": report.content.decode(),
        "report.html": BY_NAME["html"].render(report.subject()).decode(),
        **{f"{name}.svg": report.plot(name).svg for name in get_args(_Figure)},
    }
    run = run_id or (mlflow.active_run() or mlflow.start_run()).info.run_id
    mlflow.log_metrics(metrics, run_id=run, model_id=model_id)
    mlflow.MlflowClient().log_batch(run, tags=tags)
    for name, text in texts.items():
        mlflow.log_text(text, f"{prefix}/{name}", run_id=run)
    return metrics


def _values(report: Report) -> Iterator[tuple[str, float | None]]:
    """Yield values and limits by name; classes whose names become equal get their numbers."""
    yield from _limits(report.overall)
    taken: set[str] = set()
    by_items = sorted(report.per_class.items(), key=lambda entry: -entry[1].support)
    for number, (label, values) in enumerate(by_items[:_MOST_CLASSES]):
        name = _UNFIT.sub("_", label)
        while name in taken:
            name = f"{name}_{number}"
        taken.add(name)
        for key, entry in islice(values.items(), _OF_A_CLASS):
            yield f"class/{name}/{key}", entry.value


def _limits(values: Values[Value]) -> Iterator[tuple[str, float | None]]:
    for key, entry in values.items():
        yield key, entry.value
        for end, limit in zip(("lower", "upper"), entry.interval or (), strict=False):
            yield f"{key}_{end}", limit


def _tags(report: Report, undefined: Collection[str]) -> dict[str, str]:
    gate = report.gate
    tags = {"input_digest": report.input_digest, "engine_version": report.engine_version}
    if gate is not None:
        tags |= {"verdict": gate.verdict, "undecided": str(gate.undecided)}
        tags["message"] = gate.message
    if report.id is not None:
        tags["evaluation"] = report.id
    if undefined:
        named = ", ".join(list(undefined)[:_MOST_NAMED])
        more = ", ..." if len(undefined) > _MOST_NAMED else ""
        tags["undefined"] = f"{plural(len(undefined), 'value')}: {named}{more}"
    return tags


class Evaluator(ModelEvaluator):
    """The evaluator `rprime` of `mlflow.models.evaluate`, for classifiers.

    Its `evaluator_config` has options of `rprime.evaluate`, such as `gates` and `baseline`, and
    `prefix`.
    """

    @classmethod
    def can_evaluate(
        cls, *, model_type: str, evaluator_config: Mapping[str, Any] | None, **_: Any
    ) -> bool:
        """Return whether this is a classifier, and the options are not for other evaluators only.

        Where `evaluators` is not given, MLflow hands the same options to every evaluator.
        """
        if model_type != "classifier":
            return False
        options = {"prefix", *RequestFields.__annotations__}
        if not evaluator_config or options & evaluator_config.keys():
            return True
        names = ", ".join(evaluator_config)
        warnings.warn(f"rprime does not evaluate: it has no option {names}", stacklevel=2)
        return False

    def evaluate(
        self,
        *,
        dataset: Any,
        run_id: str,
        evaluator_config: Mapping[str, Any] | None = None,
        model: Any = None,
        model_id: str | None = None,
        predictions: str | None = None,
        **_: Any,
    ) -> EvaluationResult:
        """Evaluate the predictions for a dataset, and log the report."""
        outputs = (
            dataset.predictions_data if model is None else model.predict(dataset.features_data)
        )
        predicted = outputs if predictions is None else outputs[predictions]
        options = dict(evaluator_config or {})
        prefix = options.pop("prefix", "rprime")
        report = evaluate(dataset.labels_data, predicted, **options)
        metrics = log(report, run_id=run_id, prefix=prefix, model_id=model_id)
        return EvaluationResult(metrics=metrics, artifacts={})
