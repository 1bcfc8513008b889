"""Fused attention: the same as its expansion on the reference, without the matrix of all scores in memory."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend
from sigma_kernel import functions as f
from sigma_kernel.graph import Graph, Node, Spec, gradient, interpret, numpy_namespace, trace

LIMITS = {"float32": 3e-6, "float64": 1e-12}  # relative to the largest number of a result
SHAPES = {  # queries, keys, values, mask
    "a single head": ((6, 4), (6, 4), (6, 4), None),
    "as many entries as a tile": ((2, 2, 64, 32), (2, 2, 64, 32), (2, 2, 64, 32), None),
    "several blocks": ((2, 100, 20), (2, 100, 20), (2, 100, 20), None),
    "odd sides": ((2, 37, 5), (2, 37, 5), (2, 37, 3), None),
    "another sequence": ((3, 7, 4), (3, 50, 4), (3, 50, 18), (3, 7, 50)),
    "a mask of keys": ((2, 2, 9, 4), (2, 2, 33, 4), (2, 2, 33, 4), (2, 1, 1, 33)),
    "a mask of queries": ((2, 2, 9, 4), (2, 2, 9, 4), (2, 2, 9, 4), (9, 1)),
    "grouped heads": ((2, 2, 3, 5, 4), (2, 2, 1, 5, 4), (2, 2, 1, 5, 3), (5,)),
    "values of several heads": ((2, 6, 4), (2, 6, 4), (3, 1, 6, 2), None),
}


def graph(shapes: tuple[tuple[int, ...] | None, ...], causal: bool, dtype: str, merged: bool = False) -> Graph:
    """Return attention and the gradients of queries, keys and values."""

    def build(q: Node, k: Node, v: Node, *mask: Node) -> tuple[Node, ...]:
        heads = [f.swap_axes(x, -3, -2) for x in (q, k, v)] if merged else [q, k, v]
        made = f.attention(*heads, *mask, causal=causal)
        return made, *gradient(f.sum(f.sin(made)), [q, k, v])

    *arrays, mask = shapes
    return trace(build, *(Spec(x, dtype) for x in arrays if x), *([Spec(mask, "bool")] if mask else []))


def operands(shapes: tuple[tuple[int, ...] | None, ...], dtype: str) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    *arrays, mask = shapes
    given = [random.normal(size=x).astype(dtype) for x in arrays]
    return [*given, *([random.uniform(size=mask) > 0.4] if mask else [])]


def check(shapes, causal: bool, dtype: str, spoil: Callable[..., None] | None = None, merged: bool = False) -> None:
    given = operands(shapes, dtype)
    if spoil:
        spoil(*given[:3])
    found = NumbaBackend(threads=1).lower(graph(shapes, causal, dtype, merged), {})(*given)
    wide = [x if x.dtype == bool else x.astype(np.float64) for x in given]
    with np.errstate(all="ignore"):
        expected = interpret(graph(shapes, causal, "float64", merged), numpy_namespace())(*wide)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == dtype
        np.testing.assert_array_equal(np.isfinite(one), np.isfinite(other))
        known = np.where(np.isfinite(other), other, 0)
        scale = LIMITS[dtype] * max(np.abs(known).max(), 1e-3)
        np.testing.assert_allclose(np.where(np.isfinite(one), one, 0), known, rtol=0, atol=scale)


@pytest.mark.parametrize("name", SHAPES)
def test_attention_and_its_gradients_are_those_of_the_expansion(name):
    check(SHAPES[name], False, "float64" if name in ("odd sides", "a mask of keys") else "float32")


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("name", ["as many entries as a tile", "several blocks", "odd sides", "grouped heads"])
def test_a_causal_query_sees_no_later_key(name, dtype):
    check(SHAPES[name], True, dtype)


def test_heads_that_lie_side_by_side_are_read_in_place():
    check(((2, 40, 3, 16), (2, 40, 3, 16), (2, 40, 3, 16), (2, 1, 40, 40)), True, "float32", merged=True)


def last_value(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
    v[..., -1, :] = np.nan


def one_key(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
    k[..., 3, 0] = np.inf


def one_query(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
    q[..., 5, :] = -np.inf


@pytest.mark.parametrize("spoil", [last_value, one_key, one_query])
@pytest.mark.parametrize("causal", [False, True])
def test_what_is_not_finite_spreads_as_in_the_expansion(spoil, causal):
    check(((2, 37, 5), (2, 37, 5), (2, 37, 3), None if causal else (37, 37)), causal, "float32", spoil)


def test_bits_do_not_depend_on_the_number_of_threads():
    shapes = ((4, 4, 96, 16), (4, 4, 96, 16), (4, 4, 96, 16), None)
    made, given = graph(shapes, True, "float32"), operands(shapes, "float32")
    one, two = (NumbaBackend(threads=n).lower(made, {}) for n in (1, 2))
    assert one.machine.needs["threads"] > 1
    for a, b in zip(one(*given), two(*given), strict=True):
        assert a.tobytes() == b.tobytes()


def test_scores_of_all_heads_are_never_in_memory():
    shapes = ((2, 8, 512, 16), (2, 8, 512, 16), (2, 8, 512, 16), None)
    lowered = NumbaBackend(threads=1).lower(graph(shapes, False, "float32"), {})
    assert lowered.machine.memory_bytes < 4 * prod((2, 8, 512, 512)) / 2


def test_the_second_order_is_that_of_the_expansion():
    def build(q: Node, k: Node, v: Node) -> tuple[Node, ...]:
        (first,) = gradient(f.sum(f.sin(f.attention(q, k, v, causal=True))), [q])
        return tuple(gradient(f.sum(f.square(first)), [q, k, v]))

    made = trace(build, *[Spec((2, 6, 4), "float64")] * 3)
    given = operands(((2, 6, 4),) * 3 + (None,), "float64")
    for one, other in zip(
        NumbaBackend().lower(made, {})(*given), interpret(made, numpy_namespace())(*given), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
