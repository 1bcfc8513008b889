"""Table of kernels: the NumPy implementation of each op, writing to a given array.

A row prepares a node: it takes the node and the scratch bytes that :data:`SCRATCH` requests, and returns a function of
the operands and the result.  The result of an elementwise op may be one of its operands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from sigma_backend_numpy import windows
from sigma_backend_numpy.plan import STRIDED, elementwise
from sigma_kernel import Lowerings
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import (
    FLOATS,
    INTEGERS,
    OPS,
    Node,
    check_indices,
    erf,
    meaning_of,
    numpy_namespace,
    philox,
    sums,
)

Call = Callable[..., Any]
Prepare = Callable[[Node, np.ndarray], Call]
LOWERINGS = Lowerings("numpy")
CHUNK = 1 << 14  # elements per block if there are several passes: what fits into the L1 and L2 caches
SMALL = 1 << 12  # elements below which one call of NumPy's own function is fastest


def prepare(node: Node, scratch: np.ndarray) -> Call:
    """Return a function that computes a node into a given array.

    A plugin's op may have its own kernel: a function of arrays, and of attributes by name, that returns an array. Any
    other op that is not in the table is computed by NumPy's function of its standard name, or by its meaning.
    """
    if own := LOWERINGS.get(node.op):
        return _copy_result(node, partial(own, **node.attrs))
    ufunc = getattr(np, OPS[node.op].standard, None) if elementwise(node) else None
    if node.op not in KERNELS and isinstance(ufunc, np.ufunc):
        return ufunc
    return KERNELS.get(node.op, _meant)(node, scratch)


def scratch_bytes(node: Node) -> int:
    """Return the scratch bytes that a node needs while it is computed."""
    return SCRATCH[node.op](node) if node.op in SCRATCH else 0


def _meant(node: Node, scratch: np.ndarray) -> Call:
    return _copy_result(node, meaning_of(node, numpy_namespace()))


def _copy_result(node: Node, run: Call) -> Call:
    """Wrap a function that returns an array to write to the given result."""

    def call(*operands: np.ndarray) -> None:
        *given, out = operands
        result = np.asarray(run(*given))
        if (result.shape, result.dtype) != (out.shape, out.dtype):
            raise SigmaGraphError(
                f"{node.op}: its kernel returned {result.dtype}{list(result.shape)} instead of {node.spec}. Correct "
                "its kernel, or its row in the table of ops."
            )
        np.copyto(out, result)

    return call


# -- elementwise -------------------------------------------------------------------------------------------------------
def _call_ufunc(node: Node, scratch: np.ndarray) -> Call:
    function = getattr(np, node.op)
    return lambda x, y, out: function(x, y, out=out)  # for which NumPy takes no third operand


def _erf(node: Node, scratch: np.ndarray) -> Call:
    def call(x: np.ndarray, out: np.ndarray) -> None:
        flat, into = x.reshape(-1), out.reshape(-1)
        for start in range(0, flat.size, CHUNK):
            into[start : start + CHUNK] = erf(np, flat[start : start + CHUNK])

    return call


def _select(node: Node, scratch: np.ndarray) -> Call:
    condition, x, y = node.inputs
    size = prod(node.shape)
    full = condition.shape == node.shape and all(i.shape == node.shape or prod(i.shape) == 1 for i in (x, y))
    if size < SMALL or not full:
        return lambda c, x, y, out: np.copyto(out, np.where(c, x, y))
    mask, rest = scratch.view(f"i{np.dtype(node.dtype).itemsize}").reshape(2, -1)
    choose = _keep if y.op == "constant" and str(y.attrs["value"]) in ("0.0", "0", "False") else _choose

    def call(c: np.ndarray, x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
        """Select bits: without branches, and many times faster than ``np.where``."""
        whether = c.reshape(-1).view(np.int8)
        first, second, into = (a.reshape(-1).view(mask.dtype) for a in (x, y, out))
        for start in range(0, size, CHUNK):
            chunk = slice(start, start + CHUNK)
            some = whether[chunk]
            a, b = (values[chunk] if values.size > 1 else values for values in (first, second))
            np.negative(some, mask[: some.size], dtype=mask.dtype)
            choose(a, b, mask[: some.size], rest[: some.size], into[chunk])

    return call


def _keep(x: np.ndarray, y: np.ndarray, mask: np.ndarray, rest: np.ndarray, out: np.ndarray) -> None:
    np.bitwise_and(x, mask, out)


def _choose(x: np.ndarray, y: np.ndarray, mask: np.ndarray, rest: np.ndarray, out: np.ndarray) -> None:
    np.bitwise_xor(x, y, rest)
    np.bitwise_and(rest, mask, rest)
    np.bitwise_xor(rest, y, out)


def _cast(node: Node, scratch: np.ndarray) -> Call:
    if node.dtype in INTEGERS and node.inputs[0].dtype in FLOATS:
        return _meant(node, scratch)
    return lambda x, out: np.copyto(out, x, "unsafe")


# -- reductions --------------------------------------------------------------------------------------------------------
def _sum(node: Node, scratch: np.ndarray) -> Call:
    axis = node.attrs["axis"]
    if prod(node.inputs[0].shape) > sums.TERMS * prod(node.shape):
        return lambda x, out: sums.sum_axes(x, axis, out)
    return lambda x, out: np.add.reduce(x, axis, out=out, keepdims=True)


def _max(node: Node, scratch: np.ndarray) -> Call:
    axis = node.attrs["axis"]
    return lambda x, out: np.maximum.reduce(x, axis, out=out, keepdims=True)


def _argmax(node: Node, scratch: np.ndarray) -> Call:
    axis = node.attrs["axis"]
    return lambda x, out: np.copyto(out, np.argmax(x, axis, keepdims=True), "unsafe")


def _cumsum(node: Node, scratch: np.ndarray) -> Call:
    axis = node.attrs["axis"]
    if not node.attrs["reverse"]:
        return lambda x, out: np.add.accumulate(x, axis, out=out)
    return lambda x, out: np.add.accumulate(np.flip(x, axis), axis, out=np.flip(out, axis))


# -- shape -------------------------------------------------------------------------------------------------------------
def _reshape(node: Node, scratch: np.ndarray) -> Call:
    shape = node.inputs[0].shape  # the operand is a view that does not exist in memory
    return lambda x, out: np.copyto(out.reshape(shape), x)


def _pad(node: Node, scratch: np.ndarray) -> Call:
    attrs, sides = node.attrs, node.inputs[0].shape
    entries = zip(sides, attrs["low"], attrs["interior"], strict=True)
    inside = tuple(slice(low, low + side * (i + 1) - i if side else low, i + 1) for side, low, i in entries)

    def call(x: np.ndarray, out: np.ndarray) -> None:
        out.fill(attrs["value"])
        out[inside] = x

    return call


def _concat(node: Node, scratch: np.ndarray) -> Call:
    axis = node.attrs["axis"]
    return lambda *operands: np.concatenate(operands[:-1], axis, operands[-1])


# -- gathering ---------------------------------------------------------------------------------------------------------
def _take(node: Node, scratch: np.ndarray) -> Call:
    axis, side = node.attrs["axis"], node.inputs[0].shape[node.attrs["axis"]]

    def call(x: np.ndarray, places: np.ndarray, out: np.ndarray) -> None:
        check_indices(node.op, places, side)
        np.take(x, places, axis, out, "clip")  # in any other mode, NumPy writes to a buffer first

    return call


def _scatter_add(node: Node, scratch: np.ndarray) -> Call:
    axis, side = node.attrs["axis"], node.shape[node.attrs["axis"]]
    rank = len(node.inputs[1].shape)

    def call(x: np.ndarray, places: np.ndarray, updates: np.ndarray, out: np.ndarray) -> None:
        check_indices(node.op, places, side)
        np.copyto(out, x)
        front = np.moveaxis(out, axis, 0)
        rows = np.moveaxis(updates, range(axis, axis + rank), range(rank))
        _add_rows(front, places.reshape(-1), rows.reshape(places.size, *front.shape[1:]))

    return call


def _add_rows(out: np.ndarray, places: np.ndarray, rows: np.ndarray) -> None:
    """Scatter-add rows, those with the same index together: much faster than ``np.add.at`` for rows of any length."""
    if places.size:
        order = np.argsort(places, kind="stable")
        there = places[order]
        starts = np.flatnonzero(np.concatenate(([True], there[1:] != there[:-1])))
        out[there[starts]] += np.add.reduceat(rows[order], starts, axis=0)


# -- products ----------------------------------------------------------------------------------------------------------
def _matmul(node: Node, scratch: np.ndarray) -> Call:
    x, y = node.inputs
    if not (_readable(x) and _readable(y)):
        return lambda x, y, out: np.matmul(_straight(x), _straight(y), out)
    if len(x.shape) > 2 and prod(y.shape[:-2]) == 1 and len(y.shape) <= len(x.shape):  # one large product
        rows, sides = (-1, x.shape[-1]), y.shape[-2:]
        return lambda x, y, out: np.matmul(x.reshape(rows), y.reshape(sides), out.reshape(-1, sides[1]))
    return np.matmul


def _readable(node: Node) -> bool:
    """Return whether BLAS can read a value without a copy: contiguous, or a transposed matrix."""
    while node.op == "stop" or (node.op == "permute" and len(node.shape) == 2):
        node = node.inputs[0]
    return node.op not in STRIDED - {"reshape"}


def _straight(x: np.ndarray) -> np.ndarray:
    """Return an array that BLAS can read: one of the last two axes is contiguous, the other has a longer stride."""
    (far, near), (rows, columns), item = x.strides[-2:], x.shape[-2:], x.itemsize
    plain = near == item and far >= columns * item
    turned = far == item and near >= rows * item
    return x if plain or turned else np.ascontiguousarray(x)


# -- random bits -------------------------------------------------------------------------------------------------------
def _random_bits(node: Node, scratch: np.ndarray) -> Call:
    width, stream = prod(node.shape[1:]), node.attrs["stream"]

    def call(key: np.ndarray, iteration: np.ndarray, row: np.ndarray, scan: np.ndarray, out: np.ndarray) -> None:
        tail = (stream, int(iteration), int(scan))
        philox.fill(out.reshape(-1), scratch, (int(key[0]), int(key[1])), int(row) * width, tail)

    return call


KERNELS: dict[str, Prepare] = {
    "maximum": _call_ufunc, "minimum": _call_ufunc,
    "erf": _erf, "where": _select, "cast": _cast, "sum": _sum, "max": _max, "argmax": _argmax, "reshape": _reshape,
    "cumsum": _cumsum, "pad": _pad, "concat": _concat, "take": _take, "scatter_add": _scatter_add, "matmul": _matmul,
    "random_bits": _random_bits, **windows.KERNELS,
}  # fmt: skip

SCRATCH: dict[str, Callable[[Node], int]] = {
    "where": lambda node: 2 * np.dtype(node.dtype).itemsize * min(CHUNK, prod(node.shape)),
    "random_bits": lambda node: philox.scratch_bytes(prod(node.shape)),
    **windows.SCRATCH,
}
