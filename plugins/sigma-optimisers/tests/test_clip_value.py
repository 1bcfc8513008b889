from __future__ import annotations

import numpy as np

from sigma_optimisers import ClipValue
from sigma_testing import TransformSuite, transform_gradients


class TestClipValue(TransformSuite):
    def make(self):
        return ClipValue(0.5)


def test_elements_beyond_the_limit_are_clipped_and_others_kept():
    gradients = {"0-dense.biases": np.array([-3.0, -2.0, 0.5, 1e300])}
    before, after = transform_gradients(ClipValue(2.0), gradients)["0-dense.biases"]
    assert after.tolist() == [-2.0, -2.0, 0.5, 2.0]
    assert before.tolist() == [-3.0, -2.0, 0.5, 1e300]
