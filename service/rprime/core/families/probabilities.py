"""Family `ranking`: further indices of scores and probabilities."""

from typing import Any

import numpy as np

from rprime.core import special
from rprime.core.arrays import Array
from rprime.core.index import NON_NEGATIVE, from_scores, mean_of_items
from rprime.core.scores.scores import PROBABILITIES, Scores

FERRI = "Ferri, Hernandez-Orallo, Modroiu 2009"


@mean_of_items(
    symbol="MAPE",
    tex=r"\frac{1}{k w} \sum_x \sum_j |[j = t(x)] - p_j(x)|",
    source=FERRI,
    best=0.0,
    undefined=PROBABILITIES,
)
def mean_absolute_probability_error(s: Scores) -> Array:
    """Mean absolute distance of the probabilities to the truth, over items and classes."""
    return 2 * (1 - s.own) / s.k


@mean_of_items(
    symbol="hinge",
    tex=r"\frac{1}{w} \sum_x \max\left(0, 1 - p_{t(x)}(x) + \max_{j \ne t(x)} p_j(x)\right)",
    source="Crammer, Singer 2001",
    range=NON_NEGATIVE,
    best=0.0,
    undefined=("no_scores", "single_class"),
)
def hinge_loss(s: Scores) -> Array:
    """Mean shortfall of the margin between the true class and the best other one, below 1."""
    others = s.values.astype(np.float64)
    others[np.arange(len(others)), s.true] = -np.inf
    return np.maximum(0.0, 1 - s.own + np.maximum.reduce(others, axis=-1))


BETWEEN_CLASSES = {"undefined": (*PROBABILITIES, "single_class"), "resampled": True}
SKILL = BETWEEN_CLASSES | {
    "range": (-np.inf, 1.0),
    "source": "scikit-learn 1.9, after Hastie, Tibshirani, Wainwright 2015",
}


@from_scores(
    "overall",
    symbol="D^2_{LL}",
    name="Explained fraction of the log loss",
    tex=r"1 - \frac{LL}{-\sum_i \mu_i \ln \mu_i}",
    **SKILL,
)
def d2_log_loss(s: Scores) -> float:
    """Log loss avoided, as a share of that of predicting the shares of the classes."""
    return _explained(-s.mean(s.log_likelihoods), np.sum(special.entr(_shares(s))))


@from_scores(
    "overall",
    symbol="D^2_{BS}",
    name="Explained fraction of the Brier score",
    tex=r"1 - \frac{BS}{1 - \sum_i \mu_i^2}",
    **SKILL,
)
def d2_brier_score(s: Scores) -> float:
    """Brier score avoided, as a share of that of predicting the shares of the classes."""
    return _explained(s.mean(s.brier_scores), 1 - np.sum(_shares(s) ** 2))


POOLED = {"undefined": ("no_scores", "single_class"), "resampled": True}


@from_scores(
    "overall",
    symbol="micro AUC",
    name="Micro area under the ROC curve",
    tex=r"\text{pooled scores of all classes: } AUC",
    source="Hanley, McNeil 1982; pooled as in scikit-learn",
    **POOLED,
)
def micro_roc_auc(s: Scores) -> float:
    """Probability that the score of a true class exceeds the score of a wrong one, of any items."""
    ranking = s.pooled
    wins = np.add.reduce(ranking.wins(np.array([ranking.negatives, ranking.positives])))
    return float(wins / (ranking.positives * ranking.negatives)) if ranking.negatives else np.nan


@from_scores(
    "overall",
    symbol="micro AP",
    tex=r"\text{pooled scores of all classes: } \sum_t (TPR_t - TPR_{t-1}) PPV_t",
    source="Buckley, Voorhees 2000; pooled as in scikit-learn",
    **POOLED,
)
def micro_average_precision(s: Scores) -> float:
    """Average precision of the scores of all classes in one ranking."""
    return s.pooled.average_precision


