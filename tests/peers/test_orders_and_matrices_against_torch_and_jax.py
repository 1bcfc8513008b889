"""Orders, running sums, contractions, linear algebra and transforms agree with PyTorch and JAX; so do gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.graph.differentiation import gradient
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import Spec, trace
from sigma_testing import by_name

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")
jnp = jax.numpy

NUMPY = numpy_namespace()
RNG = np.random.default_rng(7)


def numbers(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def positive(*lead: int, side: int) -> np.ndarray:
    x = numbers(*lead, side, side)
    return x @ x.swapaxes(-1, -2) + np.eye(side)


def pairs(spectrum: Any) -> Any:
    return jnp.stack([spectrum.real, spectrum.imag], -1)


def rebuilt(parts: Any) -> Any:
    """Return what does not depend on the signs of singular vectors."""
    u, s, v = parts
    return u[..., :1] * v[..., :1, :] + u[..., 1:2] * v[..., 1:2, :] * 0.3 + s[..., :1, None]


SIZES = [(3, 4), (2, 1), (2, 0), (5, 7, 3), (1, 257)]
CASES: dict[str, tuple[Any, Any, Any, list[tuple[np.ndarray, ...]]]] = {
    "sort": (f.sort, lambda x: torch.sort(x, stable=True)[0], jnp.sort, [(numbers(*s),) for s in SIZES]),
    "sort downwards along an axis": (
        lambda x: f.sort(x, 0, descending=True), lambda x: torch.sort(x, dim=0, descending=True, stable=True)[0],
        lambda x: jnp.sort(x, 0, descending=True), [(numbers(*s),) for s in SIZES],
    ),
    "top_k": (
        lambda x: f.top_k(x, 1)[0], lambda x: torch.topk(x, 1)[0], lambda x: jax.lax.top_k(x, 1)[0],
        [(numbers(*s),) for s in SIZES if s[-1]],
    ),
    "the least": (
        lambda x: f.top_k(x, 2, axis=0, largest=False)[0], lambda x: torch.topk(x, 2, 0, largest=False)[0],
        lambda x: -jax.lax.top_k(-x, 2, axis=0)[0], [(numbers(5, 3),)],
    ),
    "cumsum": (f.cumsum, lambda x: torch.cumsum(x, -1), lambda x: jnp.cumsum(x, -1), [(numbers(*s),) for s in SIZES]),
    "cumsum backwards": (
        lambda x: f.cumsum(x, 0, reverse=True), lambda x: torch.flip(torch.cumsum(torch.flip(x, [0]), 0), [0]),
        lambda x: jax.lax.cumsum(x, 0, reverse=True), [(numbers(*s),) for s in SIZES],
    ),
    "prod": (f.prod, torch.prod, jnp.prod, [(numbers(3, 3),), (numbers(1),), (np.array([0.0, 2.0, 3.0]),)]),
    "prod along an axis": (
        lambda x: f.prod(x, 1), lambda x: torch.prod(x, 1), lambda x: jnp.prod(x, 1),
        [(numbers(3, 4),), (numbers(2, 0),), (numbers(2, 9) * (RNG.uniform(size=(2, 9)) > 0.2),), (numbers(3, 5, 2),)],
    ),
    **{
        text: (
            lambda *x, text=text: f.einsum(text, *x), lambda *x, text=text: torch.einsum(text, *x),
            lambda *x, text=text: jnp.einsum(text, *x), [tuple(numbers(*s) for s in shapes)],
        )
        for text, shapes in {
            "bij,bjk->bik": ((5, 2, 3), (5, 3, 4)), "ij,kj->ik": ((2, 0), (3, 0)), "ii->i": ((4, 4),),
            "i,j->ij": ((3,), (1,)), "...ij,...j->...i": ((2, 1, 3, 4), (5, 4)),
            "ij,jk,kl->il": ((2, 3), (3, 4), (4, 5)), "ij,ij->": ((3, 5), (3, 5)),
            "bhid,bhjd->bhij": ((2, 3, 4, 5), (2, 3, 6, 5)),
        }.items()
    },
    "solve": (f.solve, torch.linalg.solve, jnp.linalg.solve, [
        (numbers(3, 3), numbers(3, 2)), (numbers(2, 4, 4), numbers(2, 4, 1)), (numbers(1, 1), numbers(1, 3)),
        (numbers(2, 0, 0), numbers(2, 0, 3)),
    ]),
    "solve for a vector": (f.solve, torch.linalg.solve, jnp.linalg.solve, [(numbers(5, 5), numbers(5))]),
    "cholesky": (f.cholesky, torch.linalg.cholesky, jnp.linalg.cholesky, [
        (positive(side=3),), (positive(2, side=5),), (positive(side=1),),
    ]),
    "singular values": (
        lambda x: f.svd(x)[1], torch.linalg.svdvals, lambda x: jnp.linalg.svd(x, compute_uv=False),
        [(numbers(3, 3),), (numbers(2, 5, 3),), (numbers(2, 5),), (numbers(1, 1),)],
    ),
    "svd": (
        lambda x: rebuilt(f.svd(x)), lambda x: rebuilt(torch.linalg.svd(x, full_matrices=False)),
        lambda x: rebuilt(jnp.linalg.svd(x, full_matrices=False)),
        [(numbers(3, 3),), (numbers(2, 5, 3),), (numbers(3, 5),)],
    ),
    "rfft": (
        f.rfft, lambda x: torch.view_as_real(torch.fft.rfft(x)), lambda x: pairs(jnp.fft.rfft(x)),
        [(numbers(2, n),) for n in (1, 2, 5, 8, 31)],
    ),
    "rfft along an axis": (
        lambda x: f.rfft(x, 0), lambda x: torch.view_as_real(torch.fft.rfft(x, dim=0)),
        lambda x: pairs(jnp.fft.rfft(x, axis=0)), [(numbers(6, 3),)],
    ),
    **{
        f"irfft of {n}": (
            lambda y, n=n: f.irfft(y, n),
            lambda y, n=n: torch.fft.irfft(torch.view_as_complex(y.contiguous()), n),
            lambda y, n=n: jnp.fft.irfft(jax.lax.complex(y[..., 0], y[..., 1]), n), [(numbers(2, n // 2 + 1, 2),)],
        )
        for n in (1, 2, 5, 8)
    },
}  # fmt: skip
EACH = [(name, i) for name, (*_, operands) in CASES.items() for i in range(len(operands))]


def weighed(values: Any, library: Any) -> Any:
    total = 0.0
    for i, x in enumerate(values):
        total = library.sum(library.sin(x * (0.3 + 0.1 * i))) + total
    return total


def ours(function: Any, arrays: tuple[np.ndarray, ...]) -> Any:
    """Return the value, its gradients, and theirs, as graph."""

    def build(*operands: Any) -> Any:
        value = function(*operands)
        first = gradient(weighed([value], f), operands)
        return value, *first, *gradient(weighed(first, f), operands)

    return trace(build, *(Spec(x.shape, x.dtype.name) for x in arrays))


@pytest.mark.parametrize(("name", "i"), EACH)
def test_values_and_two_derivatives_are_those_of_torch(name: str, i: int) -> None:
    function, other, _, every = CASES[name]
    arrays = every[i]
    operands = [torch.tensor(x, requires_grad=True) for x in arrays]
    value = other(*operands)
    first = torch.autograd.grad(weighed([value], torch), operands, create_graph=True)
    second = torch.autograd.grad(weighed(first, torch), operands, materialize_grads=True, allow_unused=True)
    expected = [x.detach().numpy() for x in (value, *first, *second)]
    for a, b in zip(interpret(ours(function, arrays), NUMPY)(*arrays), expected, strict=True):
        assert np.shape(a) == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8 * max(1.0, np.abs(b).max(initial=0.0)))


@pytest.mark.parametrize(("name", "i"), EACH)
def test_values_and_gradients_are_those_of_jax(name: str, i: int) -> None:
    function, _, other, every = CASES[name]
    arrays, places = every[i], tuple(range(len(every[i])))
    with jax.enable_x64(True):
        expected = [other(*arrays), *jax.grad(lambda *x: weighed([other(*x)], jnp), places)(*map(jnp.asarray, arrays))]
        expected = [np.asarray(x) for x in expected]
    found = interpret(ours(function, arrays), NUMPY)(*arrays)
    for a, b in zip(found, expected, strict=False):
        assert np.shape(a) == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(b).max(initial=0.0)))


@pytest.mark.parametrize(("name", "i"), EACH)
def test_single_precision_is_that_of_torch(name: str, i: int) -> None:
    function, other, _, every = CASES[name]
    arrays = [x.astype("float32") for x in every[i]]
    found, expected = np.asarray(function(*arrays)), other(*map(torch.tensor, arrays)).numpy()
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-4 * max(1.0, np.abs(expected).max(initial=0.0)))


ODD = np.array([[3.0, 1.0, 3.0, np.nan, -np.inf], [np.inf, np.inf, 0.0, -0.0, np.nan], [2.0, 2.0, 2.0, 2.0, 2.0]])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_orders_of_ties_and_missing_numbers_are_those_of_torch(axis: int, descending: bool) -> None:
    values, places = torch.sort(torch.tensor(ODD), dim=axis, descending=descending, stable=True)
    np.testing.assert_array_equal(f.argsort(ODD, axis, descending), places.numpy())
    np.testing.assert_array_equal(f.sort(ODD, axis, descending), values.numpy())


def test_orders_of_ties_and_missing_numbers_are_those_of_jax() -> None:
    np.testing.assert_array_equal(f.argsort(ODD), np.asarray(jnp.argsort(ODD, -1, stable=True)))
    np.testing.assert_array_equal(f.sort(ODD), np.asarray(jnp.sort(ODD)))
    values, places = jax.lax.top_k(ODD[2], 3)
    assert [x.tolist() for x in f.top_k(ODD[2], 3)] == [values.tolist(), places.tolist()]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_sums_and_products_of_what_is_not_finite_are_those_of_torch() -> None:
    np.testing.assert_array_equal(f.cumsum(ODD), torch.cumsum(torch.tensor(ODD), 1).numpy())
    np.testing.assert_array_equal(f.prod(ODD, 1), torch.prod(torch.tensor(ODD), 1).numpy())


# -- backends ----------------------------------------------------------------------------------------------------------
def every_function(x: Any, a: Any, y: Any) -> list[Any]:
    """Return all functions of a large array, of matrices and of spectra, and the gradients of their sum."""
    values, places = f.top_k(x, 20)
    results = [
        f.sort(x, 0), f.sort(x, descending=True), values, f.cumsum(x), f.cumsum(x, 0, reverse=True), f.prod(x + 1.0, 1),
        f.einsum("ij,kj->ik", x, x), f.solve(a, a[:, :, :2] + 1.0),
        f.cholesky(a @ f.swap_axes(a, 1, 2) + f.eye(5, dtype=a.dtype)),
        *f.svd(a), f.rfft(x), f.rfft(x, 0), f.irfft(y, 7),
    ]  # fmt: skip
    return [*results, f.argsort(x, 0), places, *gradient(weighed(results, f), [x, a, y])]


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", ["numpy", "numba", "jax", "torch"])
def test_a_backend_computes_every_function_and_gradient_to_the_same_bits_each_time(name: str, precision: str) -> None:
    x, y = numbers(67, 129) * 0.1, numbers(3, 4, 2)
    arrays = [z.astype(precision) for z in (x, numbers(4, 5, 5) * 0.2 + np.diag([5.0, 4.0, 3.0, 2.0, 1.0]), y)]
    graph = trace(every_function, *(Spec(z.shape, precision) for z in arrays))
    backend = by_name("backend", name)()
    run = backend.lower(graph, {})
    results = [[backend.to_host(z) for z in run(*map(backend.to_device, arrays))] for _ in range(2)]
    assert [z.tobytes() for z in results[0]] == [z.tobytes() for z in results[1]]
    near = 2e-3 if precision == "float32" else 1e-9
    for found, wanted in zip(results[0], interpret(graph, NUMPY)(*arrays), strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(
            found, wanted, rtol=near, atol=near * max(1.0, float(np.abs(wanted).max(initial=0.0)))
        )
