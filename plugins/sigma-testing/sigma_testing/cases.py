"""Samples for tests of backends: operands and attributes for every op of the kernel.

A backend's tests compare ``interpret(sample.graph(), numpy_namespace())`` with the backend's results for that graph.
Axes have different odd lengths, so that swapped axes are noticed. Ops are differentiable at the floats chosen, so that
the samples can be used with finite differences, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_kernel.graph import dtypes, ops, shapes
from sigma_kernel.graph.node import NARROW, OPS, Graph, Node, Spec, Values, symbol, trace


@frozen(eq=False)
class Sample:
    """Operands and attributes of one op; floats are float64 until converted to a precision."""

    op: str
    arrays: tuple[np.ndarray, ...]
    attrs: Mapping[str, Any] = field(factory=dict)
    parts: tuple[tuple[tuple[int, ...], str], ...] = ()  # shapes and dtypes of a scan's results

    def operands(self, precision: str) -> tuple[np.ndarray, ...]:
        """Return the operands, with floats in a given precision."""
        return tuple(x.astype(precision) if x.dtype == np.float64 else x for x in self.arrays)

    def graph(self, precision: str = "float64") -> Graph:
        """Return a graph of this op alone; all results of a scan are outputs."""
        symbols = tuple(symbol(x.shape, x.dtype.name) for x in self.operands(precision))
        node = OPS[self.op](*symbols, **_evaluate_attrs(self.attrs, precision))
        return Graph(symbols, self._parts(node, precision) if self.parts else (node,))

    def _parts(self, scan: Node, precision: str) -> tuple[Node, ...]:
        named = ((shape, precision if dtype == "float64" else dtype) for shape, dtype in self.parts)
        return tuple(ops.part(scan, index=i, shape=s, dtype=d) for i, (s, d) in enumerate(named))

    def __str__(self) -> str:
        shapes = ", ".join(str(x.shape) for x in self.arrays)
        settings = "".join(f", {k}={v!r}" for k, v in self.attrs.items() if k != "body")
        return f"{self.op}({shapes}{settings})"


def _evaluate_attrs(attrs: Mapping[str, Any], precision: str) -> dict[str, Any]:
    """Return the attributes, with those that depend on the precision evaluated."""
    return {name: x(precision) if callable(x) else x for name, x in attrs.items()}


@cache
def samples() -> dict[str, tuple[Sample, ...]]:
    """Return the samples of every op by its name."""
    table: dict[str, list[Sample]] = {}
    groups = _arithmetic, _whole_numbers, _selection, _form, _gathering, _windows, _random, _scans, _composites
    for sample in (sample for group in (*groups, _matrices) for sample in group()):
        table.setdefault(sample.op, []).append(sample)
    table["part"] = table["scan"]
    return {name: tuple(rows) for name, rows in table.items()}


def _floats(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Return distinct floats in mixed order, none of them close to a multiple of 0.1."""
    size = int(np.prod(shape))
    spread = (np.arange(size) * 0.6180339887498949 + 0.5 / np.pi) % 1.0  # golden ratio: well spread, no repeats
    return (low + (high - low) * spread).reshape(shape)


def _integers(*shape: int, below: int = 7, dtype: str = "int32") -> np.ndarray:
    return (np.arange(np.prod(shape)) * 5 % below).astype(dtype).reshape(shape)


def _truths(*shape: int) -> np.ndarray:
    return _floats(*shape) > 0.3


PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (((3, 5), (3, 5)), ((2, 1, 5), (3, 1)), ((4,), ()))


NUMBERS = (dtypes.number, dtypes.ordered, dtypes.compared, dtypes.same)
FLOATS = (*NUMBERS, dtypes.floating, dtypes.tested)


def elementwise(shape: Callable[..., Any], rules: Sequence[Callable[..., Any]] = FLOATS) -> tuple[str, ...]:
    """Return the kernel's elementwise ops with these dtype rules, except ops with attributes."""
    return tuple(row.name for row in ops.elementwise() if row.shape is shape and row.dtype in rules)


def _arithmetic() -> list[Sample]:
    low = {name: 0.3 for name, row in OPS.items() if row.domain == "positive"}
    unary, two = elementwise(shapes.same), elementwise(shapes.binary)
    return [
        *(Sample(op, (_floats(*x, low=low.get(op, -2.0)), _floats(*y, low=low.get(op, -2.1) + 0.2)))
          for op in two for x, y in PAIRS),
        *(Sample(op, (_floats(2, 3, 5, low=low.get(op, -2.0)),)) for op in unary),
        Sample("is_finite", (np.array([1.0, np.inf, -np.inf, np.nan]),)),
    ]  # fmt: skip


