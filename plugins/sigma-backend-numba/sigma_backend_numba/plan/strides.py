"""Offsets and strides at which a loop nest reads and writes a value, from its layout and its axis map."""

from __future__ import annotations

from sigma_backend_numba.lower.layout import regular, require_layout
from sigma_backend_numba.plan.axis_maps import Map
from sigma_kernel.graph import Node, Shape


def strides(x: Node, m: Map, nest: Shape) -> tuple[int, tuple[int, ...]]:
    """Return the offset of a value in memory, and its stride along each axis of a nest."""
    return require_layout(x).offset, nest_strides(require_layout(x).strides, m, nest)


def own_strides(node: Node, m: Map, nest: Shape) -> tuple[int, tuple[int, ...]]:
    """Return the offset and strides at which a nest writes a value."""
    return 0, nest_strides(regular(node.shape).strides, m, nest)


def nest_strides(each: tuple[int, ...], m: Map, nest: Shape) -> tuple[int, ...]:
    """Return the stride along each axis of a nest, given those of the axes that follow it."""
    steps = [0] * len(nest)
    for axis, stride in zip(m, each, strict=True):
        if axis is not None:
            steps[axis] += stride
    return tuple(steps)
