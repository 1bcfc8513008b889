"""Edge cases of ops: infinities, NaN, ties, limits of integers, empty axes, indices out of range.

A backend's results must equal the reference: NaN in the same places, the same infinities, exact integers, and zeros of
the same sign for the ops whose rows are ``signed``. Whether 0.0 or -0.0 is larger is not defined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_kernel import functions as f
from sigma_kernel.graph import shapes
from sigma_kernel.graph.differentiation import gradient
from sigma_kernel.graph.node import INTEGERS, NARROW, Graph, Node, symbol
from sigma_testing.cases import NUMBERS, Sample, elementwise

ONE, TWO = elementwise(shapes.same), elementwise(shapes.binary)
SMALL = {"float32": 1e-40, "float64": 1e-310}  # denormal in a precision: a backend may flush them to zero
FLOATS = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.25, -1e4, 1e30, -1e30])
BEYOND = (2.0**31, -(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 0.75, -0.75, -3.5)  # the ranges of integers
NOWHERE = (-1, 3)  # indices out of range for an axis of 3


@frozen(eq=False)
class Tie:
    """A function at a point without a derivative, or where it may be lost; the defined first and second derivatives."""

    function: Callable[[Node], Node]
    at: np.ndarray = field(converter=np.array)
    slope: np.ndarray = field(converter=np.array)
    curvature: np.ndarray = field(default=0.0, converter=np.array)

    def graph(self, precision: str) -> Graph:
        """Return a graph of both derivatives."""
        x = symbol(self.at.shape, precision)
        (slope,) = gradient(f.sum(self.function(x)), [x])
        return Graph((x,), (slope, *gradient(f.sum(slope), [x])))


def _halves(function: Callable[..., Node]) -> Callable[[Node], Node]:
    return lambda x: function(*f.split(x, 2))


ZEROS, PAIRS = [-1.0, -0.0, 0.0, 1.0], [1.0, 0.0, 2.0, 1.0, -0.0, 3.0]
TIES = {
    "abs": Tie(f.abs, ZEROS, [-1, 0, 0, 1]),
    "sign": Tie(f.sign, ZEROS, [0, 0, 0, 0]),
    "floor": Tie(f.floor, ZEROS, [0, 0, 0, 0]),
    "relu": Tie(f.relu, ZEROS, [0, 0, 0, 1]),
    "leaky_relu": Tie(lambda x: f.leaky_relu(x, 0.25), ZEROS, [0.25, 0.25, 0.25, 1]),
    "elu": Tie(f.elu, [-0.0, 0.0], [1, 1], 1.0),
    "elu of another scale": Tie(lambda x: f.elu(x, 0.5), [-0.0, 0.0], [0.5, 0.5], 0.5),
    "clip": Tie(lambda x: f.clip(x, -1.0, 2.0), [-1.5, -1.0, 0.0, 2.0, 2.5], [0, 1, 1, 1, 0]),
    "the ends of clip": Tie(lambda x: f.clip(f.stop(x), *f.split(x, 2)), [1.0, 2.0], [0, 0]),
    "maximum": Tie(_halves(f.maximum), PAIRS, [0.5, 0.5, 0, 0.5, 0.5, 1]),
    "minimum": Tie(_halves(f.minimum), PAIRS, [0.5, 0.5, 1, 0.5, 0.5, 0]),
    "max": Tie(lambda x: f.max(x), [1.0, 3.0, 3.0], [0, 0.5, 0.5]),
    "min": Tie(lambda x: f.min(x), [1.0, 1.0, 3.0], [0.5, 0.5, 0]),
    "prod": Tie(f.prod, [0.0, 2.0, 3.0], [6, 0, 0], [5, 3, 2]),
    "prod of several zeros": Tie(f.prod, [0.0, 0.0, 3.0], [0, 0, 0], [3, 3, 0]),
    "sort": Tie(lambda x: f.sort(x) * np.arange(4.0), [3.0, 1.0, 3.0, 1.0], [2, 0, 3, 1]),
    "sort downwards": Tie(lambda x: f.sort(x, descending=True) * np.arange(4.0), [3.0, 1.0, 3.0, 1.0], [0, 2, 1, 3]),
    "top_k": Tie(lambda x: f.top_k(x, 2)[0] * np.arange(1.0, 3.0), [3.0, 1.0, 3.0, 3.0], [1, 0, 2, 0]),
    "max_pool": Tie(lambda x: f.max_pool(x, 2), [[[3.0, 3.0, 1.0, 2.0]]], [[[1, 0, 0, 1]]]),
    "max_pool over others": Tie(lambda x: f.max_pool(x, 3, 2, 1), [[[3.0, 3.0, 3.0, 1.0]]], [[[1, 1, 0, 0]]]),
    "where": Tie(lambda x: f.where(x > 0.0, x * 2.0, x * 3.0), ZEROS, [3, 3, 3, 2]),
    "norm": Tie(f.norm, [0.0, -0.0, 0.0], [0, 0, 0]),
    "mod": Tie(_halves(f.mod), [2.0, -2.0, 1.0, 1.0], [1, 1, -2, 2]),
    "power 0": Tie(lambda x: x**0.0, [0.0], [0]),
    "power 1": Tie(lambda x: x**1.0, [0.0], [1]),
    "power 2": Tie(lambda x: x**2.0, [0.0], [0], 2.0),
    "power of its own": Tie(lambda x: f.sum(_halves(f.pow)(x)), [0.0, 2.0], [0, 0], [2, 0]),
}

GUARDED = {  # functions under ``where``: elsewhere, their slopes may be anything
    "log": Tie(lambda x: f.where(x > 0.0, f.log(x), 0.0), [-1.0, 0.0, 2.0], [0, 0, 0.5], [0, 0, -0.25]),
    "sqrt": Tie(lambda x: f.where(x > 0.0, f.sqrt(x), x), [-1.0, 0.0, 4.0], [1, 1, 0.25], [0, 0, -1 / 32]),
    "x log x": Tie(lambda x: f.where(x > 0.0, x * f.log(x), 0.0), [0.0, 1.0], [0, 1], [0, 1]),
    "1 / x": Tie(lambda x: f.where(f.equal(x, 0.0), 0.0, 1.0 / x), [0.0, 2.0], [0, -0.25], [0, 0.25]),
    "exp": Tie(lambda x: f.where(x < 10.0, f.exp(x), 1.0), [0.0, 1e4], [1, 0], [1, 0]),
    "NaN": Tie(lambda x: f.where(f.is_finite(x), x * x, 0.0), [np.nan, np.inf, 3.0], [0, 0, 6], [0, 0, 2]),
    "rows": Tie(lambda x: f.where(x[:, 0] > 0.0, x[:, 1] / x[:, 0], 0.0), [[2.0, 3.0], [0.0, 3.0]],
                [[-0.75, 0.5], [0, 0]], [[0.5, -0.25], [0, 0]]),
}  # fmt: skip


def edges() -> Iterator[Sample]:
    """Yield the edge cases of all ops."""
    for group in (_elementwise, _integers, _casts, _narrow, _reductions, _places, _products, _composites, _matrices):
        yield from group()


def denormals(precision: str) -> Iterator[tuple[Sample, Sample]]:
    """Yield samples with denormal operands, each paired with the same sample with zeros in their place."""
    small = SMALL[precision] * np.array([1.0, -1.0, 3.0])
    for x, flushed in ((small, small * 0.0), (small[:, None] * np.ones(4), small[:, None] * np.zeros(4))):
        yield from ((Sample(op, (x,)), Sample(op, (flushed,))) for op in ONE)
        rest = np.array([0.0, 1.0, -2.5, np.inf]) if x.ndim > 1 else np.array(0.5)
        for op in TWO:
            yield Sample(op, (x, rest)), Sample(op, (flushed, rest))
            yield Sample(op, (rest, x)), Sample(op, (rest, flushed))


def out_of_range() -> Iterator[Sample]:
    """Yield samples with indices out of range."""
    for place in NOWHERE:
        for places in (np.array([0, place], "int32"), np.array(place, "int64")):
            yield Sample("take", (np.ones((3, 2)), places), {"axis": 0})
            yield Sample("scatter_add", (np.ones((2, 3)), places, np.ones((2, *places.shape))), {"axis": 1})


def _elementwise() -> Iterator[Sample]:
    yield from (Sample(op, (FLOATS,)) for op in ONE)
    yield from (Sample(op, (FLOATS[:, None], FLOATS)) for op in TWO)
    yield from (Sample(op, (FLOATS, np.array(y))) for op in TWO for y in (0.0, np.nan, np.inf, -1.0))
    yield from (Sample(op, (np.zeros((0, 3)), np.ones((1, 3)))) for op in TWO)
    yield Sample("where", (np.arange(14) % 2 > 0, FLOATS, FLOATS[::-1]))


def _integers() -> Iterator[Sample]:
    for dtype, span in INTEGERS.items():
        x = np.array([span[0], span[0] + 1, 0, 1, 3, 7, span[-1] - 1, span[-1]], dtype)
        yield from (Sample(op, (x,)) for op in elementwise(shapes.same, NUMBERS))
        yield from (Sample(op, (x[:, None], x)) for op in elementwise(shapes.binary, NUMBERS))
        yield from (Sample("mod", (x, np.array(y).astype(dtype))) for y in (0, -1, -3, 5))
        yield from (Sample(op, (x,), {"axis": (0,)}) for op in ("sum", "max", "prod"))
        yield from _orders(x[[3, 0, 7, 3, 0]], 0)
        yield from (Sample("cast", (x,), {"dtype": other}) for other in (*INTEGERS, "bool", "float32", "float64"))
        yield Sample("matmul", (x[None], x[:, None]))


def _casts() -> Iterator[Sample]:
    x = np.concatenate([FLOATS, BEYOND])
    yield from (Sample("cast", (x,), {"dtype": dtype}) for dtype in (*INTEGERS, "bool", "float32", "float64"))


def _narrow() -> Iterator[Sample]:
    """Yield ties between two neighbours, and numbers beyond the range, or below it, of each dtype of 16 bits."""
    ties = [1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 2.0**-25, 3 * 2.0**-25, 2.0**-15 + 2.0**-25]
    ends = [65504.0, 65519.0, 65520.0, 1e5, 3.3895314e38, 3.4e38, 2.0**-24, 2.0**-26]
    x = np.concatenate([FLOATS, ties, ends])
    yield from (Sample("reduce_precision", (np.concatenate([x, -x]),), {"dtype": dtype}) for dtype in NARROW)


def _reductions() -> Iterator[Sample]:
    yield from _orders(np.concatenate([FLOATS, FLOATS[::-1]]), 0)
    tied = np.array([[1.0, 3.0, 3.0], [np.nan, 1.0, np.nan], [-np.inf] * 3, [np.inf, -np.inf, 2.0], [0.0, 5.0, np.nan]])
    for axis in (0, 1):
        yield from (Sample(op, (tied,), {"axis": (axis,)}) for op in ("sum", "max"))
        yield from (Sample(op, (tied,), {"axis": axis}) for op in ("argmax", "softmax", "log_softmax"))
        yield from _orders(tied, axis)
    for shape in ((0,), (0, 3), (3, 0), (2, 0, 3)):
        axes = [(k,) for k in range(len(shape))]
        yield from (Sample("sum", (np.ones(shape),), {"axis": axis}) for axis in [*axes, tuple(range(len(shape)))])
        yield from (Sample("max", (np.ones(shape),), {"axis": axis}) for axis in axes if shape[axis[0]])
        yield from (Sample("prod", (np.ones(shape),), {"axis": axis}) for axis in axes)
        yield from (sample for (axis,) in axes for sample in _orders(np.ones(shape), axis))
        yield from (Sample("concat", (np.ones(shape), np.ones(shape)), {"axis": axis}) for (axis,) in axes)
    how: dict[str, Any] = {"window": (1, 2), "stride": (1, 1), "padding": ((0, 0), (1, 0))}
    for x in (tied[None, None], np.zeros((0, 2, 3, 4))):
        yield from (Sample(op, (x,), how) for op in ("max_pool", "pool_argmax", "sum_pool"))


def _orders(x: np.ndarray, axis: int) -> Iterator[Sample]:
    """Yield ops along an axis, whose order is defined for NaN and for equal entries."""
    yield Sample("prod", (x,), {"axis": (axis,)})
    for turned in (False, True):
        yield Sample("cumsum", (x,), {"axis": axis, "reverse": turned})
        yield from (Sample(op, (x,), {"axis": axis, "descending": turned}) for op in ("argsort", "sort"))


def _places() -> Iterator[Sample]:
    for shape in ((1,), (3,), (0,), (2, 3), (2, 0), (3, 1)):
        x = np.arange(float(np.prod(shape))).reshape(shape)
        for axis, side in enumerate(shape):
            for places in (np.zeros(s, "int32") + max(side - 1, 0) for s in ((), (1,), (2,), (0,), (2, 2))):
                if not side and places.size:
                    continue
                updates = np.ones((*shape[:axis], *places.shape, *shape[axis + 1 :]))
                yield Sample("take", (x, places), {"axis": axis})
                yield Sample("scatter_add", (x, places, updates), {"axis": axis})
    yield from (Sample("iota", (), {"shape": s, "axis": 0, "dtype": "int64"}) for s in ((1,), (1, 1), (1, 3), (0, 2)))


def _products() -> Iterator[Sample]:
    sides = [(m, k, n) for m in (0, 1, 3) for k in (0, 1, 3) for n in (0, 1, 3)]
    for m, k, n in sides:
        yield from (Sample("matmul", (np.ones((*lead, m, k)), np.ones((*lead, k, n)))) for lead in ((), (2,), (0,)))
    yield Sample("matmul", (np.array([[np.inf, 1.0], [np.nan, 0.0]]), np.array([[0.0, 2.0], [-np.inf, 1.0]])))
    how = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}
    yield Sample("convolution", (np.ones((0, 2, 4, 4)), np.ones((3, 2, 2, 2))), how)


def _composites() -> Iterator[Sample]:
    scores = np.array(
        [[1.0, np.inf, 0.0], [-np.inf, 2.0, 1.0], [np.nan, 0.0, 1.0], [-np.inf] * 3, [900.0, -900.0, 0.0]]
    )
    yield from (Sample("softmax_cross_entropy", (scores, np.full(5, k, "int32"))) for k in (0, 2, -1, 3))
    for lead in ((), (1,), (2,), (0,), (2, 1)):
        for classes in (1, 2):
            operands = np.ones((*lead, classes)), np.zeros(lead, "int32")
            yield Sample("softmax_cross_entropy", operands)
    yield Sample("layer_norm", (np.full((2, 3), 4.0), np.ones(3), np.ones(3)), {"epsilon": 1e-5})


def _matrices() -> Iterator[Sample]:
    """Yield matrices without a result among others, and signals that are not finite; empty ones, and single numbers."""
    identity = np.eye(2)
    several = np.stack(
        [2 * identity, 0 * identity, np.full((2, 2), np.nan), np.diag([np.inf, 1.0]), -identity, identity]
    )
    yield Sample("solve", (several, np.ones((2, 3))))
    yield Sample("solve", (identity, np.array([[1.0, np.inf], [np.nan, 0.0]])))
    yield Sample("cholesky", (several,))
    yield Sample("svd", (several[2:4],))
    for shape in ((0, 0), (0, 2, 2), (2, 0, 0), (1, 1)):
        yield Sample("solve", (np.full(shape, -2.0), np.ones((*shape[:-1], 3))))
        yield Sample("cholesky", (np.full(shape, 4.0),))
    yield from (Sample("svd", (np.full(shape, -2.0),)) for shape in ((0, 3), (3, 0), (0, 2, 3), (1, 1)))
    signals = np.array([[1.0, 2.0, 3.0, 4.0], [0.0, np.nan, 0.0, 0.0], [np.inf, 0.0, 0.0, 0.0], [0.0] * 4])
    yield from (Sample("rfft", (x,)) for x in (signals, signals[:, :1], np.zeros((0, 3)), np.ones(1)))
    yield from (Sample("irfft", (signals.reshape(4, 2, 2),), {"n": n}) for n in (2, 3))
    yield Sample("irfft", (np.zeros((0, 2, 2)),), {"n": 2})