def _whole_numbers() -> list[Sample]:
    two = elementwise(shapes.binary, NUMBERS)
    word = _integers(7, dtype="uint32") * 613566757  # large enough to wrap
    return [
        *(Sample(op, (_integers(3, 5), _integers(5) + 1)) for op in two),
        *(Sample(op, (word, _integers(7, dtype="uint32") + 3)) for op in two),
        *(Sample(op, (_integers(3, 5) - 3,)) for op in elementwise(shapes.same, NUMBERS)),
        Sample("mod", (np.array([-7, -1, 0, 5, 7]), np.array([3, 3, 3, -3, -3]))),
        Sample("neg", (word,)),
        Sample("sum", (word,), {"axis": (0,)}),
    ]


def _selection() -> list[Sample]:
    casts = {
        "int32": _floats(3, 5),
        "float32": _integers(5),
        "bool": _integers(5),
        "int64": _integers(5),
        "float64": _truths(5),
    }
    return [
        *(Sample(op, (_truths(3, 5), _truths(5))) for op in ("logical_and", "logical_or", "equal")),
        Sample("logical_not", (_truths(3, 5),)),
        Sample("where", (_truths(3, 5), _floats(3, 5), _floats(5)[::-1])),
        Sample("where", (_truths(5), _floats(3, 1), _floats())),
        Sample("where", (_truths(4), _integers(4), _integers(4) * 2)),
        *(Sample("cast", (x,), {"dtype": dtype}) for dtype, x in casts.items()),
        Sample("cast", (_integers(5) - 3,), {"dtype": "uint32"}),
        Sample("cast", (_floats(5, low=0.0, high=2.0**32),), {"dtype": "uint32"}),
        *(Sample("reduce_precision", (_floats(3, 5),), {"dtype": dtype}) for dtype in NARROW),
    ]


def _form() -> list[Sample]:
    x, word = _floats(2, 3, 5), _integers(4, 3, dtype="uint32") * 613566757  # large enough to wrap
    axes: tuple[tuple[int, ...], ...] = ((0,), (1,), (2,), (0, 2), (0, 1, 2), ())
    return [
        *(Sample(op, (x,), {"axis": axis}) for op in ("sum", "max") for axis in axes),
        *(Sample("argmax", (x,), {"axis": axis}) for axis in range(3)),
        Sample("argmax", (np.array([[1, 3, 3], [2, 2, 0]], "int32"),), {"axis": 1}),
        Sample("sum", (_integers(4, 3),), {"axis": (1,)}),
        *(Sample("prod", (x,), {"axis": axis}) for axis in axes),
        *(Sample("prod", (whole,), {"axis": (1,)}) for whole in (_integers(4, 3) - 1, word)),
        *(Sample("cumsum", (x,), {"axis": axis, "reverse": axis == 1}) for axis in range(3)),
        *(Sample("cumsum", (word,), {"axis": 1, "reverse": reverse}) for reverse in (False, True)),
        *(Sample(op, (x,), {"axis": i, "descending": i == 1}) for op in ("argsort", "sort") for i in range(3)),
        *(
            Sample(op, (values,), {"axis": 1, "descending": descending})
            for op in ("argsort", "sort")
            for values in (_integers(3, 7, below=3) - 1, word, np.array([[1.5, 3.0, 3.0, 1.5], [2.5, 0.5, 2.5, 2.5]]))
            for descending in (False, True)
            if op == "argsort" or values.dtype != np.float64  # entries that are equal have no derivative
        ),
        *(Sample("reshape", (x,), {"shape": shape}) for shape in ((6, 5), (30,), (1, 2, 15, 1))),
        *(Sample("permute", (x,), {"axes": order}) for order in ((2, 0, 1), (0, 2, 1), (0, 1, 2))),
        *(Sample("stretch", (_floats(*shape),), {"shape": (2, 3, 5)}) for shape in ((3, 1), (2, 3, 5), (), (1, 5))),
        Sample("slice", (x,), {"start": (0, 1, 0), "stop": (2, 3, 5), "step": (1, 1, 2)}),
        Sample("slice", (x,), {"start": (1, 0, 1), "stop": (2, 0, 5), "step": (3, 1, 3)}),
        Sample("pad", (_floats(2, 3),), {"low": (1, 0), "high": (0, 2), "interior": (0, 3), "value": 0.5}),
        Sample("pad", (_integers(3),), {"low": (2,), "high": (0,), "interior": (1,), "value": -4}),
        Sample("concat", (_floats(2, 1, 5), x, _floats(2, 2, 5)), {"axis": 1}),
        Sample("concat", (_integers(3), _integers(1)), {"axis": 0}),
        *(Sample("iota", (), {"shape": (2, 3, 5), "axis": i, "dtype": d}) for i, d in enumerate(("int32", "float32"))),
        *(
            Sample("array", (), {"value": Values(x), "dtype": x.dtype.name})
            for x in (_integers(3, 5), _integers(2, 3, dtype="int64"), _truths(3, 5), _floats(7, 5).astype("float32"))
        ),
        *(Sample("iota", (), {"shape": (2, 3), "axis": i, "dtype": d}) for i, d in enumerate(("uint32", "int64"))),
    ]


