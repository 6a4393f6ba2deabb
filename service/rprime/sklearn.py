"""Scorers, reports and intervals for scikit-learn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from rprime.client.in_process import evaluate
from rprime.client.report import Report
from rprime.core.catalog import find
from rprime.core.index_names import canonical, nearest_keys
from rprime.core.intervals.cross_validation import corrected_interval


def scorer(index: str, *, class_name: object = None, **options: Any) -> "_Scorer":
    """Return a scorer for `cross_validate`, `GridSearchCV` and all that take `scoring`.

    Parameters
    ----------
    index
        The key of an index, or its name in another library.
    class_name
        The class of a per-class index; None: an overall index.
    **options
        As of `rprime.evaluate`, such as `beta` or `cost`.

    Returns
    -------
    The scorer. Larger is always better: an index such as `log_loss` has its sign changed. A value
    that is undefined on a test set is NaN.

    Raises
    ------
    ValueError
        If there is no such index.
    """
    scope: Literal["class", "overall"] = "overall" if class_name is None else "class"
    key = canonical(index)
    entry = find(scope, key)
    if entry is None:
        near = ", ".join(nearest_keys(index))
        if find("class" if scope == "overall" else "overall", key) is None:
            raise ValueError(f"there is no index {index!r}; the nearest are {near}")
        how = "give class_name" if scope == "overall" else f"leave class_name out, or use {near}"
        raise ValueError(f"{index!r} is no {scope} index: {how}")
    sign = -1 if entry.higher_is_better is False else 1
    name = None if class_name is None else str(class_name)
    return _Scorer(key, name, sign, entry.scored, options)


@dataclass(frozen=True)
class _Scorer:
    """The value of one index as scikit-learn asks for it; `sign` is -1 where less is better."""

    index: str
    class_name: str | None
    sign: int
    scored: bool
    options: Mapping[str, Any]

    def __call__(self, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None) -> float:
        """Return the value of the index on a test set, with its sign; NaN where undefined."""
        method: Literal["predict", "predict_proba"] = "predict_proba" if self.scored else "predict"
        members = {"indices": [self.index], "intervals": False, "sample_weight": sample_weight}
        report = report_from_estimator(
            estimator, X, y, response_method=method, **members, **self.options
        )
        values = report.overall
        if self.class_name is not None:
            if self.class_name not in report.per_class:
                _check_class(self.class_name, estimator)
                return float("nan")
            values = report.per_class[self.class_name]
        value = values[self.index].value
        return float("nan") if value is None else self.sign * value


def _check_class(name: str, estimator: Any) -> None:
    """Refuse a class that the estimator does not know; a test set may lack one that it knows."""
    classes = getattr(estimator, "classes_", None)
    if classes is not None and name not in map(str, classes):
        raise ValueError(f"the estimator has no class {name!r}; its classes: {list(classes)}")


def report_from_estimator(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    response_method: Literal["predict", "predict_proba"] = "predict",
    **request: Any,
) -> Report:
    """Evaluate a fitted classifier on a test set.

    Parameters
    ----------
    estimator
        A classifier or a pipeline that ends in one, fitted.
    response_method
        "predict_proba" also evaluates the scores, and predicts what scores most.
    **request
        Options, a baseline and gates, as of `rprime.evaluate`.

    Raises
    ------
    ValueError
        If `response_method` is another one, such as "decision_function".
    """
    if response_method not in {"predict", "predict_proba"}:
        raise ValueError(
            f"response_method is 'predict' or 'predict_proba', not {response_method!r}"
        )
    if response_method == "predict":
        return evaluate(y, estimator.predict(X), **request)
    scores = estimator.predict_proba(X)
    return evaluate(y, y_score=scores, labels=list(estimator.classes_), **request)


class CrossValidated(NamedTuple):
    """The mean of one score over the splits of a cross-validation, and its interval."""

    value: float
    interval: tuple[float, float]


def cross_validated(
    results: Mapping[str, Any],
    baseline: Mapping[str, Any] | None = None,
    *,
    confidence: float = 0.95,
) -> dict[str, CrossValidated]:
    """Compute the mean of each score over the splits, with the corrected interval.

    Parameters
    ----------
    results
        What `sklearn.model_selection.cross_validate` returns with `return_indices=True`.
    baseline
        The results of another model on the same splits: the means are differences from it.

    Returns
    -------
    By the name of the score, such as "score" where `scoring` is a single scorer. The intervals are
    those of `rprime.core.intervals.cross_validation`: of the model that this many training items
    make, not of one fitted model.

    Raises
    ------
    ValueError
        If the indices are missing, or the splits of the two differ.
    """
    if not 0 < confidence < 1:
        raise ValueError("confidence is between 0 and 1, such as 0.95")
    splits = _splits(results)
    others = splits if baseline is None else _splits(baseline)
    if len(splits) != len(others) or not all(map(np.array_equal, splits, others)):
        raise ValueError("the splits differ: give both the same `cv` with a fixed random_state")
    sizes = np.array([len(part) for part in splits]).reshape(2, -1).sum(axis=1)
    means = {}
    for name in results:
        if name.startswith("test_"):
            values = results[name] if baseline is None else results[name] - baseline[name]
            mean, low, high = corrected_interval(
                values, test_share=sizes[1] / sizes[0], confidence=confidence
            )
            interval = (float(low), float(high))
            means[name.removeprefix("test_")] = CrossValidated(float(mean), interval)
    return means


def _splits(results: Mapping[str, Any]) -> list[Any]:
    """Return the items of the training sets, and then those of the test sets."""
    if "indices" not in results:
        raise ValueError("the results have no indices: cross_validate(..., return_indices=True)")
    return [*results["indices"]["train"], *results["indices"]["test"]]
