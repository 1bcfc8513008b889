"""Ops that rearrange and gather in ONNX, and constants."""

from __future__ import annotations

import numpy as np

from sigma_export_onnx.elementwise import Express
from sigma_export_onnx.sizes import AnyNode, Sides
from sigma_export_onnx.writer import GraphWriter


def _stretch(w: GraphWriter, node: AnyNode, x: str) -> str:
    """Expand; sides that are the operand's already are 1, which leaves them."""
    own = node.inputs[0].shape
    sides = (*(1,) * (len(node.shape) - len(own)), *own)
    return w.add("Expand", x, w.vector(tuple(1 if a == b else b for a, b in zip(sides, node.shape, strict=True))))


def _slice(w: GraphWriter, node: AnyNode, x: str) -> str:
    start, stop, step = (node.attrs[name] for name in ("start", "stop", "step"))
    whole = zip(start, stop, step, node.inputs[0].shape, strict=True)
    axes = [axis for axis, (a, b, by, side) in enumerate(whole) if (a, b, by) != (0, side, 1)]
    starts, stops = (w.vector(tuple(ends[axis] for axis in axes)) for ends in (start, stop))
    return w.add("Slice", x, starts, stops, w.array(axes), w.array([step[axis] for axis in axes]))


def _pad(w: GraphWriter, node: AnyNode, x: str) -> str:
    low, high, value = (node.attrs[name] for name in ("low", "high", "value"))
    shape = node.inputs[0].shape
    for axis, between in enumerate(node.attrs["interior"]):
        if between:
            x, shape = _dilate(w, node, x, shape, axis, between)
    return x if not any((*low, *high)) else w.add("Pad", x, w.vector((*low, *high)), w.number(value, node))


def _dilate(w: GraphWriter, node: AnyNode, x: str, shape: Sides, axis: int, between: int) -> tuple[str, Sides]:
    """Put copies of a value between neighbours along an axis, whose side is fixed."""
    before, after, side = shape[:axis], shape[axis + 1 :], _side_length(shape[axis])
    wide = w.reshape(x, (*before, side, 1, *after))
    pads = [0] * (len(shape) + 1) * 2
    pads[len(shape) + 1 + axis + 1] = between
    filled = w.add("Pad", wide, w.array(pads), w.number(node.attrs["value"], node))
    flat = w.reshape(filled, (*before, side * (1 + between), *after))
    kept = max(side * (1 + between) - between, 0)
    return w.add("Slice", flat, w.array([0]), w.array([kept]), w.array([axis])), (*before, kept, *after)


def _side_length(side: object) -> int:
    return side if isinstance(side, int) else 0


def _concat(w: GraphWriter, node: AnyNode, *x: str) -> str:
    return w.add("Concat", *x, axis=node.attrs["axis"])


def _iota(w: GraphWriter, node: AnyNode) -> str:
    """Return numbers along an axis, from 0."""
    axis, side = node.attrs["axis"], node.shape[node.attrs["axis"]]
    column: Sides = (side, *(1,) * (len(node.shape) - axis - 1))
    if isinstance(side, int):
        numbers = w.array(np.arange(side).reshape(column), node.dtype)
    else:
        count = w.add("Squeeze", w.vector((side,)), w.array([0]))
        numbers = w.cast(w.reshape(w.add("Range", w.array(0), count, w.array(1)), column), node.dtype)
    others = w.vector((*node.shape[:axis], 1, *node.shape[axis + 1 :]))
    return numbers if column == node.shape else w.add("Expand", numbers, others)


def _take(w: GraphWriter, node: AnyNode, x: str, indices: str) -> str:
    return w.add("Gather", x, indices, axis=node.attrs["axis"])


def _scatter_add(w: GraphWriter, node: AnyNode, x: str, indices: str, updates: str) -> str:
    """Scatter rows, after the axis has been moved to the front, and the axes of the indices before all others."""
    axis, places, rank = node.attrs["axis"], len(node.inputs[1].shape), len(node.inputs[2].shape)
    order = [axis, *(i for i in range(len(node.shape)) if i != axis)]
    named = [*range(axis, axis + places)]
    front = w.add("Transpose", x, perm=order)
    rows = w.add("Transpose", updates, perm=[*named, *(i for i in range(rank) if i not in named)])
    columns = w.cast(w.reshape(indices, (*node.inputs[1].shape, 1)), "int64")
    total = w.add("ScatterND", front, columns, rows, reduction="add")
    return w.add("Transpose", total, perm=sorted(range(len(order)), key=order.__getitem__))


TABLE: dict[str, Express] = {
    "reshape": lambda w, node, x: w.reshape(x, node.shape),
    "permute": lambda w, node, x: w.add("Transpose", x, perm=node.attrs["axes"]),
    "stretch": _stretch,
    "slice": _slice,
    "pad": _pad,
    "concat": _concat,
    "array": lambda w, node: w.array(node.attrs["value"].array, node.dtype),
    "constant": lambda w, node: w.array(node.attrs["value"], node.dtype),
    "iota": _iota,
    "take": _take,
    "scatter_add": _scatter_add,
}
