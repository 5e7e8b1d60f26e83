"""How well does one point of the grid predict? k-fold cross-validated deviance of an elastic-net fit, as cv.glmnet's.

glmnet minimises  loss / n + lambda * ((1 - alpha) / 2 * |b|_2^2 + alpha * |b|_1)  (Friedman, Hastie and Tibshirani,
J. Stat. Software 33, 2010). scikit-learn's `l1_ratio` is glmnet's alpha, its C is 1 / (n * lambda), its alpha lambda.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold

from sweep.arguments import Point

MATTERING = 8  # columns with a true coefficient
SHARED = 0.5  # correlation of neighbouring columns, which distinguishes ridge, lasso and their mixtures
ITERATIONS = 10_000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """deviance: mean over the folds; error: its standard error; nonzero: coefficients of the fit on all rows."""

    deviance: float
    error: float
    nonzero: int
    converged: bool

    def row(self) -> dict[str, float | int | bool]:
        return {
            "deviance": round(self.deviance, 6),
            "error": round(self.error, 6),
            "nonzero": self.nonzero,
            "converged": self.converged,
        }


def generate(point: Point) -> tuple[Floats, Floats]:
    """(rows, columns) inputs and (rows,) responses: the same in every task of a sweep."""
    draw = np.random.default_rng(point.seed)
    inputs = draw.standard_normal((point.rows, point.columns))
    for column in range(1, point.columns):
        inputs[:, column] = SHARED * inputs[:, column - 1] + np.sqrt(1 - SHARED**2) * inputs[:, column]
    coefficients = np.zeros(point.columns)
    where = draw.choice(point.columns, MATTERING, replace=False)
    coefficients[where] = draw.normal(0, 1, MATTERING)
    signal = inputs @ coefficients
    if point.family == "gaussian":
        return inputs, signal + draw.standard_normal(point.rows)
    return inputs, (draw.random(point.rows) < 1 / (1 + np.exp(-signal))).astype(np.float64)


def cross_validate(point: Point) -> Fit:
    inputs, responses = generate(point)
    split = StratifiedKFold if point.family == "binomial" else KFold
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        folds = split(point.folds, shuffle=True, random_state=point.seed).split(inputs, responses)
        deviances = [_deviance(point, inputs[a], responses[a], inputs[b], responses[b]) for a, b in folds]
        whole = unfitted_model(point, point.rows).fit(inputs, responses)
    return Fit(
        deviance=float(np.mean(deviances)),
        error=float(np.std(deviances, ddof=1) / np.sqrt(len(deviances))),
        nonzero=int(np.count_nonzero(whole.coef_)),
        converged=not any(issubclass(each.category, ConvergenceWarning) for each in caught),
    )


def unfitted_model(point: Point, rows: int) -> Any:
    if point.family == "gaussian":
        return ElasticNet(alpha=point.penalty, l1_ratio=point.alpha, max_iter=ITERATIONS)
    return LogisticRegression(
        solver="saga",
        l1_ratio=point.alpha,
        C=1 / (rows * point.penalty),
        max_iter=ITERATIONS,
        random_state=point.seed,
    )


def _deviance(point: Point, inputs: Floats, responses: Floats, held_inputs: Floats, held_responses: Floats) -> float:
    """For the rows held out: mean squared error, or twice the mean negative log likelihood."""
    model = unfitted_model(point, len(responses)).fit(inputs, responses)
    if point.family == "gaussian":
        return float(np.mean((model.predict(held_inputs) - held_responses) ** 2))
    chance = np.clip(model.predict_proba(held_inputs)[:, 1], 1e-12, 1 - 1e-12)
    return float(-2 * np.mean(held_responses * np.log(chance) + (1 - held_responses) * np.log1p(-chance)))
