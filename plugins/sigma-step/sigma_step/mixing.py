"""Mixed precision: products read their operands in 16 bits, and add in float32; all else stays float32.

(P. Micikevicius et al., Mixed Precision Training, arXiv:1710.03740.)
"""

from __future__ import annotations

from collections.abc import Callable

from sigma_kernel.graph.node import Graph, Node, mark, originating
from sigma_kernel.graph.ops import mixed_matmul, reduce_precision
from sigma_kernel.graph.rewriting import map_nodes, with_inputs

# products whose operands are rounded one by one; ``mixed_matmul`` stands in for ``matmul``
ROUNDED = {"convolution", "convolution_input", "convolution_kernel", "attention", "attention_gradient"}


def mix_precision(graph: Graph, dtype: str, concerned: Callable[[str], bool]) -> Graph:
    """Return a graph whose float32 products read their operands in a dtype of 16 bits, bfloat16 or float16.

    They are matrix products, convolutions and their gradients, and attention, from the origins that are ``concerned``,
    in the bodies of scans as well. Rewrite afterwards, so that each value is rounded once.
    """

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        mark(node.origin)
        if node.dtype == "float32" and concerned(node.origin):
            if node.op == "matmul":
                return mixed_matmul(*inputs, dtype=dtype)
            if node.op in ROUNDED:
                inputs = tuple(reduce_precision(x, dtype=dtype) if x.dtype == "float32" else x for x in inputs)
        return with_inputs(node, inputs)

    with originating(""):
        return map_nodes(graph, change, lambda body: mix_precision(body, dtype, concerned))
