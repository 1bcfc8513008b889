from __future__ import annotations

from math import ceil, sqrt
from statistics import NormalDist

import numpy as np
import pytest

from sigma_initialisers import Sparse
from sigma_kernel.contracts import Parameter
from sigma_kernel.errors import SigmaConfigError
from sigma_testing import InitialiserSuite, distance, draw


class TestSparse(InitialiserSuite):
    parameters = (Parameter((5, 3)), Parameter((3, 5)), Parameter((1, 1)), Parameter((200, 120)))

    def make(self):
        return Sparse(0.6)


@pytest.mark.parametrize("sparsity", [0.0, 0.1, 0.35, 0.9, 1.0])
@pytest.mark.parametrize("shape", [(40, 30), (7, 2), (1, 5)])
def test_each_column_has_the_share_of_zeros_rounded_up(sparsity, shape):
    zeros = (draw(Sparse(sparsity, 1.0), Parameter(shape)) == 0).sum(axis=0)
    np.testing.assert_array_equal(zeros, ceil(sparsity * shape[0]))


def test_zeros_may_be_anywhere_and_the_others_are_normal():
    values = draw(Sparse(0.5, 2.0), Parameter((100, 400)), seed=3)
    share = (values == 0).mean(axis=1)  # of each row: binomial, 1/2
    assert np.abs(share - 0.5).max() < 5 * 0.5 / sqrt(400)
    others = values[values != 0]
    assert distance(others, NormalDist(0.0, 2.0).cdf) < 1.95 / sqrt(others.size)


@pytest.mark.parametrize("shape", [(10,), (4, 3, 2)])
def test_only_a_matrix_can_be_sparse(shape):
    with pytest.raises(SigmaConfigError, match=r"2-dense.weights\(.*are a matrix\. Match those of dense layers"):
        draw(Sparse(0.5), Parameter(shape))


def test_a_share_is_from_0_to_1():
    for wrong in (-0.1, 1.1, "half"):
        with pytest.raises(SigmaConfigError, match="Sparse.sparsity: must be"):
            Sparse(wrong)
