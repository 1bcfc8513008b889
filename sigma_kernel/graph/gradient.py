"""Reverse-mode differentiation: nodes in, nodes out.

The rules stand in the table of ops.  Here is what they have in common: which nodes lie on a path to a target, how the
flows of several users add up, how broadcasting is undone, and how a scan, which has several results, is walked back.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from attrs import field, frozen

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import ops
from sigma_kernel.graph.functions import full, loop, results, zeros
from sigma_kernel.graph.node import FLOATS, OPS, Graph, Node, Shape, ordered, symbol

Flows = dict[Node, Node]


def gradient(loss: Node, targets: Sequence[Node]) -> tuple[Node, ...]:
    """Return the gradient of a scalar with respect to each target, zeros where it does not depend on it.

    Raises SigmaGraphError if the loss is not one float, or a target not a float.
    """
    if loss.shape != (1,) * len(loss.shape) or loss.dtype not in FLOATS:
        raise SigmaGraphError(f"gradient: only one float has a gradient, and this is {loss.spec}. Sum it up first.")
    for target in targets:
        if target.dtype not in FLOATS:
            raise SigmaGraphError(f"gradient: {target!r} is no float, so that nothing has a gradient towards it.")
    flows = pull([(loss, full(1.0, loss.shape, loss.dtype))], targets)
    return tuple(flows[target] if target in flows else zeros(target.shape, target.dtype) for target in targets)


def pull(seeds: Sequence[tuple[Node, Node]], targets: Sequence[Node], border: Container[Node] = ()) -> Flows:
    """Carry gradients of some nodes (a node may come twice) back to the targets that they depend on.

    Nodes beyond the border are left alone.
    """
    order = list(ordered([node for node, _ in seeds], border))
    needed = _needed(order, targets, border)
    flows = _Flows()
    for node, flow in seeds:
        flows.add(node, flow)
    for node in reversed(order):
        if node in needed and node not in border and flows.reach(node):
            for operand, found in zip(node.inputs, flows.of_operands(node, needed), strict=True):
                if found is not None and operand in needed:
                    flows.add(operand, unbroadcast(found, operand.shape))
    return {target: flows.whole[target] for target in targets if target in flows.whole}


def _needed(order: Sequence[Node], targets: Sequence[Node], border: Container[Node]) -> set[Node]:
    """Return the nodes through which a gradient reaches a target."""
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
    """What has come back to each node so far; to a scan, what has come back to each of its parts."""

    whole: Flows = field(factory=dict)
    parts: dict[Node, dict[int, Node]] = field(factory=dict)

    def add(self, node: Node, flow: Node) -> None:
        if node.op == "part":
            found, key = self.parts.setdefault(node.inputs[0], {}), node.attrs["index"]
            found[key] = found[key] + flow if key in found else flow
        self.whole[node] = self.whole[node] + flow if node in self.whole else flow

    def reach(self, node: Node) -> bool:
        return bool(node.inputs) and (node in self.whole or node in self.parts)

    def of_operands(self, node: Node, needed: set[Node]) -> tuple[Node | None, ...]:
        """Return what flows on from a node to each of its operands."""
        if node.op == "scan":
            return _walk_back(node, self.parts[node], needed)
        if node.op == "part":
            return (None,)
        rule = OPS[node.op].gradient
        if rule is None:
            return _through_expansion(node, self.whole[node])
        flows = rule(self.whole[node], node, *node.inputs, **node.attrs)
        return flows if isinstance(flows, tuple) else (flows,)


def _through_expansion(node: Node, flow: Node) -> tuple[Node | None, ...]:
    """Differentiate a composite without a rule; an operand that comes twice gets its whole flow once."""
    expansion = OPS[node.op].expansion
    value = expansion(*node.inputs, **node.attrs) if expansion else node
    flows = pull([(value, flow)], node.inputs, border=set(node.inputs))
    return tuple(flows.pop(operand, None) for operand in node.inputs)


def unbroadcast(flow: Node, shape: Shape) -> Node:
    """Sum a gradient down to the shape its operand had before broadcasting."""
    lead = len(flow.shape) - len(shape)
    if lead >= 0:
        axis = tuple(i for i, side in enumerate(flow.shape) if i < lead or (shape[i - lead] == 1 and side != 1))
        flow = ops.sum(flow, axis=axis) if axis else flow
        flow = ops.reshape(flow, shape=flow.shape[lead:]) if lead else flow
    return flow if flow.shape == shape else ops.stretch(flow, shape=shape)


# -- scan --------------------------------------------------------------------------------------------------------------
def _walk_back(scan: Node, came: Mapping[int, Node], needed: Container[Node]) -> tuple[Node | None, ...]:
    """Differentiate a scan by a scan in the other direction, given what has come back to its parts.

    It carries the gradients of the carries and the growing sums of the constants' gradients, and reads what the forward
    body read at each step together with what has come back to the results of that step.
    """
    carries, cut = _cuts(scan)
    floats = [i for i, x in enumerate(scan.inputs) if x.dtype in FLOATS and (i < carries or x in needed)]
    read = [i for i in floats if carries <= i < cut]
    held = [i for i in floats if i not in read]
    state = {i: symbol(_inner(scan)[i].shape, scan.inputs[i].dtype) for i in held}
    each = {i: symbol(flow.shape[1:], flow.dtype) for i, flow in came.items() if i >= carries}
    outputs = _step_back(scan, state, each, read)
    sequences, constants = _read_by(outputs, scan, {each[i]: came[i] for i in each})
    body = Graph((*state.values(), *sequences, *constants), outputs)
    start = [came[i] if i in came and i < carries else zeros(scan.inputs[i].shape, scan.inputs[i].dtype) for i in held]
    how = {"length": scan.attrs["length"], "reverse": not scan.attrs["reverse"]}
    ends, stacks = loop(body, start, [*sequences.values()], [*constants.values()], **how)
    flows = dict(zip((*held, *read), (*ends, *stacks), strict=True))
    return tuple(flows.get(i) for i in range(len(scan.inputs)))


def _step_back(
    scan: Node, state: Mapping[int, Node], each: Mapping[int, Node], read: Sequence[int]
) -> tuple[Node, ...]:
    """Return the gradients of one step's operands; what a step adds to is a gradient that came back to it already."""
    inner, outputs = _inner(scan), scan.attrs["body"].outputs
    carries, _ = _cuts(scan)
    seeds = [(outputs[i] if i < carries else inner[i], flow) for i, flow in state.items()]
    seeds += [((*outputs, *inner)[i], flow) for i, flow in each.items()]  # incoming carries are results too
    targets = [inner[i] for i in (*state, *read)]
    flows = pull(seeds, targets)
    return tuple(flows[target] if target in flows else zeros(target.shape, target.dtype) for target in targets)


def _read_by(outputs: Sequence[Node], scan: Node, came: Flows) -> tuple[Flows, Flows]:
    """Return what a backward body reads, ``{its symbol: the array outside}``: sequences, then constants."""
    inner, (carries, cut) = _inner(scan), _cuts(scan)
    incoming = results(scan)[len(scan.attrs["body"].outputs) :]
    sequences = {**dict(zip(inner[:cut], (*incoming, *scan.inputs[carries:cut]), strict=True)), **came}
    constants = dict(zip(inner[cut:], scan.inputs[cut:], strict=True))
    used = set(ordered(outputs))
    first, second = ({x: y for x, y in known.items() if x in used} for known in (sequences, constants))
    return first, second


def _cuts(scan: Node) -> tuple[int, int]:
    """Return where the sequences and where the constants begin among a scan's operands."""
    carries: int = scan.attrs["carries"]
    return carries, carries + int(scan.attrs["sequences"])


def _inner(scan: Node) -> tuple[Node, ...]:
    body: Graph = scan.attrs["body"]
    return body.inputs
