"""Memory planning: schedule of a graph, buffers of its values, in-place updates, peak bytes.

A value is *owned* by the node that computes its bytes; a view of it (a reshape, a slice ...) has the same owner.  The
storage of an owner is one of three: that of a donated input, the array of a result, or a part of an arena that is
reused by one value after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import prod

from attrs import frozen

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import ALIGNMENT, BYTES, ELEMENTWISE, OPS, Arena, Graph, Node, select_ops, topological_order

LEAVES = frozenset({"input", "constant", "array", "iota"})  # known before the run: not part of the plan
STRIDED = select_ops(view=True)  # views where arrays have strides
FLAT = frozenset({"reshape", "stop", "barrier"})  # views that keep all elements and their order


def elementwise(node: Node) -> bool:
    """Return whether an op reads each element of an operand only where it writes, so that it can run in place."""
    return node.op in OPS and OPS[node.op].shape in ELEMENTWISE


@frozen
class Storage:
    """Bytes of the arena."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        """Return the offset after the last byte."""
        return self.offset + self.size


@frozen(eq=False)
class Plan:
    """The schedule, and the storage of each value.

    ``schedule``: every node but the leaves, operands first (views too, which cost nothing).
    ``owner``: for every node the one whose storage holds its value, perhaps itself, perhaps a leaf.
    ``arena``, ``in_place``, ``results``: for every owner that is computed, its bytes in the arena, or the input whose
    storage it takes, or the number of the output whose new array it fills.
    ``copies``: outputs to be copied when all is computed, into the storage of their donated input or a new array.
    ``scratch``: bytes in the arena that a node needs while it is computed.
    ``peak_bytes``: inputs, arena and new arrays together.
    """

    schedule: tuple[Node, ...]
    owner: Mapping[Node, Node]
    arena: Mapping[Node, Storage]
    in_place: Mapping[Node, Node]
    results: Mapping[Node, int]
    copies: tuple[int, ...]
    scratch: Mapping[Node, Storage]
    arena_bytes: int
    peak_bytes: int


def plan(
    graph: Graph,
    in_place: Mapping[int, int] | None = None,
    views: frozenset[str] = STRIDED,
    scratch: Callable[[Node], int] = lambda node: 0,
) -> Plan:
    """Return the plan of a graph.

    ``in_place`` maps an output to the input whose storage it may take: it does if the value is computed after the last
    reader of the input, else it is copied there at the end. ``views`` are the ops that a backend need not compute;
    ``scratch`` returns the bytes that a node needs besides its operands and its result.  A donation that does not fit
    is a SigmaGraphError.
    """
    donated = _donations(graph, in_place or {})
    nodes = [node for node in _gradients_first(graph) if node.op not in LEAVES]
    owner = _owners(graph, views)
    wanted = _candidates(graph, donated, owner)
    schedule, updated = _schedule(nodes, wanted, owner)
    results, copies = _endings(graph, donated, owner, updated)
    arena, extra = _arena(graph, schedule, owner, {*updated, *results}, scratch)
    size = max((storage.end for storage in (*arena.values(), *extra.values())), default=0)
    fresh = [node for out, node in enumerate(graph.outputs) if out not in donated]
    peak = size + sum(_bytes_of(node) for node in (*graph.inputs, *fresh))
    return Plan(schedule, owner, arena, updated, results, copies, extra, size, peak)


def _donations(graph: Graph, in_place: Mapping[int, int]) -> dict[int, Node]:
    donated = {out: graph.inputs[position] for out, position in in_place.items()}
    if len(set(donated.values())) < len(donated):
        raise SigmaGraphError(f"plan: two outputs cannot take the storage of one input: {dict(in_place)}.")
    for out, given in donated.items():
        if graph.outputs[out].spec != given.spec:
            raise SigmaGraphError(
                f"plan: output {out}, {graph.outputs[out].spec}, does not fit the storage of input "
                f"{in_place[out]}, {given.spec}. Donate an input of the same shape and dtype."
            )
    return donated


def _gradients_first(graph: Graph) -> Iterable[Node]:
    """Return the nodes in an order in which the last outputs come first.

    A step returns parameters in the order of the layers: the gradient of a layer is computed, and what it reads is no
    longer kept, before those of the layers before it.
    """
    return topological_order(graph.outputs[::-1])


def _owners(graph: Graph, views: frozenset[str]) -> dict[Node, Node]:
    owner = {node: node for node in graph.inputs}
    regular = set(graph.inputs)  # values whose elements are contiguous
    for node in graph:
        flat = node.op in FLAT and node.inputs[0] in regular
        is_view = node.op in views and (flat or node.op != "reshape")
        owner[node] = owner[node.inputs[0]] if is_view else node
        if flat or not is_view:
            regular.add(node)
    return owner


def _candidates(graph: Graph, donated: Mapping[int, Node], owner: Mapping[Node, Node]) -> dict[Node, Node]:
    """Return the owners that might be computed into the storage of an input."""
    kept = {owner[node] for out, node in enumerate(graph.outputs) if donated.get(out) is not owner[node]}
    targets: dict[Node, Node] = {}
    for out, given in donated.items():
        value = owner[graph.outputs[out]]
        apart = value.op not in LEAVES and value.op != "part" and value not in targets and given not in kept
        if apart and _has_owner_value(graph.outputs[out], value) and _harmless(value, given, owner):
            targets[value] = given
    return targets


def _has_owner_value(node: Node, value: Node) -> bool:
    """Return whether a node has its owner's value, element by element."""
    while node is not value and node.op in FLAT:
        node = node.inputs[0]
    return node is value


