"""Linear algebra agrees with NumPy and SciPy, and is NaN, alone, where there is no result."""

from __future__ import annotations

import re

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph.node import symbol

RNG = np.random.default_rng(4)
A, B = RNG.normal(size=(4, 3, 3)), RNG.normal(size=(4, 3, 2))
P = A @ A.swapaxes(1, 2) + 0.5 * np.eye(3)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_solutions_are_those_of_numpy(precision):
    a, b = A.astype(precision), B.astype(precision)
    near = 1e-3 if precision == "float32" else 1e-11
    np.testing.assert_allclose(f.solve(a, b), np.linalg.solve(A, B), rtol=near)
    np.testing.assert_allclose(f.solve(a[0], b), np.linalg.solve(A[:1], B), rtol=near)
    np.testing.assert_allclose(f.solve(a, b[0]), np.linalg.solve(A, B[:1]), rtol=near)
    np.testing.assert_allclose(f.solve(a[0], b[0, :, 0]), np.linalg.solve(A[0], B[0, :, 0]), rtol=near)
    assert f.solve(a, b).dtype == precision


def test_factors_are_lower_triangular_and_read_the_symmetric_part():
    np.testing.assert_allclose(f.cholesky(P), np.linalg.cholesky(P), rtol=1e-12, atol=1e-14)
    skewed = P + np.array([[0.0, 1.0, 2.0], [-1.0, 0.0, 3.0], [-2.0, -3.0, 0.0]])
    np.testing.assert_allclose(f.cholesky(skewed), np.linalg.cholesky(P), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "shape", [(3, 3), (5, 2), (2, 5), (1, 4), (4, 1), (1, 1), (3, 4, 2), (0, 3), (3, 0), (0, 2, 2)]
)
def test_a_decomposition_is_reduced_and_its_vectors_are_orthogonal(shape):
    x = RNG.normal(size=shape)
    u, s, v = f.svd(x)
    np.testing.assert_allclose(s, np.linalg.svd(x, compute_uv=False), rtol=1e-12)
    np.testing.assert_allclose(u * s[..., None, :] @ v, x, atol=1e-13)
    least = np.eye(min(shape[-2:]))
    np.testing.assert_allclose(u.swapaxes(-1, -2) @ u, np.broadcast_to(least, (*shape[:-2], *least.shape)), atol=1e-13)
    np.testing.assert_allclose(v @ v.swapaxes(-1, -2), np.broadcast_to(least, (*shape[:-2], *least.shape)), atol=1e-13)
    if u.size:
        size = np.abs(u)
        first = (size >= 0.3 * size.max(-2, keepdims=True)).argmax(-2)
        assert (np.take_along_axis(u, first[..., None, :], -2) > 0).all()


def test_a_matrix_without_a_result_is_nan_and_leaves_the_others_alone():
    several = np.stack([A[0], np.zeros((3, 3)), np.full((3, 3), np.inf), A[1]])
    found = f.solve(several, B[0])
    assert np.isnan(found).all((1, 2)).tolist() == [False, True, True, False]
    np.testing.assert_allclose(found[[0, 3]], np.linalg.solve(several[[0, 3]], B[:1]), rtol=1e-12)
    factors = f.cholesky(np.stack([P[0], -P[0], P[1] * np.nan, P[1]]))
    assert np.isnan(factors).all((1, 2)).tolist() == [False, True, True, False]
    np.testing.assert_allclose(factors[[0, 3]], np.linalg.cholesky(P[:2]), rtol=1e-12, atol=1e-14)
    parts = f.svd(np.stack([A[0], A[0] * np.nan]))
    assert [np.isnan(x[1]).all() and not np.isnan(x[0]).any() for x in parts] == [True] * 3


def test_singular_values_have_a_gradient_where_vectors_have_none():
    weights = np.arange(3.0)
    slope = f.gradient(lambda x: f.sum(f.svd(x)[1] * weights))
    np.testing.assert_allclose(slope(np.eye(3)), np.diag(weights), atol=1e-15)
    low = np.outer([1.0, 2.0, 2.0], [0.0, 3.0, 4.0]) / 15  # of rank 1, and length 1
    np.testing.assert_allclose(f.gradient(lambda x: f.svd(x)[1][0])(low), low, atol=1e-12)
    assert np.isnan(f.gradient(lambda x: f.sum(f.svd(x)[0][0]))(np.eye(3))).any()


def test_the_gradient_of_a_factor_is_symmetric():
    slope = f.gradient(lambda a: f.sum(f.sin(f.cholesky(a))))(P)
    np.testing.assert_allclose(slope, slope.swapaxes(1, 2), atol=1e-14)


def test_the_log_of_a_determinant_has_the_inverse_as_its_gradient():
    def log_determinant(a):
        return 2.0 * f.sum(f.log(f.einsum("bii->bi", f.cholesky(a))))

    np.testing.assert_allclose(f.gradient(log_determinant)(P), np.linalg.inv(P), rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: f.solve(symbol((2, 3)), symbol((2, 3))), "it takes square matrices (..., n, n)"),
        (lambda: f.solve(symbol((3, 3)), symbol((2, 3))), "the right sides must have shape (..., 3, m)"),
        (lambda: f.solve(symbol((2, 3, 3)), symbol((4, 3, 1))), "sides 2 and 4 do not broadcast"),
        (lambda: f.cholesky(symbol((3,))), "cholesky((3,)): it takes square matrices (..., n, n)"),
        (lambda: f.cholesky(symbol((3, 3), "int32")), "it takes float32 or float64, not int32. Cast or compare first."),
        (lambda: f.svd(symbol((3,))), "svd((3,)): it takes matrices (..., m, n)"),
    ],
)
def test_wrong_operands_are_explained(call, message):
    with pytest.raises(SigmaGraphError, match=re.escape(message)):
        call()
