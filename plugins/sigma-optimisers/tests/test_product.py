from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel.errors import SigmaConfigError
from sigma_optimisers import ConstantFactor, Cosine, Product, StepDecay, WarmUp
from sigma_testing import ScheduleSuite


class TestProduct(ScheduleSuite):
    def make(self):
        return Product([WarmUp("15 iterations"), Cosine("3 epochs")])


def test_factors_are_multiplied():
    factors = Product([ConstantFactor(0.5), StepDecay("2 iterations", 0.5)]).factors(np.arange(5), np.zeros(5))
    assert factors.tolist() == [0.5, 0.5, 0.25, 0.25, 0.125]


def test_an_empty_product_of_schedules_is_refused():
    with pytest.raises(SigmaConfigError, match="nothing to multiply"):
        Product([])


@pytest.mark.parametrize("of", [["cosine"], "cosine", [ConstantFactor(1.0), None]])
def test_an_object_that_is_not_a_schedule_is_refused(of):
    with pytest.raises(SigmaConfigError, match="Product.of: must be a schedule"):
        Product(of)
