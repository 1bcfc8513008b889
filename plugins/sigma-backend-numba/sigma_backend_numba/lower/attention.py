"""Attention in the form that its writer takes: heads are stored side by side, and the three gradients as one value.

``attend`` computes the result, ``attend_back`` the gradients of queries, keys and values, one after another.  Both
store the axis of the sequence right after the first one, as models merge the heads of each entry: that is then a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from sigma_kernel.graph import OPS, Graph, Node, Shape, map_nodes, with_inputs

FUSED = frozenset({"attention", "attention_gradient"})
LINE = 16  # elements to which the gradients are aligned
LONGEST = 1 << 14  # keys of a row of scores: a block of rows must fit into the cache


def is_lowered(node: Node) -> bool:
    """Return whether an attention is computed without its expansion."""
    keys = node.inputs[2 if node.op == "attention_gradient" else 1]
    sides = [side for x in (node, *node.inputs) for side in x.shape]
    return node.dtype in ("float32", "float64") and 0 not in sides and keys.shape[-2] <= LONGEST


def without_others(graph: Graph) -> Graph:
    """Return the graph with all attention expanded that is not kept."""
    if all(node.op not in FUSED and node.op != "scan" for node in graph):
        return graph

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        expansion = OPS[node.op].expansion if node.op in FUSED and not is_lowered(node) else None
        if expansion:
            return expansion(*inputs, **node.attrs)
        return with_inputs(node, inputs)

    return map_nodes(graph, change, without_others)


def order(rank: int) -> tuple[int, ...]:
    """Return the axes of a result in the order in which they are stored."""
    return (0, rank - 2, *range(1, rank - 2), rank - 1) if rank > 3 else tuple(range(rank))


def attend(node: Node, operands: Sequence[Node]) -> Node:
    """Return the result of an attention."""
    axes = order(len(node.shape))
    stored = tuple(node.shape[axis] for axis in axes)
    return _restore_axes(Node("attend", tuple(operands), dict(node.attrs), stored, node.dtype), axes)


def gradients(node: Node, operands: Sequence[Node]) -> Node:
    """Return the gradients of queries, keys and values."""
    count = sum(_room(shape) for shape in shapes(operands))
    attrs = {name: value for name, value in node.attrs.items() if name != "of"}
    return Node("attend_back", tuple(operands), attrs, (count,), operands[0].dtype)


def shapes(operands: Sequence[Node]) -> list[Shape]:
    """Return the shapes of the three gradients."""
    g, *others = operands
    return [(*g.shape[:-2], *x.shape[-2:]) for x in others[:3]]


def starts(operands: Sequence[Node]) -> list[int]:
    """Return the element at which each of the gradients begins."""
    sizes = [_room(shape) for shape in shapes(operands)]
    return [0, sizes[0], sizes[0] + sizes[1]]


def part(made: Node, of: int) -> Node:
    """Return one of the gradients."""
    shape, start = shapes(made.inputs)[of], starts(made.inputs)[of]
    axes, stop = order(len(shape)), start + prod(shape)
    piece = Node("slice", (made,), {"start": (start,), "stop": (stop,), "step": (1,)}, (prod(shape),), made.dtype)
    stored = tuple(shape[axis] for axis in axes)
    return _restore_axes(Node("reshape", (piece,), {"shape": stored}, stored, made.dtype), axes)


def _room(shape: Shape) -> int:
    return -(-prod(shape) // LINE) * LINE


def _restore_axes(stored: Node, axes: tuple[int, ...]) -> Node:
    """Return a stored value with its axes in their usual order."""
    back = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    shape = tuple(stored.shape[axis] for axis in back)
    return Node("permute", (stored,), {"axes": back}, shape, stored.dtype)
