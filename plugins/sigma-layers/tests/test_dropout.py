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


def test_the_rest_is_scaled_up_so_that_the_mean_stays():
    found = dropped(0.4)
    assert set(np.unique(found)) == {0.0, 3.0 / 0.6}
    share = (found == 0).mean()
    assert abs(share - 0.4) < 5 * np.sqrt(0.4 * 0.6 / found.size)


def test_a_rate_of_zero_drops_nothing():
    assert (dropped(0.0) == 3.0).all()


def test_another_seed_drops_others():
    assert (dropped(0.5, 1) != dropped(0.5, 2)).any()


def test_nothing_changes_outside_training():
    it = traced(Dropout(0.4), [Spec((2, 3))], training=False, precision="float32")
    assert it.output is it.graph.inputs[0]


def test_the_rate_is_live():
    it = traced(Dropout(0.4), [Spec((2, 3), "float64")], training=True)
    assert "0-it.rate" in it.names
    assert it.shapes.live["0-it.rate"].value == 0.4


@pytest.mark.parametrize("rate", [1.0, -0.1, "a lot", None])
def test_a_rate_that_is_no_probability_below_one_is_refused(rate):
    with pytest.raises(SigmaConfigError, match=r"Dropout.rate: must be"):
        Dropout(rate)
