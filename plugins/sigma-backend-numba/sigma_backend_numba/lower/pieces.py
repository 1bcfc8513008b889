"""Put pieces side by side: a sum of values that are zeros around a piece each is a ``concat`` of the pieces.

Gradients of the parts into which a value was split, like the gates of a cell, are such sums.
"""

from __future__ import annotations

from itertools import accumulate

from sigma_kernel.graph import Graph, Node, map_nodes, ops, with_inputs


def side_by_side(graph: Graph) -> Graph:
    """Return a graph in which sums of pieces that cover all of an axis are concats, in the bodies of scans as well."""
    if {"pad", "scan"}.isdisjoint(node.op for node in graph):
        return graph
    pieces: dict[Node, tuple[Node, ...]] = {}  # the padded pieces whose sum a node is

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        image = with_inputs(node, inputs)
        if _axis(image) is not None:
            pieces[image] = (image,)
        elif image.op == "add" and all(x in pieces and x.shape == image.shape for x in inputs):
            parts = tuple(piece for x in inputs for piece in pieces[x])
            if (whole := _join_pieces(parts)) is not None:
                return whole
            pieces[image] = parts
        return image

    return map_nodes(graph, change, side_by_side)


def _axis(node: Node) -> int | None:
    """Return the only axis along which a node has zeros around its operand, if that is all that it does."""
    if node.op != "pad" or node.attrs["value"] != 0 or any(node.attrs["interior"]):
        return None
    axes = [k for k, (side, own) in enumerate(zip(node.shape, node.inputs[0].shape, strict=True)) if side != own]
    return axes[0] if len(axes) == 1 else None


def _join_pieces(found: tuple[Node, ...]) -> Node | None:
    """Return padded pieces as one value, if they cover all of an axis, each place once."""
    axis = _axis(found[0])
    if axis is None or any(_axis(piece) != axis for piece in found):
        return None
    order = sorted(found, key=lambda piece: int(piece.attrs["low"][axis]))
    ends = accumulate((piece.inputs[0].shape[axis] for piece in order), initial=0)
    if [*(piece.attrs["low"][axis] for piece in order), found[0].shape[axis]] != [*ends]:
        return None
    return ops.concat(*(piece.inputs[0] for piece in order), axis=axis)
