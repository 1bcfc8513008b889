"""Convolution and pooling kernels: for every position in the window, one strided slice of the samples.

A window's place k touches ``x[:, :, o * stride + k * dilation - low]`` for those o where that is inside x, so that
nothing is padded. Convolutions are matrix products over columns, for as many samples at a time as caches hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from sigma_kernel.graph import Node, meaning_of, numpy_namespace

Slices = tuple[slice, ...]
Region = tuple[Slices, Slices]
Call = Callable[..., Any]
Prepare = Callable[[Node, np.ndarray], Call]
PORTION = 1 << 18  # bytes worked on at a time
ALL = slice(None)


def regions(shape: Sequence[int], window: Sequence[int], sides: Sequence[int], how: Mapping[str, Any]) -> list[Region]:
    """Return, for every position in the window, the slice of results ``(N, C, *sides)`` and the slice of x it reads."""
    dilation = how.get("dilation", (1,) * len(window))
    slices = []
    for place in product(*map(range, window)):
        axes = zip(shape[2:], sides, place, how["stride"], how["padding"], dilation, strict=True)
        cuts = [_cut(n, m, k * d - low, s) for n, m, k, s, (low, _), d in axes]
        slices.append(((ALL, ALL, *(a for a, _ in cuts)), (ALL, ALL, *(b for _, b in cuts))))
    return slices


def _cut(side: int, places: int, shift: int, stride: int) -> tuple[slice, slice]:
    """Return the windows with ``o * stride + shift`` inside a side, and those positions."""
    first = max(0, -(shift // stride))
    last = min(places - 1, (side - 1 - shift) // stride)
    if last < first:
        return slice(0, 0), slice(0, 0)
    return slice(first, last + 1), slice(first * stride + shift, last * stride + shift + 1, stride)


def _portions(samples: int, size: int) -> list[slice]:
    """Split the batch so that arrays of ``size`` bytes per sample stay in the cache."""
    count = _at_once(samples, size)
    return [slice(start, min(start + count, samples)) for start in range(0, samples, count)]


def _at_once(samples: int, size: int) -> int:
    return max(1, min(samples, PORTION // max(size, 1)))


# -- convolution -------------------------------------------------------------------------------------------------------
class _Columns:
    """im2col: the elements in all windows of some samples, ``(n, C, prod(K), *S')``, in scratch."""

    def __init__(self, node: Node, scratch: np.ndarray) -> None:
        x, w, g = _shapes(node)
        self.groups, sides, places, spots = node.attrs["groups"], g[2:], prod(w[2:]), prod(g[2:])
        self.regions = regions(x, w[2:], sides, node.attrs)
        self.padded = any(region[0][2:] != tuple(slice(0, side) for side in sides) for region in self.regions)
        self.portions = _portions(x[0], _column_bytes(node))
        self.weights = (self.groups, w[0] // self.groups, w[1] * places)
        self.results = (self.groups, w[0] // self.groups, spots)
        self.matrices = (self.groups, w[1] * places, spots)
        used = _at_once(x[0], _column_bytes(node)) * _column_bytes(node)
        self.whole = scratch[:used].view(node.dtype).reshape(-1, x[1], places, *sides)
        self.rest = scratch[used:].view(node.dtype)

    def gather(self, x: np.ndarray) -> np.ndarray:
        """Return the columns of some samples as matrices ``(n, groups, C / groups * prod(K), prod(S'))``."""
        columns = self.whole[: len(x)]
        if self.padded:
            columns.fill(0)
        for k, (inside, there) in enumerate(self.regions):
            columns[:, :, k][inside] = x[there]
        return columns.reshape(len(x), *self.matrices)

    def spread(self, out: np.ndarray) -> None:
        """Add the columns to the elements that they were read from (col2im)."""
        out.fill(0)
        for k, (inside, there) in enumerate(self.regions):
            out[there] += self.whole[: len(out), :, k][inside]


def _shapes(node: Node) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of x, w and the convolution's result."""
    first, second, result = *(x.shape for x in node.inputs), node.shape
    return {
        "convolution": (first, second, result),
        "convolution_input": (result, second, first),
        "convolution_kernel": (first, result, second),
    }[node.op]


def _column_bytes(node: Node) -> int:
    x, w, g = _shapes(node)
    return x[1] * prod(w[2:]) * prod(g[2:]) * np.dtype(node.dtype).itemsize


def _column_scratch(node: Node) -> int:
    return _at_once(_shapes(node)[0][0], _column_bytes(node)) * _column_bytes(node)


def _kernel_scratch(node: Node) -> int:
    """Request scratch for the gradient of each sample, too."""
    each = prod(node.shape) * np.dtype(node.dtype).itemsize
    return _column_scratch(node) + _at_once(node.inputs[0].shape[0], _column_bytes(node)) * each


def _convolution(node: Node, scratch: np.ndarray) -> Call:
    columns = _Columns(node, scratch)

    def call(x: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        weights = w.reshape(columns.weights)
        for part in columns.portions:
            np.matmul(weights, columns.gather(x[part]), out[part].reshape(-1, *columns.results))

    return call


def _convolution_input(node: Node, scratch: np.ndarray) -> Call:
    columns = _Columns(node, scratch)
    matrices = columns.whole.reshape(-1, *columns.matrices)

    def call(g: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
        weights = w.reshape(columns.weights).swapaxes(1, 2)
        for part in columns.portions:
            results = g[part].reshape(-1, *columns.results)
            np.matmul(weights, results, matrices[: len(results)])
            columns.spread(out[part])

    return call


def _convolution_kernel(node: Node, scratch: np.ndarray) -> Call:
    columns = _Columns(node, scratch)
    each = columns.rest[: len(columns.whole) * prod(columns.weights)].reshape(-1, *columns.weights)

    def call(x: np.ndarray, g: np.ndarray, out: np.ndarray) -> None:
        total = out.reshape(columns.weights)
        total.fill(0)
        for part in columns.portions:
            results = g[part].reshape(-1, *columns.results)
            slopes = each[: len(results)]
            np.matmul(results, columns.gather(x[part]).swapaxes(2, 3), slopes)
            total += np.add.reduce(slopes, 0)

    return call


# -- pooling -----------------------------------------------------------------------------------------------------------
def _pool(start: float, combine: np.ufunc) -> Prepare:
    """Return the kernel that combines the elements of each window."""

    def row(node: Node, scratch: np.ndarray) -> Call:
        portions, places = _pieces(node, node.inputs[0].shape, node.shape)

        def call(x: np.ndarray, out: np.ndarray) -> None:
            out.fill(start)
            for part in portions:
                for inside, there in places:
                    into = out[part][inside]
                    combine(into, x[part][there], out=into)

        return call

    return row


def _pool_argmax(node: Node, scratch: np.ndarray) -> Call:
    portions, places = _pieces(node, node.inputs[0].shape, node.shape)
    slow = meaning_of(node, numpy_namespace())

    def call(x: np.ndarray, out: np.ndarray) -> None:
        if np.isnan(np.add.reduce(x, None)) and np.isnan(x).any():  # comparisons do not find NaN
            out[...] = slow(x)
            return
        out.fill(0)
        for part in portions:
            best = np.full(out[part].shape, -np.inf, x.dtype)
            for k, (inside, there) in enumerate(places):
                top, value = best[inside], x[part][there]
                _put(out[part][inside], np.int32(k), value > top)
                np.maximum(top, value, out=top)

    return call


def _pool_select(node: Node, scratch: np.ndarray) -> Call:
    portions, places = _pieces(node, node.inputs[0].shape, node.shape)
    words = f"i{np.dtype(node.dtype).itemsize}"

    def call(x: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
        out.fill(0)
        values, into = x.view(words), out.view(words)
        for part in portions:
            for k, (inside, there) in enumerate(places):
                _put(into[part][inside], values[part][there], index[part][inside] == k)

    return call


def _put(out: np.ndarray, value: np.ndarray | np.int32, where: np.ndarray) -> None:
    """Overwrite chosen integers bit by bit: without branches, and many times faster than ``np.copyto``."""
    out ^= (out ^ value) & -where.view(np.int8)


def _pool_scatter(node: Node, scratch: np.ndarray) -> Call:
    portions, places = _pieces(node, node.shape, node.inputs[0].shape)
    words = f"i{np.dtype(node.dtype).itemsize}"

    def call(g: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
        out.fill(0)
        for part in portions:
            for k, (inside, there) in enumerate(places):
                chosen = -(index[part][inside] == k).view(np.int8)  # all bits, or none
                out[part][there] += (g[part][inside].view(words) & chosen).view(node.dtype)

    return call


def _sum_unpool(node: Node, scratch: np.ndarray) -> Call:
    portions, places = _pieces(node, node.shape, node.inputs[0].shape)

    def call(g: np.ndarray, out: np.ndarray) -> None:
        out.fill(0)
        for part in portions:
            for inside, there in places:
                out[part][there] += g[part][inside]

    return call


def _pieces(node: Node, x: Sequence[int], g: Sequence[int]) -> tuple[list[slice], list[Region]]:
    size = prod(x[1:]) * np.dtype(node.dtype).itemsize
    return _portions(x[0], size), regions(x, node.attrs["window"], g[2:], node.attrs)


KERNELS: dict[str, Prepare] = {
    "convolution": _convolution, "convolution_input": _convolution_input, "convolution_kernel": _convolution_kernel,
    "max_pool": _pool(-np.inf, np.maximum), "sum_pool": _pool(0.0, np.add), "sum_unpool": _sum_unpool,
    "pool_argmax": _pool_argmax, "pool_select": _pool_select, "pool_scatter": _pool_scatter,
}  # fmt: skip

SCRATCH: dict[str, Callable[[Node], int]] = {
    "convolution": _column_scratch,
    "convolution_input": _column_scratch,
    "convolution_kernel": _kernel_scratch,
}
