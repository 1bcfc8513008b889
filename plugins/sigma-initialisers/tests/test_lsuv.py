from __future__ import annotations

from math import prod, sqrt

import pytest

from sigma_initialisers import LSUV
from sigma_kernel.contracts import Parameter
from sigma_kernel.errors import SigmaError
from sigma_testing import RandomInitialiserSuite, draw


class TestLSUV(RandomInitialiserSuite):
    parameters = tuple(p for p in RandomInitialiserSuite.parameters if len(p.shape) > 1)
    large = RandomInitialiserSuite.large[1:]

    def make(self):
        return LSUV(rows=40)

    def deviation(self, parameter):
        return 1 / sqrt(max(parameter.shape[0], prod(parameter.shape[1:])))


def test_a_vector_is_refused_with_its_address():
    with pytest.raises(SigmaError, match=r"2-dense.weights\(.*two axes or more\. Match weights only"):
        draw(LSUV(), Parameter((10,)))