def _gathering() -> list[Sample]:
    x, places = _floats(4, 3, 5), np.array([[2, 0, 2], [1, 2, 0]], "int32")
    updates = [_floats(*x.shape[:axis], 2, 3, *x.shape[axis + 1 :]) for axis in range(3)]
    products = (((3, 5), (5, 2)), ((2, 1, 3, 5), (4, 5, 2)), ((1, 5), (5, 1)))
    return [
        *(Sample("take", (x, places), {"axis": axis}) for axis in range(3)),
        Sample("take", (_integers(9), places.astype("int64")), {"axis": 0}),
        Sample("take", (x, np.array(1, "int32")), {"axis": 1}),
        *(Sample("scatter_add", (x, places, update), {"axis": axis}) for axis, update in enumerate(updates)),
        Sample("scatter_add", (_integers(4), places[0], _integers(3) + 1), {"axis": 0}),
        *(Sample("matmul", (_floats(*a), _floats(*b))) for a, b in products),
        Sample("matmul", (_integers(3, 5), _integers(5, 2))),
    ]


def _windows() -> list[Sample]:
    plain = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}
    skewed = {"stride": (2, 1), "padding": ((1, 2), (0, 1)), "dilation": (2, 1), "groups": 2}
    line = {"stride": (2,), "padding": ((3, 0),), "dilation": (3,), "groups": 1}
    rows = [*_convolutions((2, 3, 6, 5), (4, 3, 3, 2), plain), *_convolutions((3, 4, 7, 5), (6, 2, 2, 3), skewed)]
    rows += _convolutions((2, 3, 9), (2, 3, 3), line)
    square = {"window": (2, 2), "stride": (2, 2), "padding": ((0, 0), (0, 0))}
    overlapping = {"window": (3, 2), "stride": (2, 1), "padding": ((1, 2), (0, 1))}
    gaps = {"window": (2,), "stride": (3,), "padding": ((1, 0),)}
    return [*rows, *_pools((2, 3, 4, 7), square), *_pools((2, 3, 6, 5), overlapping), *_pools((1, 2, 9), gaps)]


def _convolutions(x: Sequence[int], w: Sequence[int], how: Mapping[str, Any]) -> list[Sample]:
    g = OPS["convolution"](symbol(x), symbol(w), **how).shape
    return [
        Sample("convolution", (_floats(*x), _floats(*w)), how),
        Sample("convolution_input", (_floats(*g), _floats(*w)), {"shape": tuple(x), **how}),
        Sample("convolution_kernel", (_floats(*x), _floats(*g)), {"shape": tuple(w), **how}),
    ]


def _pools(shape: Sequence[int], how: Mapping[str, Any]) -> list[Sample]:
    x, g = _floats(*shape), OPS["sum_pool"](symbol(shape), **how).shape
    index, whole = _integers(*g, below=int(np.prod(how["window"]))), {"shape": tuple(shape), **how}
    return [
        *(Sample(op, (x,), how) for op in ("max_pool", "pool_argmax", "sum_pool")),
        Sample("pool_select", (x, index), how),
        Sample("pool_scatter", (_floats(*g), index), whole),
        Sample("sum_unpool", (_floats(*g),), whole),
    ]


def _key(row: int = 0) -> tuple[np.ndarray, ...]:
    return np.array([0xA4093822, 0x299F31D0], "uint32"), *(np.array(x, "uint32") for x in (0xFFFFFFFF, row, 17))


