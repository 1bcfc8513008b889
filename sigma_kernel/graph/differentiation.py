"""Reverse-mode differentiation: nodes in, nodes out.

The rules of the ops are in the op table. This module finds the nodes on a path to a target, adds the gradients from
several users of a node, and differentiates scans, which have several results.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence

from attrs import field, frozen

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import ops
from sigma_kernel.graph.flows import Flow
from sigma_kernel.graph.node import FLOATS, OPS, Graph, Node, expand_node, originating, symbol, topological_order
from sigma_kernel.graph.ops import full, loop, results
from sigma_kernel.graph.rewriting import close_graph, replace_nodes

Nodes = dict[Node, Node]
Flows = dict[Node, Flow]


def gradient(loss: Node, targets: Sequence[Node]) -> tuple[Node, ...]:
    """Return the gradient of a scalar with respect to each target; zeros if it does not depend on the target.

    Raises SigmaGraphError if the loss is not a single float, or a target is not of a float dtype.
    """
    return flows_of(loss, targets)[0]


def flows_of(loss: Node, targets: Sequence[Node], passed: Sequence[Node] = ()) -> tuple[tuple[Node, ...], Flows]:
    """Return gradients as :func:`gradient` does, and those of nodes that are ``passed``, with their masks."""
    if loss.shape != (1,) * len(loss.shape) or loss.dtype not in FLOATS:
        raise SigmaGraphError(f"gradient: the loss must be a single float (got {loss.spec}). Sum it up first.")
    for target in targets:
        if target.dtype not in FLOATS:
            raise SigmaGraphError(f"gradient: the target {target!r} is not a float. Cast it before it is used.")
    flows = pull([(loss, Flow(full(1.0, loss.shape, loss.dtype)))], [*targets, *passed])
    gradients = (flows[target].zero_outside() if target in flows else _zeros(target) for target in targets)
    return tuple(gradients), {x: flows[x] for x in passed if x in flows}


def pull(seeds: Sequence[tuple[Node, Flow]], targets: Sequence[Node], border: Container[Node] = ()) -> Flows:
    """Propagate the gradients of some nodes (a node may occur twice) back to the targets that they depend on.

    Nodes beyond the border are ignored.
    """
    order = list(topological_order([node for node, _ in seeds], border))
    needed = _nodes_on_path(order, targets, border)
    flows = _Flows()
    for node, flow in seeds:
        flows.add(node, flow)
    for node in reversed(order):
        if node in needed and node not in border and flows.reach(node):
            for operand, part in zip(node.inputs, flows.of_operands(node, needed), strict=True):
                if part is not None and operand in needed:
                    flows.add(operand, part)
    return {target: flows.whole[target] for target in targets if target in flows.whole}


def _zeros(node: Node) -> Node:
    return full(0, node.shape, node.dtype)


def _nodes_on_path(order: Sequence[Node], targets: Sequence[Node], border: Container[Node]) -> set[Node]:
    """Return the nodes on a differentiable path to a target."""
    needed = set(targets)
    for node in order:
        if node not in border and _lets_through(node) and not needed.isdisjoint(node.inputs):
            needed.add(node)
    return needed


def _lets_through(node: Node) -> bool:
    if node.op in ("scan", "part"):
        return node.dtype in (*FLOATS, "tuple")
    row = OPS.get(node.op)
    return row is not None and node.dtype in FLOATS and bool(row.gradient or row.expansion)


@frozen(eq=False, repr=False)
class _Flows:
    """The gradients of nodes so far; for scans, by the number of the part."""

    whole: Flows = field(factory=dict)
    parts: dict[Node, dict[int, Node]] = field(factory=dict)

    def add(self, node: Node, flow: Flow) -> None:
        if node.op == "part":
            parts, key = self.parts.setdefault(node.inputs[0], {}), node.attrs["index"]
            parts[key] = parts[key] + flow.zero_outside() if key in parts else flow.zero_outside()
        self.whole[node] = self.whole[node] + flow if node in self.whole else flow

    def reach(self, node: Node) -> bool:
        return bool(node.inputs) and (node in self.whole or node in self.parts)

    def of_operands(self, node: Node, needed: set[Node]) -> tuple[Flow | None, ...]:
        """Return the gradient of each operand of a node."""
        if node.op == "scan":
            return tuple(None if x is None else Flow(x) for x in _walk_back(node, self.parts[node], needed))
        if node.op == "part":
            return (None,)
        with originating(node.origin and f"gradient of {node.origin.removeprefix('gradient of ')}"):
            flow = self.whole[node]
            return flow.pull_back(node) if OPS[node.op].gradient else _through_expansion(node, flow)


def _through_expansion(node: Node, flow: Flow) -> tuple[Flow | None, ...]:
    """Differentiate a composite without a rule; an operand that occurs twice gets its whole gradient once."""
    value = expand_node(node, node.inputs)
    assert value is not None  # else no gradient would have come this far
    flows = pull([(value, flow)], node.inputs, border=set(node.inputs))
    return tuple(flows.pop(operand, None) for operand in node.inputs)


# -- scan --------------------------------------------------------------------------------------------------------------
def _walk_back(scan: Node, came: Mapping[int, Node], needed: Container[Node]) -> tuple[Node | None, ...]:
    """Differentiate a scan by a scan in the opposite direction, given the gradients of its parts.

    It carries the gradients of the carries and the running sums of the constants' gradients. At each step, it reads the
    inputs and the outputs of the forward body, and the gradients of the results of that step. Of a matrix that every
    step multiplies, the gradient is one product after the loop.
    """
    inner, carries, cut = _operands(scan)
    floats = [i for i, x in enumerate(scan.inputs) if x.dtype in FLOATS and (i < carries or x in needed)]
    state = {i: symbol(inner[i].shape, inner[i].dtype) for i in floats if i < carries}
    each = {i: symbol(flow.shape[1:], flow.dtype) for i, flow in came.items() if i >= carries}
    step, saved = _step_back(scan, state, each, floats)
    products = {i: x for i, flow in step.items() if i >= cut and (x := _factors(flow))}
    sums = {i: symbol(x.shape, x.dtype) for i, x in step.items() if i >= cut and i not in products}
    ends = [*(step.get(i, _zeros(inner[i])) for i in state), *(total + step[i] for i, total in sums.items())]
    substitutes = saved | {each[i]: came[i] for i in each}
    sequences = _read_by([*ends, *step.values()], scan, substitutes)
    stacked = [step[i] for i in step if carries <= i < cut]
    have = {*sequences, *stacked}
    stacked += dict.fromkeys(x for pair in products.values() for x in pair if x not in have)
    body, outside = close_graph(Graph((*state.values(), *sums.values(), *sequences), (*ends, *stacked)))
    constants = replace_nodes(outside, dict(zip(inner[cut:], scan.inputs[cut:], strict=True)))
    start = [came.get(i, _zeros(scan.inputs[i])) for i in state] + [_zeros(scan.inputs[i]) for i in sums]
    how = {"length": scan.attrs["length"], "reverse": not scan.attrs["reverse"]}
    last, stacks = loop(body, start, [*sequences.values()], constants, **how)
    arrays = {**sequences, **dict(zip(stacked, stacks, strict=True))}
    flows = dict(zip((*state, *sums), last, strict=True))
    flows |= {i: arrays[flow] for i, flow in step.items() if carries <= i < cut}
    flows |= {i: _join_products(arrays[x], arrays[y]) for i, (x, y) in products.items()}
    return tuple(flows.get(i) for i in range(len(scan.inputs)))


def _step_back(
    scan: Node, state: Mapping[int, Node], each: Mapping[int, Node], wanted: Sequence[int]
) -> tuple[dict[int, Node], Nodes]:
    """Return the gradients of one step's operands, by number, and ``{symbol: stack}`` of the outputs that they read."""
    inner, carries, _ = _operands(scan)
    outputs = scan.attrs["body"].outputs
    seeds = [(outputs[i], Flow(flow)) for i, flow in state.items()]
    seeds += [((*outputs, *inner)[i], Flow(flow)) for i, flow in each.items()]  # incoming carries are results as well
    by_node = pull(seeds, [inner[i] for i in wanted])
    stacks = {x: part for x, part in zip(outputs, results(scan), strict=False) if part.attrs["index"] >= carries}
    own_inputs = set(inner)
    saved = {x: symbol(x.shape, x.dtype) for x in stacks if x not in own_inputs}
    flows = {i: by_node[inner[i]].zero_outside() for i in wanted if inner[i] in by_node}
    read = dict(zip(flows, replace_nodes([*flows.values()], saved), strict=True))
    return read, {own: stacks[x] for x, own in saved.items()}


