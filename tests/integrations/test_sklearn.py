"""Scorers and reports, in the hands of scikit-learn."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    cohen_kappa_score,
    f1_score,
    log_loss,
    make_scorer,
    recall_score,
    roc_auc_score,
)
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from rprime.core.arrays import Array
from rprime.core.intervals.cross_validation import corrected_interval
from rprime.sklearn import cross_validated, report_from_estimator, scorer

X, Y = load_digits(return_X_y=True)
X, Y = X[:600], Y[:600]
NAMES = np.array([f"digit {y}" for y in Y])


def test_cross_validation_gives_the_values_of_scikit_learn() -> None:
    theirs = {
        "f1_macro": "f1_macro",
        "cohen_kappa_score": make_scorer(cohen_kappa_score),
        "roc_auc": "roc_auc_ovr",
        "recall of 3": make_scorer(recall_score, labels=["digit 3"], average="macro"),
    }
    ours = {
        "f1_macro": scorer("f1_macro"),
        "cohen_kappa_score": scorer("cohen_kappa_score"),
        "roc_auc": scorer("roc_auc_ovr"),
        "recall of 3": scorer("recall", class_name="digit 3"),
    }
    scores, expected = (
        cross_validate(GaussianNB(), X, NAMES, cv=3, scoring=scoring) for scoring in (ours, theirs)
    )
    for name in ours:
        assert scores[f"test_{name}"] == pytest.approx(expected[f"test_{name}"], rel=1e-9), name


def test_only_labels_and_probabilities_are_asked_for() -> None:
    model = SVC().fit(X, Y)
    with pytest.raises(ValueError, match="'predict' or 'predict_proba', not 'decision_function'"):
        report_from_estimator(model, X, Y, response_method="decision_function")  # type: ignore[arg-type] # refused


def test_a_search_finds_the_best_by_it() -> None:
    # Between processes a scorer is pickled.
    loss = pickle.loads(pickle.dumps(scorer("error_rate")))  # noqa: S301 (made here)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SVC()),
        {"svc__C": [1e-3, 1.0]},
        cv=3,
        scoring={"r_prime": scorer("r_prime"), "loss": loss},
        refit="r_prime",
    ).fit(X, Y)
    assert search.best_params_ == {"svc__C": 1.0}
    results = search.cv_results_
    assert results["mean_test_loss"] == pytest.approx(results["mean_test_r_prime"] - 1)


def test_classes_are_named_as_they_are_and_need_not_be_in_every_fold() -> None:
    fitted = LogisticRegression(max_iter=2000).fit(X, Y)
    predicted = fitted.predict(X)
    expected = f1_score(Y, predicted, labels=[7], average="macro")
    assert scorer("f1", class_name=7)(fitted, X, Y) == pytest.approx(expected)
    some = Y < 5
    assert np.isnan(scorer("recall", class_name=7)(fitted, X[some], Y[some]))
    with pytest.raises(ValueError, match="the estimator has no class '11'; its classes: "):
        scorer("recall", class_name=11)(fitted, X[some], Y[some])
    proba = fitted.predict_proba(X[some])
    assert scorer("log_loss")(fitted, X[some], Y[some]) == pytest.approx(
        -log_loss(Y[some], proba, labels=fitted.classes_)
    )


def test_weights_reach_the_index() -> None:
    fitted = GaussianNB().fit(X, Y)
    weights = np.arange(1.0, len(Y) + 1)
    expected = fitted.score(X, Y, sample_weight=weights)
    assert scorer("accuracy")(fitted, X, Y, sample_weight=weights) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("index", "given", "said"),
    [
        ("recal", {}, "there is no index 'recal'; the nearest are recall"),
        ("recall", {}, "'recall' is no overall index: give class_name"),
        ("mcc", {"class_name": 1}, "'mcc' is no class index: leave class_name out, or use"),
    ],
)
def test_an_index_that_does_not_exist_is_refused_at_once(
    index: str, given: dict[str, int], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        scorer(index, **given)


def test_a_report_is_that_of_the_predictions_or_of_the_scores() -> None:
    fitted = RandomForestClassifier(20, random_state=0).fit(X[:300], NAMES[:300])
    report = report_from_estimator(fitted, X[300:], NAMES[300:])
    assert report.overall["accuracy"].value == pytest.approx(fitted.score(X[300:], NAMES[300:]))
    scored = report_from_estimator(
        fitted, X[300:], NAMES[300:], response_method="predict_proba", indices=["macro_roc_auc"]
    )
    proba = fitted.predict_proba(X[300:])
    expected = roc_auc_score(NAMES[300:], proba, multi_class="ovr", labels=fitted.classes_)
    assert scored.overall["macro_roc_auc"].value == pytest.approx(expected)


# Repeated cross-validation


def test_two_models_differ_as_in_the_example_of_scikit_learn() -> None:
    """Its "Statistical comparison of models using grid search" prints t = 0.750, p = 0.227."""
    x, y = make_moons(noise=0.352, random_state=1, n_samples=100)
    cv = RepeatedStratifiedKFold(n_splits=10, n_repeats=10, random_state=0)
    rbf, linear = (
        cross_validate(
            SVC(kernel=kernel, random_state=0), x, y, cv=cv, scoring="roc_auc", return_indices=True
        )
        for kernel in ("rbf", "linear")
    )
    difference = cross_validated(rbf, linear)["score"]
    assert difference.value == pytest.approx(np.mean(rbf["test_score"] - linear["test_score"]))
    # The interval at the confidence 1 - 2p ends at 0, up to the digits that are printed.
    ends = [
        cross_validated(rbf, linear, confidence=1 - 2 * p)["score"].interval[0]
        for p in (0.2275, 0.2265)
    ]
    assert ends[0] > 0 > ends[1]
    # t is the mean over its standard error; the 97.5 % quantile of t with 99 degrees is 1.98422.
    error = (difference.interval[1] - difference.value) / 1.98422
    assert round(difference.value / error, 3) == 0.750


def test_splits_must_be_known_and_the_same() -> None:
    options = {"scoring": scorer("r_prime"), "return_indices": True}
    cv = [RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=s) for s in (0, 1)]
    first, other = (cross_validate(GaussianNB(), X, Y, cv=splitter, **options) for splitter in cv)
    with pytest.raises(ValueError, match="splits differ"):
        cross_validated(first, other)
    with pytest.raises(ValueError, match=r"confidence is between 0 and 1, such as 0\.95"):
        cross_validated(first, confidence=95)
    del first["indices"]
    with pytest.raises(ValueError, match="return_indices"):
        cross_validated(first)


def test_a_single_split_has_no_interval_and_nan_stays() -> None:
    mean, low, high = corrected_interval(np.array([[0.5], [0.7]]), test_share=0.25)
    assert mean.tolist() == [0.5, 0.7]
    assert np.isnan([low, high]).all()
    assert np.isnan(corrected_interval(np.array([0.5, np.nan]), test_share=0.25)).all()


def _nearest_centroid_accuracies(
    rng: np.random.Generator, *, repeats: int, folds: int
) -> list[float]:
    """Cross-validate the nearest-centroid rule on 60 items of two normal classes."""
    n = 60
    y = np.arange(n) % 2
    x = rng.normal(size=(n, 3)) + y[:, None] * SHIFT
    accuracies = []
    for _ in range(repeats):
        for test in np.array_split(rng.permutation(n), folds):
            train = np.setdiff1d(np.arange(n), test)
            accuracies.append(np.mean(_predicted(x[train], y[train], x[test]) == y[test]))
    return accuracies


SHIFT = 0.7


def _predicted(x: Array, y: Array, new: Array) -> Array:
    low, high = x[y == 0].mean(axis=0), x[y == 1].mean(axis=0)
    labels: Array = (new @ (high - low) > (high @ high - low @ low) / 2).astype(int)
    return labels


def test_the_interval_covers_the_true_accuracy_and_the_plain_one_does_not() -> None:
    rng = np.random.default_rng(20240)
    # The expected accuracy of a rule that is trained on 48 items of a sample.
    true = []
    for _ in range(3000):
        y = np.arange(48) % 2
        x = rng.normal(size=(48, 3)) + y[:, None] * SHIFT
        labels = np.arange(400) % 2
        new = rng.normal(size=(400, 3)) + labels[:, None] * SHIFT
        true.append(np.mean(_predicted(x, y, new) == labels))
    runs = np.array([_nearest_centroid_accuracies(rng, repeats=5, folds=5) for _ in range(600)])
    covered = {}
    for share in (12 / 48, 0.0):
        _, low, high = corrected_interval(runs, test_share=share)
        covered[share] = np.mean((low <= np.mean(true)) & (np.mean(true) <= high))
    assert 0.90 <= covered[0.25] <= 0.99, covered
    assert covered[0.0] < 0.75, covered
