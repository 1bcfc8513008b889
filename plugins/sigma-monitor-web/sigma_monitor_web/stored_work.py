"""What layers and optimisers of a stored network hold, from the arrays of its checkpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from sigma_kernel.contracts import WorkEntry
from sigma_kernel.errors import component_name
from sigma_run import Trained

LAYERS = "network.layers."
SLOTS = ".slots."


def describe_stored_work(trained: Trained) -> list[WorkEntry]:
    """Return the bytes that layers hold, and the optimisers; no operations, as no step is traced."""
    arrays, slots = trained.checkpoint.arrays, Counter[str]()
    held = Counter[str]()
    for name, values in arrays.items():
        head, slot, address = name.partition(SLOTS)
        if slot:
            slots[layer_of(address)] += values.nbytes
        elif head.startswith(LAYERS):
            held[layer_of(head.removeprefix(LAYERS))] += values.nbytes
    names = [placed.name for placed in trained.network.layers]
    layers = [WorkEntry(name, None, {"parameters": held[name], "slots": slots[name]}) for name in names]
    return [*layers, *_optimisers(trained, names)]


def layer_of(address: str) -> str:
    """Return the layer that an address begins with."""
    return address.partition(".")[0]


def _optimisers(trained: Trained, layers: list[str]) -> Iterator[WorkEntry]:
    """Yield the optimisers that the configuration names, each with the layers of which it has slots."""
    arrays, costs = trained.checkpoint.arrays, [placed.name for placed in trained.network.costs]
    by_head = trained.trainer.optimisers_by_head
    for head, chosen in by_head.items():
        addresses = (name.removeprefix(head + SLOTS) for name in arrays if name.startswith(head + SLOTS))
        updates = {layer_of(address) for address in addresses}
        if len(by_head) == 1:  # which may have no slots
            updates = {layer_of(name.removeprefix(LAYERS)) for name in arrays if name.startswith(LAYERS)}
        mine = tuple(name for name in layers if name in updates)
        yield WorkEntry(head, None, {}, name_of(chosen), mine, (*(_setting(chosen, "minimises") or costs),))


def name_of(chosen: Any) -> str:
    """Return the kind of an optimiser that a configuration has chosen: its name, or that of its class."""
    kind = _setting(chosen, "type") or chosen
    return (kind if isinstance(kind, str) else component_name(kind)).rpartition(":")[2]


def _setting(chosen: Any, name: str) -> Any:
    return chosen.get(name) if isinstance(chosen, Mapping) else getattr(chosen, name, None)
