"""What each layer and each optimiser takes of a training step: operations, and bytes, from the graph of the step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import prod

from sigma_kernel.contracts import Step, WorkEntry
from sigma_kernel.graph import Graph, Node, Spec
from sigma_kernel.graph.node import BYTES
from sigma_kernel.plugins.components import display_name
from sigma_step.model import LAYERS, Model
from sigma_step.work import count_operations

BACKWARD = "gradient of "  # how origins of gradients begin
SAME_BYTES = ("reshape", "permute", "stretch", "stop", "barrier")  # ops whose results need no memory of their own
GIVEN = ("input", "constant")  # of the state or the data, not of a layer


def describe_work(model: Model, step: Step) -> list[WorkEntry]:
    """Return what the layers of a model take of a training step, and then its optimisers."""
    owners, held, slots = {*model.heads}, _count_state(model.layer_specs()), _count_slots(model)
    operations, kept = count_by_owner(step.graph, owners), kept_bytes(step.graph, owners)
    layers = [
        WorkEntry(name, operations[name], {"parameters": held[name], "slots": slots[name], "kept": kept[name]})
        for name in (placed.name for placed in model.network.layers)
    ]
    return [*layers, *(_optimiser(model, head, operations[head]) for head in model.optimisers)]


def owner_of(origin: str, heads: Iterable[str]) -> str:
    """Return the layer of the network, or the head of the optimiser, that a node of this origin belongs to."""
    of = origin.removeprefix(BACKWARD)
    return of if of in heads else of.partition(".")[0]


def count_by_owner(graph: Graph, heads: Iterable[str]) -> Counter[str]:
    """Return the floating-point operations of a graph by the layer or optimiser that they belong to."""
    counts = Counter[str]()
    for node in graph:
        counts[owner_of(node.origin, heads)] += count_operations(node)
    return counts


def kept_bytes(graph: Graph, heads: Iterable[str]) -> Counter[str]:
    """Return the bytes of values that layers compute and gradients read, by layer; each value is counted once."""
    kept = {_base(x): None for node in graph if node.origin.startswith(BACKWARD) for x in node.inputs}
    counts = Counter[str]()
    for node in kept:
        if node.op not in GIVEN and not node.origin.startswith(BACKWARD):
            counts[owner_of(node.origin, heads)] += node.size * BYTES[node.dtype]
    return counts


def _base(node: Node) -> Node:
    """Return the node whose memory a node shows."""
    while node.op in SAME_BYTES:
        node = node.inputs[0]
    return node


def _count_state(specs: Mapping[str, Spec]) -> Counter[str]:
    return _add_up((name.removeprefix(LAYERS), spec) for name, spec in specs.items())


def _count_slots(model: Model) -> Counter[str]:
    return _add_up((place[0], spec) for place, (spec, _) in model.slots().items())


def _add_up(specs: Iterable[tuple[str, Spec]]) -> Counter[str]:
    """Return the bytes of arrays by the layer that their addresses begin with."""
    counts = Counter[str]()
    for address, spec in specs:
        counts[address.partition(".")[0]] += prod(spec.shape) * BYTES[spec.dtype]
    return counts


def _optimiser(model: Model, head: str, operations: int) -> WorkEntry:
    optimiser = model.optimisers[head]
    costs = tuple(optimiser.minimises or (cost.name for cost in model.network.costs))
    return WorkEntry(head, operations, {}, display_name(optimiser.type), (*_updated_layers(model, head),), costs)


def _updated_layers(model: Model, head: str) -> Iterator[str]:
    """Yield the layers with parameters that an optimiser updates, in the order of the network."""
    updates = {address.partition(".")[0] for address in model.trainable(head)}
    yield from (placed.name for placed in model.network.layers if placed.name in updates)
