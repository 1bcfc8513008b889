from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_optimisers import L2, GradientDescent
from sigma_testing import START, TransformSuite, Trial, small_network, transform_gradients


class TestL2(TransformSuite):
    def make(self):
        return L2(0.5)


def test_l2_adds_the_gradient_of_half_the_square():
    _, after = transform_gradients(L2(0.5), {"0-dense.biases": np.full(4, 2.0)})["0-dense.biases"]
    assert after.tolist() == [2.15, 1.9, 2.0, 2.5]


def test_it_trains_like_a_penalty_in_the_loss():
    def penalised(parameters):
        return small_network(parameters) + 0.15 * sum(f.sum(p * p) for p in parameters.values())

    by_hand = Trial(GradientDescent(0.1), penalised)
    transform = Trial(GradientDescent(0.1, transforms={"decay": L2(0.3)}))
    by_hand.run(10)
    transform.run(10)
    for address in START:
        assert transform.values[address] == pytest.approx(by_hand.values[address], rel=1e-12)


def test_layers_are_matched_by_their_tags_too():
    gradients = transform_gradients(
        L2(0.5, match="*<dense>.biases"), {address: np.zeros_like(v) for address, v in START.items()}
    )
    assert [address for address, (_, after) in gradients.items() if after.any()] == ["0-dense.biases"]
