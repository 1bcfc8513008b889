"""Gradients of functions, gradient penalties, Hessian products and indices agree with JAX, in float64."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f

jax = pytest.importorskip("jax")
jnp = jax.numpy

RNG = np.random.default_rng(11)
X, V = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
P = {"w": RNG.normal(size=(3, 2)), "more": [RNG.normal(size=2), RNG.normal(size=())]}


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def loss(xp, total, p, x):
    hidden = xp.tanh(x @ p["w"] + p["more"][0])
    return total((hidden[:, ::-1] * hidden[np.array([0, 2, 1, 0])]) ** 3) * xp.exp(p["more"][1])


def test_the_gradient_of_nested_parameters_is_that_of_jax():
    found = f.gradient(lambda p, x: loss(f, f.sum, p, x), (0, 1))(P, X)
    expected = jax.grad(lambda p, x: loss(jnp, jnp.sum, p, x), (0, 1))(P, X)
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert ours == pytest.approx(np.asarray(theirs), rel=1e-11)


def test_a_hessian_vector_product_is_that_of_jax():
    found = f.hessian_vector_product(lambda x: loss(f, f.sum, P, x))(X, vector=V)
    expected = jax.jvp(jax.grad(lambda x: loss(jnp, jnp.sum, P, x)), (X,), (V,))[1]
    assert found == pytest.approx(np.asarray(expected), rel=1e-10, abs=1e-12)


def test_the_gradient_of_a_gradient_penalty_is_that_of_jax():
    def penalty(grad, xp, total, p):
        slopes = grad(lambda x: loss(xp, total, p, x))(X)
        return total((total(slopes**2, axis=1) - 1.0) ** 2)

    found = f.gradient(lambda p: penalty(f.gradient, f, f.sum, p))(P)
    expected = jax.grad(lambda p: penalty(jax.grad, jnp, jnp.sum, p))(P)
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert ours == pytest.approx(np.asarray(theirs), rel=1e-10)
