"""Interpret graphs in an array namespace, node by node, by the meanings of their ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph.namespace import Array, Namespace, numpy_namespace
from sigma_kernel.graph.node import MEANINGS, Graph, Node, expanded, symbol

_Call = tuple[Callable[..., Any], list[int], int, list[int]]


def interpret(graph: Graph, ns: Namespace) -> Callable[..., tuple[Array, ...]]:
    """Return a function from input arrays to output arrays that computes the graph node by node."""
    place = graph.places()
    calls = list(_calls(graph, ns, place))
    start = [ns.array(n.attrs["value"], n.dtype) if n.op == "constant" else None for n in place]
    outputs = [place[node] for node in graph.outputs]

    def run(*arrays: Array) -> tuple[Array, ...]:
        values = start.copy()
        for i, (_, array) in enumerate(zip(graph.inputs, arrays, strict=True)):
            values[i] = array
        with ns.quiet():
            for function, operands, result, dead in calls:
                values[result] = function(*[values[i] for i in operands])
                for i in dead:
                    values[i] = None
        return tuple(values[i] for i in outputs)

    return run


def evaluated(graph: Graph, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the outputs of a graph on the host; those without axes are NumPy's numbers."""
    return tuple(np.array(value)[()] for value in interpret(graph, numpy_namespace())(*arrays))


def _calls(graph: Graph, ns: Namespace, place: Mapping[Node, int]) -> Iterator[_Call]:
    """Yield for each node its function, the places of operands and result, and the places that are free afterwards."""
    nodes = [node for node in graph if node.op not in ("input", "constant")]
    kept = {*graph.outputs}
    last = {x: node for node in nodes for x in node.inputs if x not in kept and x.op != "constant"}
    for node in nodes:
        dead = [place[x] for x in {*node.inputs} if last.get(x) is node]
        yield meaning_of(node, ns, _wanted(nodes, node)), [place[x] for x in node.inputs], place[node], dead


def _wanted(nodes: list[Node], scan: Node) -> dict[int, Node]:
    if scan.op != "scan":
        return {}
    return {n.attrs["index"]: n for n in nodes if n.op == "part" and n.inputs[0] is scan}


def meaning_of(node: Node, ns: Namespace, wanted: Mapping[int, Node] | None = None) -> Callable[..., Any]:
    """Return a function that computes a node from its operands' values; for a scan, its wanted parts."""
    meaning = ns.own.get(node.op) or MEANINGS.get(node.op)
    attrs = dict(node.attrs)
    if meaning is None:
        return _expanded(node, ns)
    if node.op == "scan":
        attrs |= {"run": interpret(attrs.pop("body"), ns), "wanted": wanted or {}}
    run = partial(meaning, ns, **attrs)
    return (lambda *operands: ns.word(run(*operands))) if node.dtype == "uint32" else run


def _expanded(node: Node, ns: Namespace) -> Callable[..., Array]:
    symbols = tuple(symbol(x.shape, x.dtype) for x in node.inputs)
    value = expanded(node, symbols)
    if value is None:
        raise SigmaGraphError(f"{node.op}: this op has neither a meaning nor an expansion. Give it one of them.")
    run = interpret(Graph(symbols, (value,)), ns)
    return lambda *operands: run(*operands)[0]
