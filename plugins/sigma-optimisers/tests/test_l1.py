from __future__ import annotations

import numpy as np

from sigma_optimisers import L1, GradientDescent
from sigma_testing import START, TransformSuite, Trial, transform_gradients


class TestL1(TransformSuite):
    def make(self):
        return L1(0.5)


def test_l1_adds_the_gradient_of_the_absolute_value_and_0_at_0():
    _, after = transform_gradients(L1(0.5), {"0-dense.biases": np.full(4, 2.0)})["0-dense.biases"]
    assert START["0-dense.biases"].tolist() == [0.3, -0.2, 0.0, 1.0]
    assert after.tolist() == [2.5, 1.5, 2.0, 2.5]


def test_training_with_it_changes_the_matching_parameters():
    plain = Trial(GradientDescent(0.1))
    shrunk = Trial(GradientDescent(0.1, transforms={"lasso": L1(0.5, match="1-dense.*")}))
    plain.run(1)
    shrunk.run(1)
    difference = {address: plain.values[address] - shrunk.values[address] for address in START}
    assert np.allclose(difference["1-dense.weights"], 0.05 * np.sign(START["1-dense.weights"]), rtol=0, atol=1e-15)
    assert not difference["0-dense.weights"].any()
