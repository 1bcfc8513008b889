from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_optimisers import AdamW, Muon
from sigma_testing import GradientOptimiserSuite, Trial


def orthogonal(x):
    """Iterate the quintic polynomial on the singular values."""
    left, values, right = np.linalg.svd(x, full_matrices=False)
    values = values / np.linalg.norm(x)
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return left * values @ right


class TestMuon(GradientOptimiserSuite):
    """Its vectors, which AdamW updates."""

    def make(self):
        return Muon(0.01)

    def expected(self, start, gradients):
        values, first, second = [start], 0.0, 0.0
        for t, gradient in enumerate(gradients, 1):
            first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
            change = first / (1 - 0.9**t) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
            values.append(values[-1] * (1 - 0.01 * 0.1) - 0.01 * change)
        return np.array(values[1:])


SHAPES = {(4, 3): (4, 3), (3, 4): (3, 4), (1, 5): (1, 5), (5, 1): (5, 1), (2, 3, 2, 2): (2, 12), (6, 1, 2): (6, 2)}


@pytest.mark.parametrize(("shape", "matrix"), SHAPES.items())
@pytest.mark.parametrize("nesterov", [True, False])
def test_a_matrix_moves_along_its_orthogonalised_momentum(shape, matrix, nesterov):
    draw = np.random.default_rng(2)
    p, slope = draw.normal(size=shape), draw.normal(size=shape)
    trial = Trial(Muon(0.1, nesterov=nesterov), lambda x: f.sum(x["x"] * x["x"] * slope) * 0.5, {"x": p})
    velocity = 0.0
    for _ in range(4):
        gradient = p * slope
        velocity = 0.95 * velocity + 0.05 * gradient
        ahead = 0.95 * velocity + 0.05 * gradient if nesterov else velocity
        turned = orthogonal(ahead.reshape(matrix)).reshape(shape)
        p = p * (1 - 0.1 * 0.1) - 0.1 * 0.2 * np.sqrt(max(matrix)) * turned
    trial.run(4)
    np.testing.assert_allclose(trial.values["x"], p, rtol=1e-9, atol=1e-12)
    assert {name for _, name in trial.slots} == {"velocity", "updates"}


@pytest.mark.parametrize(("shape", "factor"), [((4, 9), 1.5), ((9, 4), 1.0), ((9, 2, 2), 1.5), ((2, 3, 3), 1.0)])
def test_the_original_size_of_updates_grows_with_outputs_over_inputs(shape, factor):
    start = np.random.default_rng(2).normal(size=shape)
    plain, scaled = (
        Trial(Muon(0.1, weight_decay=0.0, scale=scale), lambda p: f.sum(p["x"] * p["x"]), {"x": start})
        for scale in ("rms", "original")
    )
    plain.run(1)
    scaled.run(1)
    usual = 0.2 * np.sqrt(max(shape[0], np.prod(shape[1:])))
    np.testing.assert_allclose(scaled.values["x"] - start, (plain.values["x"] - start) / usual * factor, rtol=1e-9)


def test_singular_values_come_near_to_one():
    start = np.random.default_rng(2).normal(size=(6, 4))
    trial = Trial(Muon(1.0, weight_decay=0.0, scale="original"), lambda p: f.sum(p["x"] * p["x"]), {"x": start})
    trial.run(1)
    values = np.linalg.svd(start - trial.values["x"], compute_uv=False)
    assert ((values > 0.6) & (values < 1.25)).all()


def test_vectors_move_as_with_adamw():
    start = {"x": np.array([1.0, -2.0])}
    ours, theirs = (
        Trial(make(0.01, weight_decay=0.3), lambda p: f.sum(p["x"] * p["x"]), start) for make in (Muon, AdamW)
    )
    assert ours.run(5) == theirs.run(5)
