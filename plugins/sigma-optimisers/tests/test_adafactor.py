from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_optimisers import Adafactor
from sigma_testing import GradientOptimiserSuite, Trial

TINY = np.finfo(np.float64).eps


def size(x):
    return np.sqrt(np.mean(x**2))


def followed(start, gradients, decay=0.0, least=1e-3):
    """Follow algorithms 4 and 5 of the paper for one parameter, with PyTorch's limits."""
    p, values = start, []
    rows = columns = square = 0.0
    for t, g in enumerate(gradients, 1):
        old = 1 - t**-0.8
        rate = max(least, size(p)) * min(0.01, 1 / np.sqrt(t))
        if p.ndim < 2:
            square = estimate = old * square + (1 - old) * g**2
        else:
            rows = old * rows + (1 - old) * np.mean(g**2, axis=-1, keepdims=True)
            columns = old * columns + (1 - old) * np.mean(g**2, axis=-2, keepdims=True)
            estimate = rows * columns / np.maximum(np.mean(rows, axis=-2, keepdims=True), TINY)
        update = g / np.sqrt(np.maximum(estimate, TINY**2))
        p = p * (1 - 0.01 * decay) - rate * update / max(1.0, size(update) / 1.0)
        values.append(p)
    return np.array(values)


class TestAdafactor(GradientOptimiserSuite):
    def make(self):
        return Adafactor(epsilon=1.1, weight_decay=0.1)

    def expected(self, start, gradients):
        return followed(start, gradients, 0.1, 1.1)


@pytest.mark.parametrize("shape", [(4, 3), (1, 5), (5, 1), (2, 3, 4), (2, 1, 3, 3)])
def test_a_matrix_is_estimated_from_its_rows_and_columns(shape):
    draw = np.random.default_rng(2)
    start, slope = draw.normal(size=shape), draw.normal(size=shape)
    trial = Trial(Adafactor(), lambda p: f.sum(p["x"] * p["x"] * slope), {"x": start})
    p, seen = start, []
    for _ in range(5):
        seen.append(2 * p * slope)
        p = followed(start, seen)[-1]
    trial.run(5)
    assert trial.values["x"] == pytest.approx(p, rel=1e-10)
    assert trial.slots["x", "row_square"].shape == (*shape[:-1], 1)
    assert trial.slots["x", "column_square"].shape == (*shape[:-2], 1, shape[-1])


def test_a_scalar_has_a_slot_of_its_own_shape():
    trial = Trial(Adafactor(), lambda p: p["x"] * p["x"], {"x": np.array(2.0)})
    trial.run(1)
    assert trial.slots["x", "square"] == pytest.approx(16.0)
    assert trial.values["x"] == pytest.approx(2.0 - 2.0 * 0.01)
