"""Strided layouts of views: an offset and a stride for each axis, in elements of the storage that they share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod

from attrs import frozen

from sigma_kernel.graph import Node, Shape, select_ops

VIEWS = select_ops(view=True)


@frozen
class Layout:
    """An affine map from indices to elements."""

    offset: int
    strides: tuple[int, ...]


def source(node: Node) -> Node:
    """Return the node whose elements a view shows."""
    while node.op in VIEWS:
        node = node.inputs[0]
    return node


def chain(node: Node) -> list[Node]:
    """Return the views between a node and its source, the outermost first."""
    views = []
    while node.op in VIEWS:
        views.append(node)
        node = node.inputs[0]
    return views


@cache
def regular(shape: Shape) -> Layout:
    """Return the layout of contiguous elements."""
    return Layout(0, tuple(prod(shape[i + 1 :]) for i in range(len(shape))))


def layout(node: Node) -> Layout | None:
    """Return the layout of a node over its source's elements, or None if only a copy can have its shape."""
    placement: Layout | None = regular(source(node).shape)
    for view in reversed(chain(node)):
        if placement is None:
            return None
        placement = _view_layout(view, placement)
    return placement


def require_layout(node: Node) -> Layout:
    """Return the layout of a node that must have one."""
    placement = layout(node)
    if placement is None:
        raise AssertionError(f"{node!r} has no layout: a copy is missing")
    return placement


def is_regular(node: Node) -> bool:
    """Return whether a node's elements are contiguous and start at the beginning of its source."""
    placement, wanted = layout(node), regular(node.shape)
    if placement is None or placement.offset:
        return False
    pairs = zip(node.shape, placement.strides, wanted.strides, strict=True)
    return prod(node.shape) == 0 or all(side == 1 or a == b for side, a, b in pairs)


def _view_layout(view: Node, under: Layout) -> Layout | None:
    """Return the layout of a view, given that of its operand."""
    sides, strides = view.inputs[0].shape, under.strides
    match view.op:
        case "permute":
            return Layout(under.offset, tuple(strides[a] for a in view.attrs["axes"]))
        case "stretch":
            lead = len(view.shape) - len(sides)
            kept = tuple(0 if side == 1 else stride for side, stride in zip(sides, strides, strict=True))
            return Layout(under.offset, (0,) * lead + kept)
        case "slice":
            start, step = view.attrs["start"], view.attrs["step"]
            offset = under.offset + sum(a * s for a, s in zip(start, strides, strict=True))
            return Layout(offset, tuple(s * by for s, by in zip(strides, step, strict=True)))
        case "reshape":
            reshaped = _reshape_strides(sides, strides, view.shape)
            return None if reshaped is None else Layout(under.offset, reshaped)
    return under


def _reshape_strides(sides: Sequence[int], strides: Sequence[int], shape: Shape) -> tuple[int, ...] | None:
    """Return strides for another shape of the same elements in the same order, or None if there are none."""
    if 0 in shape:
        return regular(shape).strides
    runs: list[tuple[int, int]] = []  # axes that are stepped through evenly, merged
    for side, stride in zip(sides, strides, strict=True):
        if side == 1:
            continue
        if runs and runs[-1][1] == side * stride:
            runs[-1] = (runs[-1][0] * side, stride)
        else:
            runs.append((side, stride))
    steps: list[int] = []
    left, stride = runs.pop() if runs else (1, 0)
    for side in reversed(shape):
        if side == 1:
            steps.append(0)
            continue
        if left == 1:
            left, stride = runs.pop()
        if left % side:
            return None
        steps.append(stride)
        left, stride = left // side, stride * side
    return tuple(reversed(steps))
