from __future__ import annotations

import pytest

from sigma_initialisers import Constant
from sigma_kernel.contracts import Parameter
from sigma_kernel.errors import SigmaError
from sigma_testing import InitialiserSuite, draw


class TestConstant(InitialiserSuite):
    def make(self):
        return Constant(0.25)


@pytest.mark.parametrize("value", [0.0, -0.0, -3.5, 5e-324, 1.7e308])
def test_every_element_is_the_constant_bit_for_bit(value):
    assert {number.hex() for number in draw(Constant(value), Parameter((3, 2))).ravel().tolist()} == {value.hex()}


@pytest.mark.parametrize("value", ["banana", float("nan"), float("inf"), None, True])
def test_non_finite_numbers_are_refused(value):
    with pytest.raises(SigmaError, match="value"):
        Constant(value)
