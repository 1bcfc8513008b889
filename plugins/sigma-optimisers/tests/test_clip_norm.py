from __future__ import annotations

import numpy as np
import pytest

from sigma_optimisers import ClipNorm
from sigma_testing import START, TransformSuite, transform_gradients


class TestClipNorm(TransformSuite):
    def make(self):
        return ClipNorm(0.5)


def test_each_long_gradient_is_scaled_separately_and_keeps_its_direction():
    sizes = zip(START.items(), (10.0, 0.01, 7.0), strict=True)
    gradients = {address: np.full(value.shape, size) for (address, value), size in sizes}
    for before, after in transform_gradients(ClipNorm(1.0), gradients).values():
        assert np.linalg.norm(after) == pytest.approx(min(1.0, np.linalg.norm(before)), rel=1e-6)
        assert after / np.linalg.norm(after) == pytest.approx(before / np.linalg.norm(before), rel=1e-12)


def test_a_gradient_whose_norm_is_the_limit_changes_by_at_most_a_millionth():
    _, after = transform_gradients(ClipNorm(2.0), {"0-dense.biases": np.ones(4)})["0-dense.biases"]
    assert after == pytest.approx(2.0 / (2.0 + 1e-6), rel=1e-15)
