"""Operands of products that are read in place: arrays in memory, with strides."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from attrs import frozen
from numpy.lib.stride_tricks import as_strided

from sigma_kernel.graph import Node

VIEWS = frozenset({"reshape", "permute", "stretch"})
ROUNDS = 4  # calls of a library that one product may take, before its operands are copied instead


@frozen
class StridedView:
    """An array in memory and how it is read: strides are in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def matrix(self) -> tuple[bool, int] | None:
        """Return whether a matrix is stored transposed, and the stride of its rows; None if neither order fits."""
        (rows, columns), (down, right) = self.shape[-2:], self.strides[-2:]
        if (right == 1 or columns == 1) and (down >= columns or rows == 1):
            return False, max(down, columns) if rows > 1 else columns
        if (down == 1 or rows == 1) and (right >= rows or columns == 1):
            return True, max(right, rows) if columns > 1 else rows
        return None


def view(node: Node) -> tuple[Node, StridedView] | None:
    """Return the array that a node is a view of, and how it is read; None if its elements must be copied."""
    layout = _find_layout(node)
    if layout is None:
        return None
    base, sample = layout
    return base, StridedView(sample.shape, sample.strides)


def _find_layout(node: Node) -> tuple[Node, np.ndarray] | None:
    """Return the array, and bytes that have its layout and are never read."""
    if node.op not in VIEWS:
        strides = [prod(node.shape[k + 1 :]) for k in range(len(node.shape))]
        return node, as_strided(np.empty(1, np.int8), node.shape, strides)
    below = _find_layout(node.inputs[0])
    if below is None:
        return None
    base, sample = below
    if node.op == "permute":
        return base, sample.transpose(node.attrs["axes"])
    if node.op == "stretch":
        return base, np.broadcast_to(sample, node.shape)
    try:
        return base, np.reshape(sample, node.shape, copy=False)
    except ValueError:
        return None


@frozen
class StridedProduct:
    """A matrix product of views; ``out`` is contiguous. ``narrow`` names operands of 16 bits."""

    x: StridedView
    y: StridedView
    shape: tuple[int, ...]
    dtype: str
    narrow: str = ""

    def batches(self) -> tuple[tuple[int, int, int, int], list[tuple[int, int, int]]]:
        """Return the innermost batch ``(count, x stride, y stride, out stride)`` and the offsets of each."""
        lead, size = self.shape[:-2], self.shape[-2] * self.shape[-1]
        steps = [prod(lead[k + 1 :]) * size for k in range(len(lead))]
        rows = [(n, *s) for n, *s in zip(lead, _lead(self.x, lead), _lead(self.y, lead), steps, strict=True) if n > 1]
        merged: list[tuple[int, int, int, int]] = []
        for row in rows:
            if merged and all(a == b * row[0] for a, b in zip(merged[-1][1:], row[1:], strict=True)):
                merged[-1] = (merged[-1][0] * row[0], *row[1:])  # type: ignore[assignment]
            else:
                merged.append(row)  # type: ignore[arg-type]
        inner = merged.pop() if merged else (1, 0, 0, 0)
        offsets = [(0, 0, 0)]
        for count, *steps3 in merged:
            a, b, c = steps3
            offsets = [(x + i * a, y + i * b, o + i * c) for x, y, o in offsets for i in range(count)]
        return inner, offsets


def _lead(one: StridedView, lead: Sequence[int]) -> list[int]:
    """Return the strides of leading axes that are broadcast."""
    short = len(lead) - (len(one.shape) - 2)
    pairs = zip(one.shape[:-2], one.strides[:-2], strict=True)
    return [0] * short + [stride if side > 1 else 0 for side, stride in pairs]


def product(node: Node) -> tuple[tuple[Node, Node], StridedProduct] | None:
    """Return the arrays and the form of a product; None if an operand must be copied for it."""
    x, y = map(view, node.inputs)
    if x is None or y is None or x[1].matrix is None or y[1].matrix is None:
        return None
    kinds = node.inputs[0].dtype
    strided_product = StridedProduct(x[1], y[1], node.shape, node.dtype, "" if kinds == node.dtype else kinds)
    return ((x[0], y[0]), strided_product) if len(strided_product.batches()[1]) <= ROUNDS else None