@from_scores(
    "overall",
    symbol="AU1P",
    name="Hand and Till's AUC, weighted",
    tex=r"\frac{1}{k - 1} \sum_{i < j} (\mu_i + \mu_j) \frac{A(i|j) + A(j|i)}{2}",
    source=FERRI,
    **POOLED,
)
def weighted_hand_till_auc(s: Scores) -> Any:  # noqa: ANN401 (a numpy scalar)
    """Mean AUC over all pairs of classes, weighted by their items."""
    areas, weights = s.ranking().separation, s.support[:, None] + s.support
    defined = ~np.isnan(areas)
    return np.sum(areas[defined] * weights[defined]) / np.sum(weights[defined])


@from_scores(
    "overall",
    symbol="SAUC",
    name="Scored AUC",
    tex=r"\frac{1}{k (k - 1)} \sum_{i \ne j} E \max(0, p_i(x) - p_i(y)), x \in i, y \in j",
    source=FERRI,
    **BETWEEN_CLASSES,
)
def scored_auc(s: Scores) -> float:
    """Mean lead of an item of a class, in its probability, over those of another it exceeds."""
    share = np.divide(s.item_weights, s.support[s.true])
    present = np.flatnonzero(s.support)
    leads = [_lead(s.values[:, i].astype(np.float64), share, s.true == i) for i in present]
    return float(np.sum(leads) / np.float64(len(present) * (len(present) - 1)))


@from_scores(
    "overall",
    symbol="PAUC",
    name="Probabilistic AUC",
    tex=r"\frac{1}{k (k - 1)} \sum_{i \ne j} \frac{\bar p_i(i) - \bar p_i(j) + 1}{2}",
    source=FERRI,
    **BETWEEN_CLASSES,
)
def probabilistic_auc(s: Scores) -> Any:  # noqa: ANN401 (a numpy scalar)
    """Mean distance of the mean probabilities of a class among its own items and another's."""
    present = np.flatnonzero(s.support)
    sums = np.zeros((s.k, s.k))
    np.add.at(sums, s.true, s.values * s.item_weights[:, None])
    means = (sums[present] / s.support[present, None])[:, present]
    pairs = np.float64(len(present) * (len(present) - 1))
    return np.sum((means.diagonal() - means + 1) / 2 * (1 - np.eye(len(present)))) / pairs


TOP = {"takes": "top_k", "source": "TorchMetrics 1.9", "interval": "top_k"}


@from_scores(
    "class",
    symbol="top-k TPR",
    name="Top-k recall",
    tex=r"\frac{1}{m_i} \sum_{x \in i} [i \in \mathrm{top}_k(x)]",
    undefined=("no_scores", "no_true_samples"),
    **TOP,
)
def top_k_recall(s: Scores, most: int | None) -> Array:
    """Share of the items of the class for which it is among the k highest scores."""
    return _items(s, s.true, s.within_top(most)) / s.support


@from_scores(
    "class",
    symbol="top-k PPV",
    name="Top-k precision",
    tex=r"\frac{1}{\hat s_i} \sum_{x \in i} [i \in \mathrm{top}_k(x)]",
    undefined=("no_scores", "no_predictions"),
    never_predicted=lambda _: 0.0,
    **TOP,
)
def top_k_precision(s: Scores, most: int | None) -> Array:
    """Precision if an item whose true class is among its k highest scores is predicted as it."""
    within = s.within_top(most)
    predicted = np.where(within, s.true, s.top)
    return _items(s, s.true, within) / _items(s, predicted, np.ones(len(within)))


def _items(s: Scores, classes: Array, counted: Array) -> Array:
    return np.bincount(classes, counted * s.item_weights, s.k)


def _explained(loss: float, by_shares: float) -> float:
    return 1 - loss / by_shares if by_shares > 0 else np.nan


def _shares(s: Scores) -> Array:
    return s.support / np.add.reduce(s.support)


def _lead(values: Array, share: Array, positive: Array) -> float:
    """Sum max(0, p - q) over own items p and other items q, each counting with its share."""
    order = np.argsort(values)
    p, positive, share = values[order], positive[order], share[order]
    mass = np.where(positive, 0.0, share)
    return float(np.sum((share * (p * np.cumsum(mass) - np.cumsum(mass * p)))[positive]))
