"""ONNX's operators that move, join and multiply tensors, in functions of the graph."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sigma_kernel import functions as f
from sigma_kernel.graph import Node
from tests.peers.onnx_nodes.layered import padded
from tests.peers.onnx_nodes.reading import NUMPY_TYPES, OutOfScopeError, Table

TENSORS = Table()
row = TENSORS.row


def numbers(x: Any) -> list[int]:
    """Return a static operand as a list of integers."""
    return [int(entry) for entry in np.ravel(x)]


# -- shapes ------------------------------------------------------------------------------------------------------------
@row("Reshape", static=(1,))
def _reshape(x: Any, shape: Any, allowzero: int = 0) -> Any:
    sides = [x.shape[i] if side == 0 and not allowzero else side for i, side in enumerate(numbers(shape))]
    return f.reshape(x, sides)


@row("Flatten")
def _flatten(x: Any, axis: int = 1) -> Any:
    at = axis % len(x.shape) if axis < 0 else axis
    return f.reshape(x, (math.prod(x.shape[:at]), math.prod(x.shape[at:])))


@row("Transpose")
def _transpose(x: Any, perm: Any = None) -> Any:
    return f.permute(x, perm or range(len(x.shape))[::-1])


@row("Squeeze", static=(1,))
def _squeeze(x: Any, axes: Any = None) -> Any:
    return f.squeeze(x, None if axes is None else tuple(numbers(axes)))


@row("Unsqueeze", static=(1,))
def _unsqueeze(x: Any, axes: Any) -> Any:
    rank = len(x.shape) + len(axes)
    for axis in sorted(a % rank for a in numbers(axes)):
        x = f.expand(x, axis)
    return x


@row("Expand", static=(1,))
def _expand(x: Any, shape: Any) -> Any:
    return f.stretch(x, np.broadcast_shapes(x.shape, tuple(numbers(shape))))


@row("Shape")
def _shape(x: Any, start: int = 0, end: int | None = None) -> Any:
    return np.asarray(x.shape[start:end], np.int64)


@row("Size")
def _size(x: Any) -> Any:
    return np.asarray(math.prod(x.shape), np.int64)


@row("Constant")
def _constant(**given: Any) -> Any:
    ((kind, value),) = given.items()
    if kind == "value":
        return value
    dtypes = {"value_int": "int64", "value_ints": "int64", "value_float": "float32", "value_floats": "float32"}
    return np.asarray(value, dtypes[kind])


@row("ConstantOfShape", static=(0,))
def _constant_of_shape(shape: Any, value: Any = np.zeros(1, np.float32)) -> Any:  # noqa: B008
    return np.full(numbers(shape), value[0])


@row("EyeLike")
def _eye_like(x: Any, k: int = 0, dtype: int | None = None) -> Any:
    rows, columns = f.iota(x.shape, 0), f.iota(x.shape, 1)
    return f.cast(f.equal(columns, rows + k), NUMPY_TYPES[dtype] if dtype else str(x.dtype))


@row("Range", static=(0, 1, 2))
def _range(start: Any, limit: Any, delta: Any) -> Any:
    start, limit, delta = (np.asarray(x) for x in (start, limit, delta))
    return np.arange(start.item(), limit.item(), delta.item(), start.dtype)


# -- parts -------------------------------------------------------------------------------------------------------------
@row("Concat")
def _concat(*xs: Any, axis: int) -> Any:
    return f.concat(*xs, axis=axis) if any(isinstance(x, Node) for x in xs) else np.concatenate(xs, axis)


@row("Split", static=(1,))
def _split(x: Any, sizes: Any = None, axis: int = 0, num_outputs: int | None = None, split: Any = None) -> Any:
    if sizes is None:
        count = num_outputs or 0
        if not count:
            raise OutOfScopeError("sizes that follow from the number of outputs", "Split")
        each = -(-x.shape[axis] // count)
        sizes = [each] * (count - 1) + [x.shape[axis] - each * (count - 1)]
    return f.split(x, numbers(sizes), axis)


@row("Slice", static=(1, 2, 3, 4))
def _slice(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    chosen = numbers(axes) if axes is not None else range(len(starts))
    by = numbers(steps) if steps is not None else [1] * len(starts)
    for axis, start, end, step in zip(chosen, numbers(starts), numbers(ends), by, strict=True):
        places = range(x.shape[axis])[start:end:step]
        if step > 0 or not places:
            x = x[(slice(None),) * (axis % len(x.shape)) + (slice(start, end, step),)]
        else:
            x = f.take(x, np.asarray(places, np.int64), axis)
    return x


@row("Gather", static=(1,))
def _gather(x: Any, indices: Any, axis: int = 0) -> Any:
    return f.take(x, np.where(indices < 0, indices + x.shape[axis], indices), axis)


@row("Pad", static=(1, 2, 3))
def _pad(x: Any, pads: Any, value: Any = None, axes: Any = None, mode: str = "constant") -> Any:
    chosen, sides = numbers(axes) if axes is not None else list(range(len(x.shape))), numbers(pads)
    low, high = [0] * len(x.shape), [0] * len(x.shape)
    for place, axis in enumerate(chosen):
        low[axis], high[axis] = sides[place], sides[place + len(chosen)]
    if mode != "constant":
        return padded(x, mode, low, high)
    return f.pad(x, low, high, value=0.0 if value is None else np.asarray(value).item())


@row("Tile", static=(1,))
def _tile(x: Any, repeats: Any) -> Any:
    for axis, times in enumerate(numbers(repeats)):
        x = f.concat(*[x] * times, axis=axis)
    return x


@row("Trilu", static=(1,))
def _trilu(x: Any, k: Any = 0, upper: int = 1) -> Any:
    rows, columns = f.iota(x.shape, -2), f.iota(x.shape, -1)
    kept = columns >= rows + int(k) if upper else columns <= rows + int(k)
    return f.where(kept, x, 0)


@row("DepthToSpace")
def _depth_to_space(x: Any, blocksize: int, mode: str = "DCR") -> Any:
    n, c, h, w = x.shape
    b, rest = blocksize, c // blocksize**2
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    shape = (n, b, b, rest, h, w) if mode == "DCR" else (n, rest, b, b, h, w)
    return f.reshape(f.permute(f.reshape(x, shape), order), (n, rest, h * b, w * b))


@row("SpaceToDepth")
def _space_to_depth(x: Any, blocksize: int, mode: str = "DCR") -> Any:
    n, c, h, w = x.shape
    b, order = blocksize, (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    cut = f.permute(f.reshape(x, (n, c, h // b, b, w // b, b)), order)
    return f.reshape(cut, (n, c * b * b, h // b, w // b))


@row("OneHot", static=(1, 2))
def _one_hot(labels: Any, depth: Any, values: Any, axis: int = -1) -> Any:
    classes = int(np.ravel(depth)[0])
    if np.dtype(str(labels.dtype)).kind != "i":
        labels = f.cast(labels, "int64")
    hot = f.one_hot(f.where(labels < 0, labels + classes, labels), classes, str(values.dtype))
    made = hot * (values[1] - values[0]) + values[0]
    order = list(range(len(made.shape) - 1))
    order.insert(axis if axis >= 0 else len(order) + 1 + axis, len(made.shape) - 1)
    return f.permute(made, order)


# -- products and sums -------------------------------------------------------------------------------------------------
@row("MatMul")
def _matmul(x: Any, y: Any) -> Any:
    return x @ y


@row("Gemm")
def _gemm(a: Any, b: Any, c: Any = None, alpha: float = 1.0, beta: float = 1.0, **transposed: int) -> Any:
    product = (a.T if transposed.get("transA") else a) @ (b.T if transposed.get("transB") else b) * alpha
    return product if c is None else product + c * beta


@row("CumSum", static=(1,))
def _cumsum(x: Any, axis: Any, exclusive: int = 0, reverse: int = 0) -> Any:
    at = int(axis)
    rows = f.swap_axes(x, 0, at)

    def step(total: Node, entry: Node) -> tuple[list[Node], list[Node]]:
        return [total + entry], [total if exclusive else total + entry]

    _, (sums,) = f.scan(step, [f.zeros(rows.shape[1:], str(x.dtype))], [rows], reverse=bool(reverse))
    return f.swap_axes(sums, 0, at)


@row("Einsum")
def _einsum(*xs: Any, equation: str) -> Any:
    known = {"ij->ji": lambda x: x.T, "ij->i": lambda x: f.sum(x, 1), "i,i": lambda x, y: f.sum(x * y),
             "bij, bjk -> bik": lambda x, y: x @ y}  # fmt: skip
    if equation not in known:
        raise OutOfScopeError("a mode of an operator", f"Einsum {equation}")
    return known[equation](*xs)
