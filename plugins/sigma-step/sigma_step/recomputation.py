"""Recompute values of the forward pass during the backward pass, in place of keeping them: gradient checkpointing.

The gradient of a loss reads values from inside the layers.  Those of a region are replaced by copies, computed from the
inputs of the region once the gradient of its outputs is there (T. Chen et al., Training Deep Nets with Sublinear Memory
Cost, arXiv:1604.06174).  The op ``barrier`` between the inputs and the copies makes these differ from the values that
they repeat, so that no backend merges the two, and makes them wait for that gradient, so that none computes them early.
All ops and operands stay the same: a backend that computes op by op returns the same bits.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence, Set

from attrs import field, frozen

from sigma_kernel.graph import ops
from sigma_kernel.graph.differentiation import flows_of, gradient
from sigma_kernel.graph.node import FLOATS, Graph, Node, topological_order
from sigma_kernel.graph.regions import RecomputedRegion
from sigma_kernel.graph.rewriting import rewrite, with_inputs


def regions_before(loss: Node, regions: Sequence[RecomputedRegion]) -> Sequence[RecomputedRegion]:
    """Return the regions on whose outputs a loss depends."""
    nodes = set(topological_order([loss])) if regions else set[Node]()
    return [region for region in regions if not nodes.isdisjoint(region.outputs)]


def rewrite_with_regions(
    loss: Node, regions: Sequence[RecomputedRegion], keep: Container[str]
) -> tuple[Node, Sequence[RecomputedRegion]]:
    """Return a loss and regions, simplified as :func:`sigma_kernel.graph.rewrite` does."""
    ends = [x for region in regions for x in region.ends]
    new, *rest = rewrite(Graph((), (loss, *ends)), keep=keep).outputs
    after = iter(rest)
    return new, [region.with_ends([next(after) for _ in region.ends]) for region in regions]


def gradient_recomputing(loss: Node, targets: Sequence[Node], regions: Sequence[RecomputedRegion]) -> tuple[Node, ...]:
    """Return the gradient of a scalar with respect to each target, with the values inside of regions recomputed.

    Raises SigmaGraphError as :func:`sigma_kernel.graph.gradient` does.
    """
    if not regions:
        return gradient(loss, targets)
    forward = set(topological_order([loss]))
    ends = dict.fromkeys(x for region in regions for x in region.outputs if x in forward and x.dtype in FLOATS)
    gradients, flows = flows_of(loss, targets, [*ends])
    gates = {x: flow.value for x, flow in flows.items() if flow.value not in forward}
    order = [node for node in topological_order((*gradients, *gates.values())) if node not in forward]
    awaited = {*gates.values()}
    turns = {node: i for i, node in enumerate(node for node in order if node in awaited)}
    home: dict[Node, _Copies] = {}
    for region in regions:
        output = next((x for x in region.outputs if x in gates), None)
        if output is not None:
            inside = region.find_inside() - {output}
            home |= dict.fromkeys(inside, _Copies(region, gates[output], turns[gates[output]], inside))
    new = _read_copies(order, home, turns)
    return tuple(new.get(x, x) for x in gradients)


@frozen(eq=False)
class _Copies:
    """The copies of the nodes inside a region, which wait for its gate."""

    region: RecomputedRegion
    gate: Node
    turn: int  # of the gate
    inside: Set[Node]
    known: dict[Node, Node] = field(factory=dict, init=False)

    def find(self, node: Node, gate: Node) -> Node:
        """Return the copy of a node; the gate is rebuilt."""
        for x in [*topological_order([node], border={*self.region.inputs, *self.known})]:
            if x not in self.known:
                repeated = x in self.inside
                copy = with_inputs(x, tuple(self.known[y] for y in x.inputs)) if repeated else x
                self.known[x] = ops.barrier(x, gate) if not repeated and self._waits(x) else copy
        return self.known[node]

    def _waits(self, x: Node) -> bool:
        """Return whether a value from outside is of the batch, or a key of random bits; parameters are read as such."""
        draws = x.op == "input" and x.dtype == "uint32" and x.shape != ()
        return x.dtype != "tuple" and (len(x.inputs) > 0 or draws or x in {*self.region.inputs})


def _read_copies(order: Sequence[Node], home: Mapping[Node, _Copies], turns: Mapping[Node, int]) -> dict[Node, Node]:
    """Return the nodes of gradients, rebuilt to read copies of nodes inside of regions.

    ``turns`` numbers the gates: none depends on a later one.  A node reads the copies of a region unless a gate up to
    that of the region depends on it, so that there is no cycle.
    """
    first = _first_gates(order, turns)
    stages, new = dict[Node, int](), dict[Node, Node]()
    for node in order:
        awaited = (home[x].turn + 1 for x in node.inputs if x in home and home[x].turn < first[node])
        stages[node] = max([0, *awaited, *(stages[x] for x in node.inputs if x in stages)])
    for node in sorted(order, key=stages.__getitem__):  # gates come before the copies that wait for them
        copied = {x: home[x] for x in node.inputs if x in home and home[x].turn < first[node]}
        inputs = (copied[x].find(x, new[copied[x].gate]) if x in copied else new.get(x, x) for x in node.inputs)
        new[node] = with_inputs(node, tuple(inputs))
    return new


def _first_gates(order: Sequence[Node], turns: Mapping[Node, int]) -> dict[Node, int]:
    """Return the number of the first gate that depends on each node, or is the node."""
    first = {node: turns.get(node, len(turns)) for node in order}
    for node in reversed(order):
        for x in node.inputs:
            if x in first:
                first[x] = min(first[x], first[node])
    return first
