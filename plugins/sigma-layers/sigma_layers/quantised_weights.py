"""A rewriting that rounds weights to a few bits."""

from __future__ import annotations

from typing import ClassVar

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Rewriting
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import FLOATS, Node, with_inputs
from sigma_kernel.settings import must

LAYERS = "network.layers."  # the addresses of parameters begin with it
BITS = range(2, 17)

_bits = must(
    lambda value: type(value) is int and value in BITS,
    f"a whole number from {BITS[0]} to {BITS[-1]}",
    SigmaNetworkError,
)


@define(eq=False)
class QuantisedWeights(Rewriting):
    """Round weights to a few bits where layers read them, so that a network learns to do with these.

    Weights are parameters of two axes or more. Each array of them becomes a whole multiple, of at most
    ``2**(bits - 1) - 1``, of its greatest absolute value divided by that number. The gradient is that without rounding
    (straight-through), and parameters keep all their bits: :func:`quantise` of them is what a device needs that
    computes with whole numbers.

    Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference,
    arXiv:1712.05877; as ``torch.fake_quantize_per_tensor_affine`` with a zero point of 0, but for ties, which go up.

    Args:
        bits: Bits of a weight, its sign included, from 2 to 16.
    """

    bits: int = field(default=8, validator=_bits)

    surrogate: ClassVar[bool] = True

    def replace(self, node: Node, inputs: tuple[Node, ...], training: bool) -> Node:
        """Return the node with rounded weights among its operands."""
        return with_inputs(node, tuple(quantise(x, self.bits) if is_weights(x) else x for x in inputs))


def is_weights(node: Node) -> bool:
    """Return whether a node is the weights of a layer, a parameter of two axes or more, as an input of the graph."""
    return node.op == "input" and node.attrs["name"].startswith(LAYERS) and len(node.shape) > 1 and node.dtype in FLOATS


def quantise(weights: Node, bits: int) -> Node:
    """Return weights of any shape rounded to so many bits, in their dtype; the gradient passes unchanged."""
    steps = float(2 ** (bits - 1) - 1)
    largest = f.max(f.abs(weights))
    unit = f.where(largest > 0.0, largest, 1.0) / steps
    return weights + f.stop(f.floor(weights / unit + 0.5) * unit - weights)
