from __future__ import annotations

from math import prod, sqrt
from statistics import NormalDist

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from sigma_initialisers import Orthogonal
from sigma_kernel.contracts import Parameter
from sigma_kernel.errors import SigmaError
from sigma_testing import RandomInitialiserSuite, distance, draw


class TestOrthogonal(RandomInitialiserSuite):
    parameters = tuple(p for p in RandomInitialiserSuite.parameters if len(p.shape) > 1)
    large = RandomInitialiserSuite.large[1:]

    def make(self):
        return Orthogonal()

    def deviation(self, parameter):
        return 1 / sqrt(max(parameter.shape[0], prod(parameter.shape[1:])))


@pytest.mark.parametrize("shape", [(50, 50), (80, 30), (30, 80), (6, 4, 3, 3), (40, 2, 3, 3), (1, 9), (9, 1)])
@pytest.mark.parametrize(("gain", "factor"), [(1.0, 1.0), ("relu", sqrt(2))])
def test_whichever_are_fewer_of_rows_and_columns_are_orthonormal(shape, gain, factor):
    matrix = draw(Orthogonal(gain), Parameter(shape)).reshape(shape[0], -1)
    fewer = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    assert np.abs(fewer @ fewer.T - factor**2 * np.eye(len(fewer))).max() < 1e-12


def test_orthogonal_matrices_prefer_no_direction():
    """An element of a uniform rotation in three dimensions is uniform itself (Archimedes)."""
    elements = np.array([draw(Orthogonal(), Parameter((3, 3)), seed=seed) for seed in range(2000)])
    for i, j in np.ndindex(3, 3):
        assert distance(elements[:, i, j], lambda x: (x + 1) / 2) < 1.95 / sqrt(len(elements))
    assert abs((np.linalg.det(elements) > 0).mean() - 0.5) < 4 * 0.5 / sqrt(len(elements))


def test_large_rotations_have_nearly_normal_elements():
    elements = draw(Orthogonal(), Parameter((150, 150))) * sqrt(150)
    assert distance(elements, NormalDist().cdf) < 1.95 / 150


@pytest.mark.parametrize("shape", [(), (10,)])
def test_a_vector_is_refused_with_its_address(shape):
    with pytest.raises(SigmaError, match=r"2-dense.weights\(.*two axes or more\. Match weights only"):
        draw(Orthogonal(), Parameter(shape))


def test_blas_computes_on_one_thread(monkeypatch):
    blas, factorise, counts = ThreadpoolController().select(user_api="blas"), np.linalg.qr, []
    monkeypatch.setattr(np.linalg, "qr", lambda x: counts.extend(x["num_threads"] for x in blas.info()) or factorise(x))
    with blas.limit(limits=2):
        draw(Orthogonal(), Parameter((8, 8)))
    assert {*counts} <= {1}  # none where the library cannot be told
