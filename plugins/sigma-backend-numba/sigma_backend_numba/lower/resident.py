"""Find the minibatches whose rows products read in place, in the resident block, without a copy."""

from __future__ import annotations

from collections.abc import Sequence

from sigma_backend_numba.compiler.tile_sizes import AT_ONCE
from sigma_backend_numba.lower.layout import VIEWS, layout, regular, source
from sigma_backend_numba.lower.product_table import BLAS, select_route
from sigma_kernel.graph import BYTES, Graph, Node

LEAST = 4  # vectors of columns of a product: the tiles of a narrower one have more rows than pointers fit in registers
MOST = 512  # columns of a product: a wider one reads the rows of a copy so often that copying costs less than distance


def read_in_place(graph: Graph, data: Sequence[Node]) -> set[Node]:
    """Return the inputs that nothing reads but products which can take each row from its own place."""
    arrays = {x for x in data if x.dtype in ("float32", "float64") and 0 not in x.shape}
    arrays -= {source(out) for out in graph.outputs}
    for node in graph:
        for number, x in enumerate(node.inputs):
            if source(x) in arrays and node.op not in VIEWS and (number or not _takes_rows(node, x)):
                arrays.discard(source(x))
    return arrays


def _takes_rows(node: Node, x: Node) -> bool:
    """Return whether a node is a product in registers of all samples, or of their transpose, with another value."""
    if node.op != "matmul" or len(node.shape) != 2 or source(node.inputs[1]) is source(x):
        return False
    rows, width = source(x).shape[0], regular(source(x).shape).strides[0]
    return min(rows, width) > 1 and _reads(node, x, rows, width) and _in_registers(node)


def _reads(node: Node, x: Node, rows: int, width: int) -> bool:
    """Return whether the first operand of a product shows whole rows, one pointer for each of those of a tile."""
    placement = layout(x)
    if placement is None or placement.offset:
        return False
    turned = x.shape == (width, rows) and placement.strides == (1, width)
    wide = node.shape[1] * BYTES[node.dtype] >= LEAST * AT_ONCE and node.shape[1] <= MOST
    return turned or (wide and x.shape == (rows, width) and placement.strides == (width, 1))


def _in_registers(node: Node) -> bool:
    """Return whether a product is computed in tiles of registers: BLAS takes rows at equal distances only."""
    (rows, columns), inner = node.shape, node.inputs[0].shape[1]
    other = layout(node.inputs[1])
    return select_route(rows, columns, inner, other is not None and other.strides[-1] != 1).way != BLAS
