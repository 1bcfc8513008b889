"""Attention and layer normalisation, with their gradients, as PyTorch's own fused calls.

Attention is an op of the graph. Layer normalisation, which is differentiated by its expansion, is recognised in the
graph by matching that expansion and its gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from operator import is_
from typing import Any

from attrs import evolve, frozen

from sigma_kernel import functions as f
from sigma_kernel.graph import Graph, Node, gradient, map_nodes, rewrite, symbol, with_inputs

ATTENTION = ("attention", "attention_gradient")
FLOATS = ("float32", "float64")
EPSILON = 0.3  # in a template: any constant


def compose_calls(graph: Graph) -> Graph:
    """Return the graph with fused calls in place of attention and layer normalisation, in bodies of scans as well."""
    images, pairs = {x: x for x in graph.inputs}, dict[Any, Node]()

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        image = None
        if node.op in ATTENTION and _fits(node):
            image = _attend(node, inputs, pairs)
        elif node.op in ("add", "div") and node.dtype in FLOATS and node.shape:
            image = _match_normalisation(node, images, pairs)
        if image is None:
            image = with_inputs(node, inputs)
        images[node] = image
        return image

    return map_nodes(graph, change, compose_calls)


def _part(node: Node, whole: Node, index: int) -> Node:
    return evolve(node, op="torch:part", inputs=(whole,), attrs={"index": index})


# -- attention ---------------------------------------------------------------------------------------------------------
def _fits(node: Node) -> bool:
    """Return whether PyTorch has the fused call: without a mask, for a batch of heads of one width."""
    q, *others = node.inputs[node.op == "attention_gradient" :]
    alike = len(others) == 2 and all(x.shape[:-2] == q.shape[:-2] and x.shape[-1] == q.shape[-1] for x in others)
    return alike and len(q.shape) == 4 and node.dtype in FLOATS and all(all(x.shape) for x in node.inputs)


def _attend(node: Node, inputs: tuple[Node, ...], pairs: dict[Any, Node]) -> Node:
    """Return attention, or one of its gradients: those of queries, keys and values are one call."""
    causal, operands = node.attrs["causal"], inputs[-3:]
    shape = operands[0].shape
    call = evolve(node, op="torch:attend", inputs=operands, attrs={"causal": causal}, shape=shape)
    pair = pairs.setdefault(("attend", causal, operands), call)
    if node.op == "attention":
        return _part(node, pair, 0)
    result, sums = _part(call, pair, 0), _part(evolve(call, shape=shape[:-1]), pair, 1)
    back = evolve(call, op="torch:attend_back", inputs=(*inputs, result, sums))
    return _part(node, pairs.setdefault(("attend_back", causal, inputs), back), node.attrs["of"])


# -- layer normalisation -----------------------------------------------------------------------------------------------
@frozen
class Template:
    """A graph to look for: from ``x``, and for the gradient ``g``, which stand for any nodes, to ``result``."""

    x: Node
    g: Node
    result: Node

    def found_at(self, node: Node) -> Mapping[Node, Node] | None:
        """Return the nodes in place of those of the template, whose result is at a node; None if it is not there."""
        matches: dict[Node, Node] = {}
        return matches if self._fits(self.result, node, matches) else None

    def _fits(self, wanted: Node, node: Node, found: dict[Node, Node]) -> bool:
        if wanted in found:
            return found[wanted] is node
        found[wanted] = node
        if _is_epsilon(wanted):
            return node.op == "constant"
        alike = (wanted.shape, wanted.dtype) == (node.shape, node.dtype)
        if wanted in {self.x, self.g}:
            return alike
        return (
            alike and wanted.op == node.op and wanted.attrs == node.attrs and len(wanted.inputs) == len(node.inputs)
            and all(self._fits(x, y, found) for x, y in zip(wanted.inputs, node.inputs, strict=True))
        )  # fmt: skip

    def epsilon(self, found: Mapping[Node, Node]) -> float:
        """Return the constant in place of EPSILON."""
        return next(float(y.attrs["value"]) for x, y in found.items() if _is_epsilon(x))


def _is_epsilon(x: Node) -> bool:
    return x.op == "constant" and x.attrs["value"] == EPSILON


@cache
def templates(shape: tuple[int, ...], dtype: str) -> tuple[Template, Template]:
    """Return layer normalisation without scale and shift, and the gradient of its input."""
    x, g = symbol(shape, dtype), symbol(shape, dtype)
    scale, shift = symbol(shape[-1:], dtype), symbol(shape[-1:], dtype)
    whole = f.layer_norm(x, scale, shift, epsilon=EPSILON)
    result, back = rewrite(Graph((x, g, scale, shift), (whole, *gradient(f.sum(g * whole), [x])))).outputs
    scaled = result.inputs[0]
    (slope,) = {
        y for y in Graph((x, g, scale, shift), (back,)) if y.op == "mul" and all(map(is_, y.inputs, (g, scale)))
    }
    return Template(x, g, scaled.inputs[0]), Template(x, slope, back)


def _match_normalisation(node: Node, known: Mapping[Node, Node], pairs: dict[Any, Node]) -> Node | None:
    """Return the match of a template, if the node is its result."""
    forward, backward = templates(node.shape, node.dtype)
    template = forward if node.op == "div" else backward
    if (match := template.found_at(node)) is None:
        return None
    x, side = known[match[template.x]], node.shape[-1]
    attrs = {"side": side, "epsilon": template.epsilon(match)}
    whole = evolve(node, op="torch:norm", inputs=(x,), attrs=attrs)
    whole = pairs.setdefault(("norm", x, attrs["epsilon"]), whole)
    if template is forward:
        return _part(node, whole, 0)
    sums = evolve(node, shape=(*node.shape[:-1], 1))
    operands = (known[match[template.g]], x, _part(sums, whole, 1), _part(sums, whole, 2))
    return evolve(node, op="torch:norm_back", inputs=operands, attrs={"side": side})
