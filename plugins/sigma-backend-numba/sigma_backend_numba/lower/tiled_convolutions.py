"""Which convolutions of rounded numbers are computed in tiles of bfloat16.

Their operands are no longer rounded before: they are while they are packed.  The elements of the windows come first in
their kernels, so that a tile has rows of contiguous numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from attrs import evolve

from sigma_backend_numba.compiler.tile_sizes import NEAR
from sigma_kernel.graph import BYTES, Node

TILED = "tiled"  # attribute of such a convolution
LEAST = 16  # minimum of the channels and the filters of a group
FEW, MANY = 32, 128  # minimum of positions, and with a kernel that leaves a core's own cache: it is packed per sample


def are_rounded(node: Node, inputs: Sequence[Node]) -> bool:
    """Return whether the operands of a product of float32 are numbers of bfloat16."""
    kinds = {x.attrs["dtype"] if x.op == "reduce_precision" else "" for x in inputs}
    return node.dtype == "float32" and kinds == {"bfloat16"}


def to_tiles(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """Return a convolution, or the gradient of its operand, in tiles of bfloat16; None where that does not pay."""
    if node.op not in ("convolution", "convolution_input") or not are_rounded(node, inputs):
        return None
    x, kernel = (operand.inputs[0] for operand in inputs)
    filters, channels = kernel.shape[0] // node.attrs["groups"], kernel.shape[1]
    places = prod(node.shape[2:]) // (prod(node.attrs["stride"]) if node.op == "convolution_input" else 1)
    large = filters * prod(kernel.shape[1:]) * BYTES[node.dtype] > NEAR
    if min(filters, channels) < LEAST or places < (MANY if large else FEW):
        return None
    last = (0, 1) if node.op == "convolution" else (1, 0)
    axes = (*range(2, len(kernel.shape)), *last)
    shape = tuple(kernel.shape[axis] for axis in axes)
    turned = Node("permute", (kernel,), {"axes": axes}, shape, kernel.dtype)
    return evolve(node, inputs=(x, turned), attrs={**node.attrs, TILED: True})
