from __future__ import annotations

import numpy as np
import pytest

from sigma_optimisers import ClipGlobalNorm
from sigma_testing import START, TransformSuite, transform_gradients


def norm(arrays):
    return np.linalg.norm(np.concatenate([array.ravel() for array in arrays]))


class TestClipGlobalNorm(TransformSuite):
    def make(self):
        return ClipGlobalNorm(0.5)


def test_all_gradients_shrink_by_one_factor_to_the_limit():
    sizes = zip(START.items(), (10.0, 0.01, 7.0), strict=True)
    gradients = {address: np.full(value.shape, size) for (address, value), size in sizes}
    pairs = transform_gradients(ClipGlobalNorm(3.0), gradients).values()
    assert norm(after for _, after in pairs) == pytest.approx(3.0, rel=1e-6)
    factors = np.concatenate([(after / before).ravel() for before, after in pairs])
    assert factors == pytest.approx(factors[0], rel=1e-14)


def test_short_gradients_are_kept_bit_for_bit():
    gradients = {address: np.full(value.shape, 0.01) for address, value in START.items()}
    assert all(
        np.array_equal(before, after) for before, after in transform_gradients(ClipGlobalNorm(3.0), gradients).values()
    )


def test_the_norm_is_over_the_matching_gradients_only():
    gradients = {address: np.full(value.shape, 100.0) for address, value in START.items()}
    pairs = transform_gradients(ClipGlobalNorm(3.0, match="**.weights"), gradients)
    clipped = {address for address, (before, after) in pairs.items() if not np.array_equal(before, after)}
    assert clipped == {"0-dense.weights", "1-dense.weights"}
    assert norm(pairs[address][1] for address in clipped) == pytest.approx(3.0, rel=1e-6)
