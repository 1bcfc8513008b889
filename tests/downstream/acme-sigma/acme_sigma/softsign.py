"""Softsign: a sigmoid that approaches its limits slowly.

Turian, Bergstra and Bengio, Quadratic features and deep architectures for chunking, 2009.
"""

from sigma_kernel import functions as f
from sigma_kernel.graph import Node, dtypes, op, shapes


def _gradient(g: Node, z: Node, x: Node) -> Node:
    return g / f.square(f.abs(x) + 1.0)


def _expansion(x: Node) -> Node:
    return x / (f.abs(x) + 1.0)


softsign = op("acme-sigma:softsign", shapes.same, dtypes.floating, _gradient, _expansion)
