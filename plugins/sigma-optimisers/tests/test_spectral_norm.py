from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaNetworkError
from sigma_optimisers import GradientDescent, SpectralNorm
from sigma_testing import START, ModifierSuite, Trial


class TestSpectralNorm(ModifierSuite):
    def make(self):
        return SpectralNorm(2.0, iterations=60)


def still(start, steps=1, dtype="float64", **settings):
    """Return a matrix after some steps without any gradient, and its vector."""
    optimiser = GradientDescent(1.0, modifiers={"it": SpectralNorm(**settings)})
    trial = Trial(optimiser, lambda p: f.sum(p["x"]) * 0.0, {"x": np.asarray(start)}, dtype=dtype)
    trial.run(steps)
    return trial.values["x"], trial.slots["x", "modifiers.it.vector"]


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (1, 5), (5, 1), (1, 1)])
def test_the_largest_singular_value_becomes_the_norm_in_the_course_of_steps(shape):
    start = 3.0 * np.random.default_rng(1).normal(size=shape)
    found, vector = still(start, 200, norm=1.5)
    np.testing.assert_allclose(found, 1.5 * start / np.linalg.norm(start, 2), rtol=1e-9)
    assert vector.shape == shape[:1]  # the units of a dense layer are columns
    assert np.linalg.norm(vector) == pytest.approx(1.0)


def test_kernels_of_a_convolution_have_their_units_in_front():
    start = np.random.default_rng(1).normal(size=(4, 3, 2, 2))
    found, vector = still(start, 200, axis=0)
    assert np.linalg.norm(found.reshape(4, 12), 2) == pytest.approx(1.0)
    assert vector.shape == (12,)


def test_a_vector_has_its_euclidean_norm():
    assert still([3.0, 4.0])[0] == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_matrix_of_zeros_stays(dtype):
    assert still(np.zeros((3, 2)), 2, dtype)[0].tolist() == np.zeros((3, 2)).tolist()


def test_a_matrix_whose_columns_sum_to_zero_has_a_start_that_is_not_orthogonal_to_it():
    start = np.array([[2.0, 1.0, -3.0], [-2.0, -1.0, 3.0]])
    assert np.linalg.norm(still(start, 50)[0], 2) == pytest.approx(1.0)


def test_more_iterations_in_a_step_come_nearer():
    start = np.random.default_rng(1).normal(size=(6, 6))
    errors = [abs(np.linalg.norm(still(start, iterations=n)[0], 2) - 1.0) for n in (1, 5, 50)]
    assert errors[0] > errors[1] > errors[2] < 1e-6


def test_an_axis_out_of_range_is_refused():
    with pytest.raises(SigmaNetworkError, match=r"spectral_norm\(\(3, 2\)\): has no axis 2. Set axis to"):
        still(np.zeros((3, 2)), axis=2)


def test_only_matching_parameters_are_scaled_and_have_a_vector():
    trial = Trial(GradientDescent(0.1, modifiers={"it": SpectralNorm(0.5, match="1-*.weights", iterations=50)}))
    trial.run(2)
    assert {address for address, name in trial.slots if name.endswith(".vector")} == {"1-dense.weights"}
    assert np.linalg.norm(trial.values["1-dense.weights"], 2) == pytest.approx(0.5, rel=1e-3)
    assert np.linalg.norm(trial.values["0-dense.weights"], 2) > 1.0 < np.linalg.norm(START["0-dense.weights"], 2)
