"""Rewrite the forward pass of a network by the rewritings of a trainer, before gradients are taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve

from sigma_kernel.contracts import Rewriting, Totals
from sigma_kernel.errors import expect, introduce_errors
from sigma_kernel.graph.node import Graph, Node, originating, symbol
from sigma_kernel.graph.rewriting import map_nodes, replace_nodes, with_inputs
from sigma_kernel.network.network import Forward
from sigma_kernel.registry.addresses import Tags, matches


def rewrite_forward(
    forward: Forward, inputs: Mapping[str, Node], rewritings: Mapping[str, Rewriting], training: bool, tags: Tags
) -> Forward:
    """Return the forward pass with nodes after ``inputs`` replaced; raise SigmaComponentError if they do not fit.

    Rewritings see all of ``inputs`` as inputs of these names, though some may be computed.
    """
    seen = {x: x if x.op == "input" else symbol(x.shape, x.dtype, name) for name, x in inputs.items()}
    graph = Graph(tuple(seen.values()), replace_nodes(_list_nodes(forward), seen))
    outputs = apply_rewritings(graph, rewritings, training, tags).outputs
    return _with_nodes(forward, replace_nodes(outputs, {new: x for x, new in seen.items()}))


def apply_rewritings(graph: Graph, rewritings: Mapping[str, Rewriting], training: bool, tags: Tags) -> Graph:
    """Return what rewritings make of a graph, one after the other; raise SigmaComponentError if it does not fit."""
    before = {node for node in graph if node.op == "input"}
    for name, rewriting in rewritings.items():
        with introduce_errors(f"rewriting {name!r}", rewriting):
            graph = rewrite_graph(graph, rewriting, training, tags)
            others = [node.attrs["name"] for node in graph if node.op == "input" and node not in before]
            expect(not others, "replace() must read inputs of the network alone", tuple(others))
    return graph


def rewrite_graph(graph: Graph, rewriting: Rewriting, training: bool, tags: Tags) -> Graph:
    """Return a graph, and the bodies of its loops, with nodes replaced; raise SigmaComponentError for other specs."""

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        if node.op == "input" or not matches(rewriting.match, node.origin, tags):
            return with_inputs(node, inputs)
        with originating(node.origin):
            new = rewriting.replace(node, inputs, training)
        expect(isinstance(new, Node), "replace() must return a node", new)
        kept = (new.shape, new.dtype) == (node.shape, node.dtype)
        expect(kept, f"replace() must return {node.dtype} of shape {node.shape} in place of {node.op!r}", new)
        return new

    return map_nodes(graph, change, lambda body: rewrite_graph(body, rewriting, training, tags))


def _list_nodes(forward: Forward) -> list[Node]:
    """Return all nodes that a forward pass holds."""
    named = [node for nodes in _nodes_by_name(forward).values() for node in nodes.values()]
    totals = [node for each in forward.totals.values() for node in (each.total, each.weight)]
    return [*named, *totals, *(node for region in forward.regions for node in region.ends)]


def _nodes_by_name(forward: Forward) -> dict[str, Mapping[str, Node]]:
    return {name: getattr(forward, name) for name in ("values", "predictions", "costs", "state")}


def _with_nodes(forward: Forward, new: Iterable[Node]) -> Forward:
    """Return a forward pass with these nodes in place of those that :func:`_list_nodes` returns."""
    rest = iter(new)
    named: dict[str, Any] = {
        name: {each: next(rest) for each in nodes} for name, nodes in _nodes_by_name(forward).items()
    }
    totals = {name: Totals(next(rest), next(rest)) for name in forward.totals}
    regions = [region.with_ends([next(rest) for _ in region.ends]) for region in forward.regions]
    return evolve(forward, **named, totals=totals, regions=regions)
