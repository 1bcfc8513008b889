"""Fit baselines to rows in closed form: a constant, least squares, and logistic regression."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import evolve, frozen

LEAST = 1e-7  # probability of a class without a row, whose logarithm is finite
RIDGE = 1.0  # weight of half the squared coefficients of standardised columns, as scikit-learn's C = 1
STEPS = 100
TOLERANCE = 1e-6  # of the mean loss, at which logistic regression has converged
CLASSES, DECISIONS, NUMBERS = "classes", "decisions", "numbers"

Link = Callable[[np.ndarray], np.ndarray]


@frozen(eq=False)
class Goals:
    """What an output is to predict for each row: targets of one ``kind``, and the weights of rows.

    ``values`` are class indices or probabilities of classes, decisions above 0 or not, or numbers; ``shape`` is that of
    a row of the output, and ``ignored`` a label that does not count.
    """

    kind: str
    values: np.ndarray
    shape: tuple[int, ...]
    weights: np.ndarray
    ignored: int | None = None

    @property
    def is_vector(self) -> bool:
        """Return whether a row has one class, or a vector of decisions or numbers."""
        rows, single = len(self.values), self.values.ndim == 1 or self.values.shape[1:] == (1,)
        return len(self.shape) == 1 and (single or self.values.shape == (rows, *self.shape))

    @property
    def fits_shape(self) -> bool:
        """Return whether targets have as many numbers as the output, or are indices of its classes."""
        if self.kind == CLASSES and self.values.dtype.kind in "iu":
            counted = self.labels[self.labels != self.ignored]
            return bool(counted.size and counted.min() >= 0 and counted.max() < self.shape[-1])
        return self.values[:1].size == int(np.prod(self.shape))

    @property
    def labels(self) -> np.ndarray:
        """Return class indices, (rows, places)."""
        return self.values.reshape(len(self.values), -1)

    def one_hot(self) -> Goals:
        """Return goals of vectors, (rows, size): probabilities of classes, decisions as 0 and 1, or numbers.

        Rows with the ignored label have weight 0.
        """
        values, weights, size = self.labels, self.weights, self.shape[-1]
        if self.kind == CLASSES and self.values.dtype.kind in "iu":
            there = values[:, 0] != self.ignored if self.ignored is not None else np.ones(len(values), bool)
            weights = weights * there
            values = np.eye(size)[np.where(there, values[:, 0], 0)]
        elif self.kind == DECISIONS:
            values = (values > 0).astype(np.float64)
        return evolve(self, values=np.asarray(values, np.float64), weights=weights)


def fit_constant(goals: Goals) -> np.ndarray:
    """Return the output, of its shape, that is best without inputs: logarithms of shares of classes, or means."""
    weights = goals.weights
    if goals.kind == CLASSES and goals.values.dtype.kind in "iu":
        labels = goals.labels
        each = np.broadcast_to(weights[:, None], labels.shape)
        counted = labels != goals.ignored if goals.ignored is not None else np.ones(labels.shape, bool)
        counts = np.bincount(labels[counted], each[counted], minlength=goals.shape[-1])
        return np.broadcast_to(np.log(np.maximum(counts / counts.sum(), LEAST)), goals.shape)
    if goals.kind == CLASSES:
        shares = np.average(goals.values.reshape(len(weights), *goals.shape), axis=0, weights=weights)
        return np.log(np.maximum(shares, LEAST))
    values = goals.labels > 0 if goals.kind == DECISIONS else goals.labels
    means = np.average(values, axis=0, weights=weights)
    if goals.kind == DECISIONS:
        means = np.clip(means, LEAST, 1 - LEAST)
        means = np.log(means / (1 - means))
    return means.reshape(goals.shape)


def fit_linear(inputs: np.ndarray, goals: Goals) -> tuple[np.ndarray, np.ndarray]:
    """Return matrix and shift of the linear model of (rows, features) that fits vectors best.

    Least squares for numbers; else logistic regression of standardised columns with an L2 penalty, converged.
    """
    vectors = goals.one_hot()
    middle, scale = np.average(inputs, axis=0, weights=vectors.weights), inputs.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    columns = np.concatenate([(inputs - middle) / scale, np.ones((len(inputs), 1))], axis=1)
    solution = _solve_squares(columns, vectors) if goals.kind == NUMBERS else _fit_logistic(columns, vectors)
    matrix = solution[:-1] / scale[:, None]
    return matrix, solution[-1] - middle @ matrix


def count_operations(rows: int, features: int, kind: str, shape: tuple[int, ...]) -> int:
    """Return about how many floating-point operations :func:`fit_linear` takes for goals of a kind and a shape."""
    steps = 0 if kind == NUMBERS else STEPS
    return rows * (features + 1) * (4 * (features + 1) + 4 * steps * (shape or (1,))[-1])


def _solve_squares(columns: np.ndarray, goals: Goals) -> np.ndarray:
    root = np.sqrt(goals.weights)[:, None]
    solution: np.ndarray = np.linalg.lstsq(columns * root, goals.values * root)[0]
    return solution


def _fit_logistic(columns: np.ndarray, goals: Goals) -> np.ndarray:
    """Return the coefficients of logistic regression, (features + 1, outputs), by conjugate gradients.

    They are preconditioned by a bound of the Hessian (Boehning, Multinomial logistic regression algorithm, 1992), and
    each step is a Newton step along its direction.
    """
    softmax = goals.kind == CLASSES
    link, bound = (_softmax, 0.5) if softmax else (_sigmoid, 0.25)
    rows, wanted, weights = np.ascontiguousarray(columns.T), np.ascontiguousarray(goals.values.T), goals.weights
    penalty = np.append(np.full(len(rows) - 1, RIDGE), 1e-9)  # the shift has none
    inverse = np.linalg.inv(bound * (rows * weights) @ columns + np.diag(penalty))
    here = direction = last = np.zeros((len(wanted), len(rows)))
    sums, size = here @ rows, 0.0
    for _ in range(STEPS):
        chances = link(sums)
        slope = (weights * (chances - wanted)) @ columns + penalty * here
        natural = slope @ inverse
        turn = max(0.0, float(np.vdot(natural, slope - last)) / size) if size else 0.0
        direction, last, size = turn * direction - natural, slope, float(np.vdot(natural, slope))
        along = direction @ rows
        curve = np.sum(weights * _spread(chances, along, softmax)) + np.sum(penalty * direction**2)
        step = -float(np.vdot(slope, direction)) / curve if curve else 0.0
        here, sums = here + step * direction, sums + step * along
        if step**2 * curve / 2 < TOLERANCE * weights.sum():
            break
    return here.T


def _spread(chances: np.ndarray, along: np.ndarray, softmax: bool) -> np.ndarray:
    """Return the variance of what is predicted, along a direction, of each output and row."""
    if not softmax:
        return np.asarray(chances * (1 - chances) * along**2)
    return np.asarray(chances * (along - (chances * along).sum(axis=0)) ** 2)


def _softmax(sums: np.ndarray) -> np.ndarray:
    powers = np.exp(sums - sums.max(axis=0))
    return np.asarray(powers / powers.sum(axis=0))


def _sigmoid(sums: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * sums)))
