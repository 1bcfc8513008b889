"""Fourier transforms agree with NumPy's and with their definition."""

from __future__ import annotations

import re

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph.node import symbol

RNG = np.random.default_rng(2)


def joined(y):
    return y[..., 0] + 1j * y[..., 1]


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 30, 31])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_transform_is_its_definition_and_its_inverse_gives_the_entries_back(n, precision):
    x = RNG.normal(size=(2, n)).astype(precision)
    waves = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n // 2 + 1)) / n)
    near = 1e-5 if precision == "float32" else 1e-12
    y = f.rfft(x)
    assert (y.shape, y.dtype) == ((2, n // 2 + 1, 2), precision)
    np.testing.assert_allclose(joined(y), x @ waves, rtol=near, atol=near * n)
    np.testing.assert_allclose(f.irfft(y, n), x, rtol=near, atol=near)
    assert f.irfft(y, n).dtype == precision


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_any_axis_is_transformed_and_the_parts_are_last(axis):
    x = RNG.normal(size=(3, 4, 6))
    y = f.rfft(x, axis)
    np.testing.assert_allclose(joined(y), np.fft.rfft(x, axis=axis), atol=1e-13)
    np.testing.assert_allclose(f.irfft(y, x.shape[axis], axis), x, atol=1e-14)
    if x.shape[axis] % 2 == 0:
        np.testing.assert_allclose(f.irfft(y, axis=axis), x, atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_the_gradient_of_a_transform_is_its_transpose(n):
    """Compare with the matrices of both maps, column by column."""
    count = n // 2 + 1
    forth = np.array([f.rfft(row) for row in np.eye(n)]).reshape(n, -1)
    back = np.array([f.irfft(row.reshape(count, 2), n) for row in np.eye(2 * count)])
    w, v = RNG.normal(size=(count, 2)), RNG.normal(size=n)
    np.testing.assert_allclose(
        f.gradient(lambda x: f.sum(f.rfft(x) * w))(np.ones(n)), forth @ w.reshape(-1), atol=1e-13
    )
    slope = f.gradient(lambda y: f.sum(f.irfft(y, n) * v))(np.ones((count, 2)))
    np.testing.assert_allclose(slope.reshape(-1), back @ v, atol=1e-13)


def test_a_signal_that_is_not_finite_has_a_spectrum_of_nan_and_leaves_others_alone():
    x = np.array([[1.0, 2.0, 3.0], [np.inf, 0.0, 0.0], [np.nan, 1.0, 1.0]])
    y = f.rfft(x)
    assert np.isnan(y).all((1, 2)).tolist() == [False, True, True]
    assert np.isnan(f.irfft(y, 3)).all(1).tolist() == [False, True, True]


def test_a_convolution_is_a_product_of_spectra():
    x, w = RNG.normal(size=(2, 9)), RNG.normal(size=9)

    def circular(x, w):
        return f.irfft(f.einsum("...fa,fb,abc->...fc", f.rfft(x), f.rfft(w), PRODUCT), 9)

    expected = np.array([[sum(row[(t - k) % 9] * w[k] for k in range(9)) for t in range(9)] for row in x])
    np.testing.assert_allclose(f.evaluate(circular, x, w), expected, atol=1e-12)


PRODUCT = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [-1.0, 0.0]]])  # of complex numbers


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: f.rfft(symbol((3, 0))), "rfft((3, 0)): an empty side has no spectrum"),
        (lambda: f.rfft(symbol((3,), "int32")), "it takes float32 or float64, not int32"),
        (lambda: f.irfft(symbol((3, 4)), 4), "a signal of 4 entries has a spectrum of shape (..., 3, 2)"),
        (lambda: f.irfft(symbol((3, 2)), 0), "a signal has at least 1 entry"),
        (lambda: f.irfft(symbol((1, 2))), "a signal has at least 1 entry"),
        (lambda: f.rfft(symbol((3,)), 1), "axis 1 of shape (3,): the rank is 1"),
        (lambda: f.irfft(symbol((3, 2)), 4, axis=1), "axis 1 of shape (3,): the rank is 1"),
    ],
)
def test_wrong_operands_are_explained(call, message):
    with pytest.raises(SigmaGraphError, match=re.escape(message)):
        call()
