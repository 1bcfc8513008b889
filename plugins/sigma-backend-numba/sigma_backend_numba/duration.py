"""An estimate of how long a graph is compiled, from the graph alone."""

from __future__ import annotations

from sigma_kernel.graph import Graph, Node

LEAST = 0.2  # seconds of any program
NODE = 0.001  # seconds of a node
KERNEL = 0.12  # seconds of a product or a convolution, each compiled for its shapes
KERNELS = ("matmul", "convolution", "convolution_input", "convolution_kernel")


def estimate_compilation(graph: Graph) -> float:
    """Return about how many seconds a graph is compiled: within a factor of 2 on one core of 2020 or later."""
    nodes = _list_nodes(graph)
    kernels = {(node.op, node.spec, *(x.spec for x in node.inputs)) for node in nodes if node.op in KERNELS}
    return LEAST + NODE * len(nodes) + KERNEL * len(kernels)


def _list_nodes(graph: Graph) -> list[Node]:
    """Return the nodes of a graph, and of the bodies of its scans."""
    nodes = [*graph]
    return [*nodes, *(inner for node in nodes if node.op == "scan" for inner in _list_nodes(node.attrs["body"]))]