def _read_by(outputs: Sequence[Node], scan: Node, known: Nodes) -> Nodes:
    """Return the sequences of a backward body that it uses: ``{symbol: array outside}``."""
    inner, carries, cut = _operands(scan)
    incoming = results(scan)[len(scan.attrs["body"].outputs) :]
    sequences = {**dict(zip(inner[:cut], (*incoming, *scan.inputs[carries:cut]), strict=True)), **known}
    used = set(topological_order(outputs))
    return {x: y for x, y in sequences.items() if x in used}


def _factors(flow: Node) -> tuple[Node, ...]:
    """Return x and y if a gradient is the matrix product of x, transposed, and y."""
    turned = flow.op == "matmul" and len(flow.shape) == 2 and flow.inputs[0].op == "permute"
    return (flow.inputs[0].inputs[0], flow.inputs[1]) if turned else ()


def _join_products(x: Node, y: Node) -> Node:
    """Return the sum of the products of all steps, from the stacks of their factors, as one product."""
    rows, columns = (ops.reshape(stack, shape=(math.prod(stack.shape[:2]), stack.shape[2])) for stack in (x, y))
    return ops.swap_axes(rows) @ columns


def _operands(scan: Node) -> tuple[tuple[Node, ...], int, int]:
    """Return the inputs of a scan's body, and where sequences and constants begin among them."""
    body, carries, sequences = (scan.attrs[name] for name in ("body", "carries", "sequences"))
    return body.inputs, carries, carries + sequences