def _matrices() -> list[Sample]:
    """Return linear algebra of matrices far from singular, with singular values far from each other, and transforms."""
    square = _floats(2, 3, 3) + 3.0 * np.eye(3)
    positive = square @ square.swapaxes(1, 2)
    tall, wide = (_floats(*s) * 0.3 + np.eye(*s[-2:]) * [5.0, 3.0, 1.5][: s[-1]] for s in ((2, 4, 3), (2, 3)))
    return [
        *(Sample("solve", pair) for pair in ((square, _floats(2, 3, 2)), (square[0], _floats(2, 3, 1)))),
        *(Sample("cholesky", (x,)) for x in (positive, positive[0, :1, :1])),
        *(Sample("svd", (x,)) for x in (square, tall, wide, _floats(1, 3))),
        *(Sample("rfft", (_floats(*shape),)) for shape in ((2, 3, 5), (3, 8), (2, 1), (2,))),
        *(Sample("irfft", (_floats(2, n // 2 + 1, 2),), {"n": n}) for n in (5, 6, 1, 2)),
    ]


def _random() -> list[Sample]:
    places = ((0, (8, 4)), (5, (3, 7)), (2**31 + 1, (2, 3, 5)), (3, (6,)), (0, ()), (4, (0, 3)))
    return [Sample("random_bits", _key(row), {"shape": shape, "stream": 3}) for row, shape in places]


def _scans() -> list[Sample]:
    """Return a cumulative sum, and a small recurrent network with two carries, in both directions."""
    x, h, c, w = _floats(4, 3, 5), _floats(3, 2), _floats(3, 2, low=0.0), _floats(5, 2)
    total = {"body": _total, "carries": 1, "sequences": 1, "length": 4, "reverse": False}
    network = {"body": _network, "carries": 2, "sequences": 1, "length": 4}
    parts = (((3, 2), "float64"),) * 2 + (((4, 3, 2), "float64"),) * 3
    rows = [Sample("scan", (h, c, x, w), {**network, "reverse": reverse}, parts) for reverse in (False, True)]
    return [Sample("scan", (_floats(3, 5), x), total, (((3, 5), "float64"), ((4, 3, 5), "float64"))), *rows]


def _total(precision: str) -> Graph:
    return trace(lambda total, x: (total + x,), Spec((3, 5), precision), Spec((3, 5), precision))


def _network(precision: str) -> Graph:
    def body(h: Node, c: Node, x: Node, w: Node) -> tuple[Node, ...]:
        new = ops.tanh(x @ w + h)
        return new, c * 0.5 + new, new * c

    return trace(body, *(Spec(shape, precision) for shape in ((3, 2), (3, 2), (3, 5), (5, 2))))


def _composites() -> list[Sample]:
    x = _floats(2, 3, 5)
    return [
        *(Sample(op, (x * 3,), {"axis": axis}) for op in ("softmax", "log_softmax") for axis in (0, 2)),
        *(Sample("softmax_cross_entropy", (_floats(*s, 5) * 9, _integers(*s, below=5))) for s in ((3,), (2, 3))),
        Sample("layer_norm", (x, _floats(5), _floats(5)), {"epsilon": 1e-5}),
        Sample("barrier", (x, _floats(4, 3))),
        *(Sample("dropout", (_floats(3, 7), np.array(rate), *_key(2)), {"stream": 5}) for rate in (0.0, 0.4)),
        *_attentions(),
        *(Sample("mixed_matmul", (_floats(4, 3, 5), _floats(5, 2)), {"dtype": dtype}) for dtype in NARROW),
    ]


def _attentions() -> list[Sample]:
    """Return attention of grouped heads, with and without masks; with these, a query has no key to attend to."""
    q, k, v = _floats(2, 3, 4), _floats(2, 5, 4) * 0.7, _floats(2, 5, 3)
    mask = _truths(2, 3, 5)
    mask[1, 2] = False
    heads = _floats(2, 2, 3, 5, 4), _floats(2, 2, 1, 5, 4) * 0.7, _floats(2, 2, 1, 5, 3)
    cases: list[tuple[tuple[np.ndarray, ...], bool]] = [
        ((q, k, v), False), ((q, k, v, mask), False), ((k, k[::-1], v), True), ((*heads, np.arange(5) > 0), True)
    ]  # fmt: skip
    return [
        *(Sample("attention", operands, {"causal": causal}) for operands, causal in cases),
        *(
            Sample("attention_gradient", (_floats(*x.shape[:-1], v.shape[-1]), x, *rest), {"causal": causal, "of": of})
            for (x, *rest), causal in cases for of in range(3)
        ),
    ]  # fmt: skip
