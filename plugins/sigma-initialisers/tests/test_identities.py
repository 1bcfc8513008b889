"""Identity and delta-orthogonal kernels, by what layers with them compute."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from sigma_initialisers import DeltaOrthogonal, Identity
from sigma_kernel import functions as f
from sigma_kernel.contracts import Parameter
from sigma_kernel.errors import SigmaConfigError
from sigma_testing import InitialiserSuite, RandomInitialiserSuite, draw

MATRICES = tuple(p for p in RandomInitialiserSuite.parameters if len(p.shape) > 1)


class TestIdentity(InitialiserSuite):
    parameters = MATRICES

    def make(self):
        return Identity()


class TestDeltaOrthogonal(InitialiserSuite):
    parameters = (Parameter((6, 2, 3, 3)), Parameter((4, 4, 5)), Parameter((3, 1, 1, 2, 4)))

    def make(self):
        return DeltaOrthogonal()


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5)])
def test_a_matrix_is_the_identity_as_far_as_it_goes(shape):
    np.testing.assert_array_equal(draw(Identity(), Parameter(shape)), np.eye(*shape))
    np.testing.assert_allclose(draw(Identity("relu"), Parameter(shape)), sqrt(2) * np.eye(*shape), rtol=1e-15)


@pytest.mark.parametrize("sides", [(3,), (5, 3), (1, 3, 5)])
def test_a_convolution_with_identity_kernels_returns_its_input(sides):
    x = np.random.default_rng(0).normal(size=(2, 4, *(6 for _ in sides)))
    padding = [side // 2 for side in sides]
    kernels = draw(Identity(), Parameter((4, 4, *sides)))
    np.testing.assert_array_equal(f.convolution(x, kernels, padding=padding), x)
    few, many = (draw(Identity(), Parameter((n, 4, *sides))) for n in (3, 5))
    np.testing.assert_array_equal(f.convolution(x, few, padding=padding), x[:, :3])
    np.testing.assert_array_equal(f.convolution(x, many, padding=padding)[:, 4:], 0.0)
    groups = draw(Identity(groups=2), Parameter((4, 2, *sides)))
    np.testing.assert_array_equal(f.convolution(x, groups, padding=padding, groups=2), x)


@pytest.mark.parametrize("shape", [(4, 4, 3), (6, 4, 3, 5), (5, 5, 1, 3, 3), (4, 3, 2, 4)])
@pytest.mark.parametrize(("gain", "factor"), [(1.0, 1.0), ("relu", sqrt(2))])
def test_delta_orthogonal_kernels_have_orthonormal_columns_in_the_middle_alone(shape, gain, factor):
    values = draw(DeltaOrthogonal(gain), Parameter(shape), seed=2)
    middle = values[(slice(None), slice(None), *(side // 2 for side in shape[2:]))]
    np.testing.assert_allclose(middle.T @ middle, factor**2 * np.eye(shape[1]), rtol=0, atol=1e-12)
    assert np.count_nonzero(values) == np.count_nonzero(middle)


def test_a_convolution_with_delta_orthogonal_kernels_keeps_the_norm_of_every_place():
    x = np.random.default_rng(0).normal(size=(2, 3, 6, 6))
    y = f.convolution(x, draw(DeltaOrthogonal(), Parameter((8, 3, 3, 3))), padding=1)
    np.testing.assert_allclose((y**2).sum(1), (x**2).sum(1), rtol=1e-12)


def test_shapes_that_have_no_such_values_are_refused_with_their_address():
    with pytest.raises(SigmaConfigError, match=r"2-dense.weights\(4,\): an identity needs two axes"):
        draw(Identity(), Parameter((4,)))
    with pytest.raises(SigmaConfigError, match=r"\(5, 2, 3\): 2 groups do not divide 5 filters"):
        draw(Identity(groups=2), Parameter((5, 2, 3)))
    with pytest.raises(SigmaConfigError, match=r"\(4, 4\): kernels of a convolution have three axes .* orthogonal"):
        draw(DeltaOrthogonal(), Parameter((4, 4)))
    with pytest.raises(SigmaConfigError, match=r"\(3, 4, 3\): 3 filters cannot keep 4 channels apart"):
        draw(DeltaOrthogonal(), Parameter((3, 4, 3)))
