"""Pack the matrices by which every step of a scan multiplies, once, before the loop.

The op ``packed`` exists only here: a product with the panels of a matrix, ``(panels, inner, width)``.  A panel has as
many columns as a tile of the product, so that a tile reads contiguous memory; the last one is filled with zeros.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from sigma_backend_numba.compiler.processor import registers
from sigma_backend_numba.compiler.tile_sizes import AT_ONCE
from sigma_kernel.graph import BYTES, FLOATS, Graph, Node, map_nodes, ops, symbol, topological_order, with_inputs

STEPS, COLUMNS = 4, 16  # minimum steps, and columns of a matrix, for which packing is worthwhile


def vectors() -> int:
    """Return how many vectors of 64 bytes a row of a tile has, if they leave registers for several rows."""
    return 2 if registers() == 512 else 1


def pack_matrices(scan: Node) -> Node:
    """Return a scan with the panels of its body's matrices as inputs, or the same node."""
    attrs, body = scan.attrs, scan.attrs["body"]
    first, split = attrs["carries"] + attrs["sequences"], attrs.get("split", (False,) * len(body.inputs))
    operands = zip(body.inputs[first:], scan.inputs[first:], split[first:], strict=True)
    outer = {x: given for x, given, cut in operands if not cut}
    factors = dict.fromkeys(node.inputs[1] for node in body if _is_product(node)) if attrs["length"] >= STEPS else {}
    panels = {x: _panels(factor) for x in factors if (factor := _find_outside(x, outer)) is not None}
    if not panels:
        return scan
    inside = {x: symbol(factor.shape, factor.dtype) for x, factor in panels.items()}
    results = map_nodes(body, lambda node, inputs: _multiply_packed(node, inputs, inside), lambda inner: inner).outputs
    used = {*body.inputs[:first], *topological_order(results)}
    kept = [row for row in zip(body.inputs, scan.inputs, split, strict=True) if row[0] in used]
    kept += [(inside[x], factor, False) for x, factor in panels.items()]
    inputs, given, cuts = zip(*kept, strict=True)
    more = {"body": Graph(inputs, results), "split": cuts}
    return evolve(scan, inputs=given, attrs={**attrs, **more})


def _find_outside(x: Node, outer: Mapping[Node, Node]) -> Node | None:
    """Return a matrix of the body as it is before the loop: a constant, perhaps rounded or transposed."""
    if x in outer or x.op not in ("reduce_precision", "permute"):
        return outer.get(x)
    operand = _find_outside(x.inputs[0], outer)
    return None if operand is None else evolve(x, inputs=(operand,))


def _is_product(node: Node) -> bool:
    """Return whether a node is a product of two matrices, wide enough to be packed."""
    flat = node.op == "matmul" and node.dtype in FLOATS and all(len(x.shape) == 2 for x in node.inputs)
    return flat and node.shape[1] >= COLUMNS and node.inputs[0].shape[1] > 0


def _multiply_packed(node: Node, inputs: tuple[Node, ...], inside: dict[Node, Node]) -> Node:
    if _is_product(node) and node.inputs[1] in inside:
        return evolve(node, op="packed", inputs=(inputs[0], inside[node.inputs[1]]))
    return with_inputs(node, inputs)


def _panels(matrix: Node) -> Node:
    """Return the panels of a matrix."""
    inner, columns = matrix.shape
    width = vectors() * AT_ONCE // BYTES[matrix.dtype]
    count = -(-columns // width)
    if columns % width:
        matrix = ops.pad(matrix, low=(0, 0), high=(0, count * width - columns), interior=(0, 0), value=0.0)
    return ops.permute(ops.reshape(matrix, shape=(inner, count, width)), axes=(1, 0, 2))
