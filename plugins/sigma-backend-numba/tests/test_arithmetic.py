"""Exponentials, logarithms and hyperbolic tangents of float32 against double precision."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend
from sigma_kernel.graph import Graph, ops, symbol

RANGES = {"exp": (-86.5, 88.7), "tanh": (-12.0, 12.0), "log": (1e-30, 1e30)}
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -1.0, 1.0, 88.9, -120.0], np.float32)


def computed(name: str, values: np.ndarray, approximate: bool) -> np.ndarray:
    x = symbol(values.shape)
    call = NumbaBackend(approximate=approximate).lower(Graph((x,), (getattr(ops, name)(x),)), {})
    found: np.ndarray = call(values)[0]
    return found


def exact(name: str, values: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        found: np.ndarray = getattr(np, name)(values.astype(np.float64))
    return found


def drawn(name: str) -> np.ndarray:
    low, high = RANGES[name]
    draw = np.random.default_rng(0)
    if name == "log":
        return np.concatenate([np.geomspace(low, high, 40_000), 1.0 + draw.normal(size=9999) * 0.3]).astype(np.float32)
    return np.concatenate([np.linspace(low, high, 40_000), draw.normal(size=9999) * 0.1]).astype(np.float32)


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("approximate", [False, True])
def test_approximation_errors_stay_within_their_bounds(name, approximate):
    values = drawn(name)
    values = values[values > 0] if name == "log" else values
    wanted = exact(name, values)
    error = np.abs(computed(name, values, approximate) - wanted) / np.maximum(np.abs(wanted), 1e-37)
    assert error.max() < (1e-4 if approximate else 3 * 2.0**-23)


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("approximate", [False, True])
def test_non_finite_results_are_not_hidden(name, approximate):
    with np.errstate(over="ignore"):
        wanted = exact(name, SPECIAL).astype(np.float32)
    found = computed(name, SPECIAL, approximate)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(found) * np.sign(found), np.isinf(wanted) * np.sign(wanted))
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4)
