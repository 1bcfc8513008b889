"""First and second derivatives at ties agree with PyTorch and JAX, in float64."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_testing.edges import TIES

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")
nn, jnp = torch.nn.functional, jax.numpy

TORCH = {
    "abs": torch.abs, "sign": torch.sign, "floor": torch.floor, "relu": nn.relu, "elu": nn.elu,
    "leaky_relu": lambda x: nn.leaky_relu(x, 0.25), "elu of another scale": lambda x: nn.elu(x, 0.5),
    "clip": lambda x: torch.clamp(x, -1.0, 2.0),
    "the ends of clip": lambda x: torch.clamp(x.detach(), *torch.split(x, 1)),
    "maximum": lambda x: torch.maximum(*torch.split(x, 3)), "minimum": lambda x: torch.minimum(*torch.split(x, 3)),
    "prod": torch.prod, "prod of several zeros": torch.prod,
    "sort": lambda x: torch.sort(x, stable=True)[0] * torch.arange(4.0),
    "sort downwards": lambda x: torch.sort(x, stable=True, descending=True)[0] * torch.arange(4.0),
    "max": torch.amax, "min": torch.amin, "max_pool": lambda x: nn.max_pool1d(x, 2),
    "max_pool over others": lambda x: nn.max_pool1d(x, 3, 2, 1),
    "where": lambda x: torch.where(x > 0.0, x * 2.0, x * 3.0), "norm": torch.linalg.vector_norm,
    "mod": lambda x: torch.remainder(*torch.split(x, 2)), "power 0": lambda x: x**0.0, "power 1": lambda x: x**1.0,
    "power 2": lambda x: x**2.0, "power of its own": lambda x: torch.pow(*torch.split(x, 1)),
}  # fmt: skip
JAX = {
    "sign": jnp.sign, "floor": jnp.floor, "relu": jax.nn.relu, "elu": jax.nn.elu,
    "elu of another scale": lambda x: jax.nn.elu(x, 0.5),
    "maximum": lambda x: jnp.maximum(*jnp.split(x, 2)), "minimum": lambda x: jnp.minimum(*jnp.split(x, 2)),
    "prod": jnp.prod, "prod of several zeros": jnp.prod, "sort": lambda x: jnp.sort(x) * jnp.arange(4.0),
    "sort downwards": lambda x: -jnp.sort(-x) * jnp.arange(4.0),
    "top_k": lambda x: jax.lax.top_k(x, 2)[0] * jnp.arange(1.0, 3.0),
    "max": jnp.max, "min": jnp.min, "mod": lambda x: jnp.remainder(*jnp.split(x, 2)),
    "max_pool": lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2), (1, 1, 2), "VALID"),
    "where": lambda x: jnp.where(x > 0.0, x * 2.0, x * 3.0), "power 1": lambda x: x**1.0,
    "power 2": lambda x: x**2.0, "power of its own": lambda x: jnp.power(*jnp.split(x, 2)),
}  # fmt: skip
OTHER = {
    "abs": (jnp.abs, [-1, 1, 1, 1]), "leaky_relu": (lambda x: jax.nn.leaky_relu(x, 0.25), [0.25, 1, 1, 1]),
    "clip": (lambda x: jnp.clip(x, -1.0, 2.0), [0, 0.5, 1, 0.5, 0]), "norm": (jnp.linalg.norm, [np.nan] * 3),
    "the ends of clip": (lambda x: jnp.clip(jax.lax.stop_gradient(x), *jnp.split(x, 2)), [0.5, 0.5]),
    "power 0": (lambda x: x**0.0, [np.nan]),
}  # fmt: skip  # which JAX decides otherwise
FIRST_ONLY = {  # the curvature of elu is 0 in PyTorch, and all others are NaN
    torch: {"elu", "elu of another scale", "norm", "power of its own"}, jax: {"power 1"},
}  # fmt: skip


def agree(name: str, library: object, *wanted: np.ndarray) -> None:
    found = interpret(TIES[name].graph("float64"), numpy_namespace())(TIES[name].at)
    for a, b in list(zip(found, wanted, strict=True))[: 1 if name in FIRST_ONLY[library] else 2]:
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_every_tie_is_tested_against_a_peer():
    assert set(TORCH) == set(TIES) - {"top_k"}  # of equal entries, PyTorch takes any
    assert set(JAX) == set(TIES) - set(OTHER) - {"max_pool over others"}  # JAX pads differently


@pytest.mark.parametrize("name", TORCH)
def test_derivatives_at_ties_equal_torchs(name):
    x = torch.tensor(TIES[name].at, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(TORCH[name](x).sum(), x, create_graph=True)
    second = torch.zeros_like(x)
    if slope.requires_grad:
        (second,) = torch.autograd.grad(slope.sum(), x, materialize_grads=True, allow_unused=True)
    agree(name, torch, *(y.detach().numpy(force=True) for y in (slope, second)))


@pytest.mark.parametrize("name", JAX)
def test_derivatives_at_ties_equal_jaxs(name):
    def slope(x):
        return jax.grad(lambda x: JAX[name](x).sum())(x)

    with jax.enable_x64(True):
        x = jnp.asarray(TIES[name].at, "float64")
        agree(name, jax, *map(np.asarray, (slope(x), jax.grad(lambda x: slope(x).sum())(x))))


@pytest.mark.parametrize("name", OTHER)
def test_jax_has_the_documented_different_derivatives_at_ties(name):
    function, wanted = OTHER[name]
    with jax.enable_x64(True):
        found = jax.grad(lambda x: function(x).sum())(jnp.asarray(TIES[name].at, "float64"))
    np.testing.assert_array_equal(np.asarray(found), wanted)
