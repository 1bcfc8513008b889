from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph import Spec
from sigma_kernel.testing import LayerSuite, traced
from sigma_layers import Dropout


class TestDropout(LayerSuite):
    inputs = (Spec((6, 3)),)

    def make(self):
        return Dropout(0.4)


def dropped(rate, seed=1, shape=(200, 500)):
    it = traced(Dropout(rate), [Spec(shape, "float64")], training=True)
    return it.run(it.values([np.full(shape, 3.0)], seed))[0]


def test_remaining_elements_are_scaled_to_keep_the_mean():
    found = dropped(0.4)
    assert set(np.unique(found)) == {0.0, 3.0 / 0.6}
    share = (found == 0).mean()
    assert abs(share - 0.4) < 5 * np.sqrt(0.4 * 0.6 / found.size)


def test_a_rate_of_zero_drops_nothing():
    assert (dropped(0.0) == 3.0).all()


def test_another_seed_drops_other_elements():
    assert (dropped(0.5, 1) != dropped(0.5, 2)).any()


def test_dropout_is_the_identity_outside_training():
    it = traced(Dropout(0.4), [Spec((2, 3))], training=False, precision="float32")
    assert it.output is it.graph.inputs[0]


def test_the_dropout_rate_can_be_set_live():
    it = traced(Dropout(0.4), [Spec((2, 3), "float64")], training=True)
    assert "0-it.rate" in it.names
    assert it.shapes.live["0-it.rate"].value == 0.4


@pytest.mark.parametrize("rate", [1.0, -0.1, "a lot", None])
def test_a_dropout_rate_outside_0_to_below_1_is_refused(rate):
    with pytest.raises(SigmaConfigError, match=r"Dropout.rate: must be"):
        Dropout(rate)
