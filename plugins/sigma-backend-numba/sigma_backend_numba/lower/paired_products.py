"""Which convolutions, and products of attention, are computed by dot products of bfloat16.

Operands of convolutions are no longer rounded before: they are while they are packed in pairs.  A convolution and the
gradient of its operand sum over pairs of channels or filters, and read a kernel that is packed once: the op ``paired``
exists only here, and packs each two rows of its operand ``(groups, rows, columns)``.  The gradient of a kernel sums
over pairs of positions.  Those of attention sum over pairs of the columns of two operands, which stay rounded: they are
multiplied by weights of float32, too.
"""

from __future__ import annotations

from math import prod

from attrs import evolve

from sigma_backend_numba.lower.attention import FUSED
from sigma_backend_numba.lower.tiled_convolutions import are_rounded
from sigma_kernel.graph import Node

CONVOLUTIONS = frozenset({"convolution", "convolution_input", "convolution_kernel"})
PAIRED = "paired"  # attribute of such a node: true, or the shape of a convolution's kernel
FEW = 16  # minimum of positions
REUSED = 32  # minimum of the products with each number of a convolution that is packed
SHARE = 8  # minimum of the filters, and of those products in the gradient of a kernel, which packs both operands


def to_pairs(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """Return a node that is computed by dot products; None where that does not pay."""
    if node.op not in FUSED | CONVOLUTIONS or not are_rounded(node, [x for x in inputs if x.dtype != "bool"]):
        return None
    if node.op in FUSED:
        return evolve(node, inputs=inputs, attrs={**node.attrs, PAIRED: True})
    x, other = (operand.inputs[0] for operand in inputs)
    kernel = node.shape if node.op == "convolution_kernel" else other.shape
    result = {"convolution": node, "convolution_input": x, "convolution_kernel": other}[node.op]
    filters, channels, taps = kernel[0] // node.attrs["groups"], kernel[1], prod(kernel[2:])
    if prod(result.shape[2:]) < FEW or not _gains(node.op, filters, channels, taps):
        return None
    operand = other if node.op == "convolution_kernel" else _pack_kernel(node, other)
    return evolve(node, inputs=(x, operand), attrs={**node.attrs, PAIRED: kernel})


def _gains(op: str, filters: int, channels: int, taps: int) -> bool:
    """Return whether packing takes less than it saves, given the sides of a group and the elements of a window."""
    if op == "convolution_kernel":
        return filters >= SHARE and filters * channels * taps >= SHARE * (filters + channels)
    rows, summed = (filters, channels) if op == "convolution" else (channels, filters)
    return summed > 1 and rows * taps >= REUSED


def _pack_kernel(node: Node, kernel: Node) -> Node:
    """Return the kernel as words of two channels, or of two filters for the gradient of the operand."""
    (filters, channels), groups, taps = kernel.shape[:2], node.attrs["groups"], prod(kernel.shape[2:])
    back = (groups, filters // groups, channels * taps)
    sides = back if node.op == "convolution_input" else (filters, channels, taps)
    view = Node("reshape", (kernel,), {"shape": sides}, sides, kernel.dtype)
    return Node(PAIRED, (view,), {}, (sides[0], -(-sides[1] // 2), sides[2]), kernel.dtype)
