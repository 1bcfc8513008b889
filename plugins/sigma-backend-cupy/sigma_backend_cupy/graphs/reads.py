"""Which elements of its operands an op reads for one element of its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from attrs import frozen

from sigma_backend_cupy.graphs.points import NOWHERE, Points
from sigma_backend_cupy.graphs.scalars import SCALARS
from sigma_kernel.graph import Node, select_ops

MOVES = select_ops(view=True) | select_ops(entries="moved") | select_ops(entries="gathered")
LEAVES = frozenset({"constant", "iota"})  # numbers, in the text of every kernel that reads them
REDUCTIONS = select_ops(entries="folded")
# each element is computed by a loop over elements of operands that are in memory
PULLED = select_ops(entries="pooled") | {"scatter_add"}
LOOPS = frozenset({*SCALARS, *MOVES, *LEAVES, *REDUCTIONS, *PULLED})
Value = Callable[[Node, str], str]  # an element of a node, as the name of a variable


@frozen
class Read:
    """An element of an operand; ``when`` names a condition, without which another element counts."""

    operand: Node
    point: str
    when: str = ""


def reads(node: Node, point: str, points: Points, value: Value) -> list[Read]:
    """Return the operands of the element at a point, in order; ``value`` is for the indices of ``take``."""
    if node.op in _RULES:
        return list(_RULES[node.op](node, point, points, value))
    if node.op in PULLED:
        at = point if node.op == "scatter_add" else NOWHERE
        return [Read(x, NOWHERE if i else at) for i, x in enumerate(node.inputs)]
    return [Read(x, broadcast_point(x.shape, node.shape, point, points)) for x in node.inputs]


def broadcast_point(operand: Sequence[int], shape: Sequence[int], point: str, points: Points) -> str:
    """Return the point of an operand that is broadcast to a shape."""
    if math.prod(operand) == math.prod(shape):
        return point
    parts = points.parts(point, shape)[len(shape) - len(operand) :]
    return points.point([p if side != 1 else "0" for p, side in zip(parts, operand, strict=True)], operand)


def _permute(node: Node, point: str, points: Points, value: Value) -> Iterator[Read]:
    (x,) = node.inputs
    parts = dict(zip(node.attrs["axes"], points.parts(point, node.shape), strict=True))
    yield Read(x, points.point([parts[axis] for axis in range(len(x.shape))], x.shape))


def _slice(node: Node, point: str, points: Points, value: Value) -> Iterator[Read]:
    (x,) = node.inputs
    parts, attrs = points.parts(point, node.shape), node.attrs
    cut = zip(parts, attrs["start"], attrs["step"], strict=True)
    yield Read(x, points.point([_affine(points, part, start, step) for part, start, step in cut], x.shape))


def _affine(points: Points, part: str, start: int, step: int) -> str:
    if part == "0":
        return str(start)
    scaled = f"{part} * {step}" if step > 1 else part
    return points.name(f"{scaled} + {start}", part) if start else points.name(scaled, part) if step > 1 else part


def _pad(node: Node, point: str, points: Points, value: Value) -> Iterator[Read]:
    """Read the operand's first element where the result has none of it."""
    (x,), attrs = node.inputs, node.attrs
    parts, places, inside = points.parts(point, node.shape), [], []
    for part, side, low, between in zip(parts, x.shape, attrs["low"], attrs["interior"], strict=True):
        moved = points.name(f"{part} - {low}", part) if low else part
        step = between + 1
        place = points.name(f"{moved} / {step}", moved) if between else moved
        test = f"{moved} >= 0 && {place} < {side}" + (f" && {moved} % {step} == 0" if between else "")
        inside.append(points.name(f"({test})", moved, place))
        places.append(points.name(f"{inside[-1]} ? {place} : 0", place, inside[-1]))
    when = points.name(" && ".join(inside) or "1", *inside)
    yield Read(x, points.point(places, x.shape), when)


def _concat(node: Node, point: str, points: Points, value: Value) -> Iterator[Read]:
    axis, start = node.attrs["axis"], 0
    parts = points.parts(point, node.shape)
    for x in node.inputs:
        side = x.shape[axis]
        place = points.name(f"{parts[axis]} - {start}", parts[axis]) if start else parts[axis]
        when = points.name(f"({place} >= 0 && {place} < {side})", place)
        if side:
            chosen = points.name(f"{when} ? {place} : 0", when, place)
            yield Read(x, points.point([*parts[:axis], chosen, *parts[axis + 1 :]], x.shape), when)
        start += side


def _take(node: Node, point: str, points: Points, value: Value) -> Iterator[Read]:
    x, indices = node.inputs
    axis, rank = node.attrs["axis"], len(indices.shape)
    parts = points.parts(point, node.shape)
    place = value(indices, points.point(parts[axis : axis + rank], indices.shape))
    yield Read(x, points.point([*parts[:axis], place, *parts[axis + rank :]], x.shape))


def _random(node: Node, point: str, points: Points, value: Value) -> Iterator[Read]:
    key, iteration, row, scan = node.inputs
    yield from (Read(key, "0"), Read(key, "1"), Read(iteration, "0"), Read(row, "0"), Read(scan, "0"))


_RULES: dict[str, Callable[[Node, str, Points, Value], Iterator[Read]]] = {
    "reshape": lambda node, point, points, value: iter([Read(node.inputs[0], point)]),
    "permute": _permute,
    "slice": _slice,
    "pad": _pad,
    "concat": _concat,
    "take": _take,
    "random_bits": _random,
    **dict.fromkeys(LEAVES, lambda node, point, points, value: iter(())),
}