def _harmless(value: Node, given: Node, owner: Mapping[Node, Node]) -> bool:
    """Return whether a value can be computed into an input's storage without overwriting unread entries."""
    touched = [x for x in value.inputs if owner[x] is given]
    return not touched or (
        elementwise(value) and all(_has_owner_value(x, given) and x.shape == value.shape for x in touched)
    )


def _schedule(
    nodes: Sequence[Node], wanted: Mapping[Node, Node], owner: Mapping[Node, Node]
) -> tuple[tuple[Node, ...], dict[Node, Node]]:
    """Return an order in which readers of a donated input precede its writer, and the writers for which this holds.

    If readers and writers depend on each other in a cycle, a writer is given up and gets other storage.
    """
    place = {node: i for i, node in enumerate(nodes)}
    waits, blocks = _waits(nodes, wanted, owner)
    ready = [place[node] for node in nodes if not waits[node]]
    updated, left = dict(wanted), iter(nodes)
    order: dict[Node, None] = {}
    while len(order) < len(nodes):
        if not ready:
            stuck = next(node for node in left if node not in order)
            updated.pop(stuck)  # its operands come before it: it waits for readers only
            waits[stuck].clear()
            ready.append(place[stuck])
        node = nodes[heappop(ready)]
        order[node] = None
        for other in blocks[node]:
            if node in waits[other]:
                waits[other].remove(node)
                if not waits[other]:
                    heappush(ready, place[other])
    return tuple(order), updated


def _waits(
    nodes: Sequence[Node], wanted: Mapping[Node, Node], owner: Mapping[Node, Node]
) -> tuple[dict[Node, set[Node]], dict[Node, list[Node]]]:
    """Return what each node waits for, and who waits for it."""
    writer = {given: value for value, given in wanted.items()}
    waits: dict[Node, set[Node]] = {node: {x for x in node.inputs if x.op not in LEAVES} for node in nodes}
    for node in nodes:
        for value in {writer[owner[x]] for x in node.inputs if owner[x] in writer} - {node}:
            waits[value].add(node)
    blocks: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node, before in waits.items():
        for x in before:
            blocks[x].append(node)
    return waits, blocks


def _endings(
    graph: Graph, donated: Mapping[int, Node], owner: Mapping[Node, Node], updated: Mapping[Node, Node]
) -> tuple[dict[Node, int], tuple[int, ...]]:
    """Return the owners that are computed directly into an output's new array, and the outputs to be copied."""
    results: dict[Node, int] = {}
    copies = []
    for out, node in enumerate(graph.outputs):
        value = owner[node]
        if out in donated:
            there = donated[out] is value or donated[out] is updated.get(value)
        else:
            there = value.op not in LEAVES and value not in updated
        there = there and _has_owner_value(node, value)
        if not there or (out not in donated and results.setdefault(value, out) != out):
            copies.append(out)
    return results, tuple(copies)


def _arena(
    graph: Graph, schedule: Sequence[Node], owner: Mapping[Node, Node], elsewhere: Iterable[Node],
    scratch: Callable[[Node], int],
) -> tuple[dict[Node, Storage], dict[Node, Storage]]:  # fmt: skip
    """Return the offsets of all values and of all nodes' scratch, first fit in the order of the schedule."""
    apart, room = frozenset(elsewhere), Arena()
    last = {owner[x]: step for step, node in enumerate(schedule) for x in node.inputs}
    last |= dict.fromkeys((owner[node] for node in graph.outputs), len(schedule))
    values: dict[Node, list[Node]] = {}  # by which step: a scan makes its parts
    for node in schedule:
        values.setdefault(node.inputs[0] if node.op == "part" else node, []).append(node)
    arena: dict[Node, Storage] = {}
    extra: dict[Node, Storage] = {}
    for step, node in enumerate(schedule):
        for value in values.get(node, ()):
            if owner[value] is value and value.op != "scan" and value not in apart:
                size = _bytes_of(value)
                arena[value] = Storage(room.place(size, step, last.get(value, step)), size)
        if size := _round(scratch(node)):
            extra[node] = Storage(room.place(size, step, step), size)
    return arena, extra


def _bytes_of(node: Node) -> int:
    return _round(prod(node.shape) * BYTES[node.dtype])


def _round(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
