"""Attention: masks, causality, and rows without a key."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.graph.calculus import gradient

RANDOM = np.random.default_rng(3)
Q, K, V = RANDOM.normal(size=(3, 2, 5, 4))
RESULTS = {"value": lambda q, k, v, **how: f.attention(q, k, v, **how)} | {
    name: lambda q, k, v, i=i, **how: gradient(lambda *x: f.sum(f.sin(f.attention(*x, **how))), (0, 1, 2))(q, k, v)[i]
    for i, name in enumerate(("queries", "keys", "values"))
}


@pytest.mark.parametrize("t", range(5))
def test_a_causal_result_and_its_gradients_do_not_change_with_what_comes_later(t):
    later = [np.concatenate([x[:, :t], RANDOM.normal(size=(2, 5 - t, 4)) * 9], 1) for x in (Q, K, V)]
    first, second = (f.attention(*x, causal=True)[:, :t] for x in ((Q, K, V), later))
    np.testing.assert_array_equal(first, second)

    def until(*x):
        return f.sum(f.sin(f.narrow(f.attention(*x, causal=True), 1, 0, t)))

    for found in gradient(until, (0, 1, 2))(Q, K, V):
        assert not found[:, t:].any()


@pytest.mark.parametrize("result", RESULTS)
def test_keys_behind_a_mask_count_as_little_as_keys_that_are_not_there(result):
    mask = np.arange(5) < 3
    whole = RESULTS[result](Q, K, V, mask=mask)
    short = RESULTS[result](Q, K[:, :3], V[:, :3])
    if result in ("keys", "values"):
        assert not whole[:, 3:].any()
        whole = whole[:, :3]
    np.testing.assert_allclose(whole, short, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_query_without_a_key_gives_zero_and_no_gradient(result, dtype):
    mask = np.ones((5, 5), bool)
    mask[2] = False
    operands = [x.astype(dtype) for x in (Q, K, V)]
    found = RESULTS[result](*operands, mask=mask)
    assert found.dtype == dtype
    assert np.isfinite(found).all()
    if result in ("value", "queries"):
        assert not found[:, 2].any()
        assert found[:, 1].any()
    assert not RESULTS[result](*operands, mask=np.zeros((5, 5), bool)).any()


@pytest.mark.parametrize("size", [1e3, 1e10, 1e18])
def test_scores_of_any_size_in_float32_are_masked_without_overflow(size):
    q = np.full((1, 1, 1), size, np.float32)
    keys = np.array([[[-size], [size], [-size / 2]]], np.float32)
    values = np.array([[[1.0], [2.0], [4.0]]], np.float32)
    for mask, best in (([True, False, False], 1.0), ([True, False, True], 4.0), ([True, True, True], 2.0)):
        found = f.attention(q, keys, values, np.array(mask))
        np.testing.assert_array_equal(found, [[[best]]])


def test_weights_are_those_of_the_values():
    mask = np.tri(5, dtype=bool)
    weights = f.evaluate(lambda q, k: f.attention_weights(q, k, causal=True), Q, K)
    np.testing.assert_allclose(weights.sum(-1), 1.0, rtol=1e-12)
    assert not weights[:, ~mask].any()
    np.testing.assert_allclose(weights @ V, f.attention(Q, K, V, mask), rtol=1e-12)
