"""Describe what the steps of a network compute: its layers, optimisers and metrics, and the names in its state.

Every value has a name. State: ``network.layers.<address>``, ``optimiser.slots.<address>.<slot>``,
``optimiser.slots.<slot>`` (shared by all its parameters), ``optimiser.step``, ``random.key``, ``random.iteration``.
Live values: ``network.layers.<address>``, ``optimiser.<address>.<setting>`` and its logarithm, with ``:log``,
``shard.row``, ``shard.part``, ``shard.weights.<cost>``. One of several optimisers has ``optimisers.<name>`` in place of
``optimiser``, its *head*.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_kernel.contracts import Metric, Optimisation, Parameter, Rewriting, Slot
from sigma_kernel.errors import (
    SigmaConfigError,
    SigmaNetworkError,
    introduce_errors,
    suggest_name,
)
from sigma_kernel.graph.node import Node, Spec
from sigma_kernel.network.network import LAYERS as LAYERS, Network
from sigma_kernel.network.tracing import Resolve, Shapes
from sigma_kernel.registry.addresses import matches
from sigma_step.units import Units
from sigma_step.vectors import VectorLayout

ONLY = "optimiser"  # head of the only optimiser
OPTIMISERS = (f"{ONLY}.", "optimisers.")  # what the names in the state of optimisers begin with
GRADIENTS = "gradients."
UPDATES = "updates."
ACTIVATIONS = "activations."
COSTS = "cost."
METRICS = "metrics."
WEIGHTS = "shard.weights."
PART = "shard.part"  # of the rows of a batch, those of a shard
VECTORS = "shard.gradients."  # by dtype
BATCH = "shard.batch."  # of what a whole batch weighs for an optimiser
UNCUT = "shards compute the gradients of all optimisers from the same state. Use shards = 1, or leave out the order."
SKIPPED = "skipped"  # whether an update was skipped; with shards, the share of the batch that overflowed
SCALE, GOOD, SKIPS = "loss_scale", "good_steps", "skipped_steps"  # in the state, below the head of an optimiser
RISE = 2000  # good steps after which the loss is scaled by twice as much, as in PyTorch
SCALES = (2.0**-24, 2.0**120)  # the limits of the factor
EPOCH = "training.epoch."  # of the mean over an epoch
JUDGED = "judged."  # extra sections: what costs judge
WANTED = "wanted.targets"  # the targets of the first output, in the units of the data
DIRECTIONS = "excitation.directions"  # name of an extra section; no data set has it


@frozen(repr=False)
class Model:
    """Everything that defines what a step computes, for any batch size.

    ``sections`` are the specs of one sample; ``metrics`` are recorded at each training step; ``optimisers`` are held by
    the heads of their addresses, in the order of their updates if they are ``ordered``; ``owners`` maps a parameter to
    the head of the optimiser that updates it. ``frozen`` holds the addresses of parameters that are not updated, and of
    statistics that layers keep as they are; parameters ``paused``, by a command, keep slots and settings.
    ``rewritings`` change the graph of the network, one after the other.
    """

    network: Network
    shapes: Shapes
    sections: Mapping[str, Spec]
    precision: str
    resolve: Resolve
    low: str = ""  # the dtype of 16 bits that products read; "": all is computed in ``precision``
    optimisers: Mapping[str, Optimisation] = field(factory=dict)
    ordered: bool = False
    owners: Mapping[str, str] = field(factory=dict)
    metrics: Mapping[str, Metric] = field(factory=dict)
    frozen: frozenset[str] = frozenset()
    paused: frozenset[str] = frozenset()
    units: Units = Units()
    rewritings: Mapping[str, Rewriting] = field(factory=dict)

    @cached_property
    def _kinds(self) -> Mapping[str, frozenset[str]]:
        """Return the kinds of layers, by name."""
        return {placed.name: frozenset([placed.kind]) for placed in self.network.layers}

    # -- what there is -------------------------------------------------------------------------------------------------
    def parameters(self) -> dict[str, Spec]:
        """Return the parameters' specs by address."""
        return self._specs(self.shapes.parameters)

    @property
    def heads(self) -> Sequence[str]:
        """Return the heads of the optimisers; without any, that of the one to come."""
        return tuple(self.optimisers) or (ONLY,)

    @property
    def scales_losses(self) -> bool:
        """Return whether losses are scaled, so that small gradients do not vanish: float16 has few exponents."""
        return self.low == "float16"

    def rounds(self, origin: str) -> bool:
        """Return whether products of this origin read 16 bits: not those of costs, optimisers and metrics."""
        exact = {"" if self.network.layers else ONLY, *self.heads, *(cost.name for cost in self.network.costs)}
        return origin.removeprefix("gradient of ") not in exact

    def trainable(self, head: str | None = None) -> dict[str, Spec]:
        """Return the parameters that are updated, all of them or those of one optimiser."""
        return {address: spec for address, spec in self.tuned_parameters(head).items() if address not in self.frozen}

    @cached_property
    def vectors(self) -> VectorLayout:
        """Return where the gradients of the parameters that are updated lie in the vectors of a shard."""
        return VectorLayout(self.trainable())

    def tuned_parameters(self, head: str | None = None) -> dict[str, Spec]:
        """Return the parameters that have slots and settings: those that are updated, or paused."""
        left = self.frozen - self.paused
        mine = {a: s for a, s in self.parameters().items() if head is None or self.owners.get(a, head) == head}
        return {address: spec for address, spec in mine.items() if address not in left}

    def tags(self, address: str) -> frozenset[str]:
        """Return the tags at an address: for a layer, its kind."""
        return self._kinds.get(address, frozenset())

    def layer_state(self) -> dict[str, Spec]:
        """Return the specs of layer state, which layers update themselves, by address."""
        return self._specs(self.shapes.state)

    def fresh_state(self) -> dict[str, np.ndarray]:
        """Return the layer state that every epoch begins with, by its name in the state."""
        fresh = {address: entry for address, entry in self.shapes.state.items() if entry.each_epoch}
        specs = self._specs(fresh)
        return {LAYERS + a: np.full(entry.shape, entry.initialiser, specs[a].dtype) for a, entry in fresh.items()}

    def layer_specs(self) -> dict[str, Spec]:
        """Return the specs of what layers hold, parameters and their own state, by their names in the state."""
        return {LAYERS + address: spec for address, spec in {**self.parameters(), **self.layer_state()}.items()}

    def _specs(self, declared: Mapping[str, Parameter]) -> dict[str, Spec]:
        return {address: Spec(p.shape, p.dtype or self.precision) for address, p in declared.items()}

    def ends(self, layer: str = "", section: str = "") -> tuple[Spec, Spec]:
        """Return the specs of one sample of an input section, and of one row of a layer's output, by default the first.

        Raises SigmaNetworkError if there is no such section, or no such layer before the costs.
        """
        sections = self.network.sections(costs=False)
        layers = [placed.name for placed in self.network.layers if placed.layer.role != "cost"]
        for what, name, names in (("input section", section, sections), ("layer", layer, layers)):
            if name and name not in names:
                raise SigmaNetworkError(
                    f"network: there is no {what} {name!r}.{suggest_name(name, names, 'There are:')}"
                )
        return self.sections[section or sections[0]], self.shapes.outputs[layer or self.network.outputs[0].name]

    @property
    def costs(self) -> list[str]:
        """Return the names of the costs, if there are several to tell apart."""
        names = [placed.name for placed in self.network.costs]
        return names if len(names) > 1 else []

    def measured_names(self) -> list[str]:
        """Return the names of what every training step measures."""
        skipped = [SKIPPED] if self.scales_losses else []
        return ["loss", *(COSTS + name for name in self.costs), *skipped, *self.metrics]

    def per_output(self, metrics: Mapping[str, Metric]) -> dict[str, Metric]:
        """Return metrics by name, one for each output that the beginning of a name matches, as in ``*.accuracy``.

        Raises SigmaConfigError for a name that matches none, or that names none of several.
        """
        result = dict[str, Metric]()
        for name, metric in metrics.items():
            outputs = [x.name for x in getattr(self.network, "outputs", ())]  # an object that declares itself has none
            output, dot, own = name.rpartition(".")
            if not dot and len(outputs) > 1:
                raise SigmaConfigError(
                    f"metric {name!r}: the network has several outputs: {', '.join(outputs)}. Name one, "
                    f"'{outputs[0]}.{name}' (a hook: output = '{outputs[0]}'), or all, '*.{name}'."
                )
            names = [f"{candidate}.{own}" for candidate in outputs if matches(output, candidate)] if dot else [name]
            if not names:
                hint = suggest_name(output, outputs, "There are:")
                raise SigmaConfigError(f"metric {name!r}: there is no output {output!r}.{hint}")
            result |= dict.fromkeys(names, metric)
        return result

    def slots(self) -> dict[tuple[str, str], tuple[Spec, Slot]]:
        """Return the slots of all optimisers by address and name; the address of shared ones is the head and a dot."""
        slots = dict[tuple[str, str], tuple[Spec, Slot]]()
        for head, owner in self.optimisers.items():
            with introduce_errors(head, owner.type):
                costs, scalar = len(owner.minimises or self.network.costs), Spec((), self.precision)
                for address, spec in self.tuned_parameters(head).items():
                    declared = owner.type.declare_slots(address, spec, self.tags)
                    slots |= {(address, name): (slot.spec(spec, costs), slot) for name, slot in declared.items()}
                shared = owner.type.declare_shared_slots()
                slots |= {(f"{head}.", name): (slot.spec(scalar, costs), slot) for name, slot in shared.items()}
        return slots

    def slot(self, address: str, name: str) -> str:
        """Return the name in the state of a slot."""
        shared = address.endswith(".")
        return f"{address}slots.{name}" if shared else f"{self.owners[address]}.slots.{address}.{name}"

    def slot_names(self) -> list[str]:
        """Return the names in the state of slots, of numbers of updates, and of what :meth:`scales` returns."""
        return [
            *(self.slot(*place) for place in self.slots()),
            *(f"{head}.step" for head in self.heads),
            *self.scales(),
        ]

    def first_slots(self, read: Callable[[str], Any], held: Collection[str] = ()) -> dict[str, np.ndarray]:
        """Return the initial values of the slots, and of the numbers of updates, other than those ``held``.

        ``read`` returns the values of a parameter on the host, by its name in the state.
        """
        slots = {self.slot(*place): (place[0], *entry) for place, entry in self.slots().items()}
        arrays = {
            name: slot.initial(spec, read(LAYERS + address) if slot.copies_parameter else None)
            for name, (address, spec, slot) in slots.items()
            if name not in held
        }
        arrays |= {f"{head}.step": np.zeros((), np.int32) for head in self.heads}
        return {name: value for name, value in {**arrays, **self.scales()}.items() if name not in held}

    def copying_slots(self, address: str, value: np.ndarray) -> dict[str, np.ndarray]:
        """Return the values of the slots that copy a parameter, once it has been set."""
        own = {name: entry for (owner, name), entry in self.slots().items() if owner == address}
        return {self.slot(address, n): t.initial(s, value) for n, (s, t) in own.items() if t.copies_parameter}

    def scales(self) -> dict[str, np.ndarray]:
        """Return the initial factor of each optimiser's loss, and the numbers of steps since it was right, and skipped.

        There are none if losses are not scaled.
        """
        first = {SCALE: np.float32(2.0**16), GOOD: np.int32(0), SKIPS: np.int32(0)}
        return {f"{head}.{name}": np.array(x) for head in self.heads for name, x in first.items() if self.scales_losses}

    def observable(self, patterns: Sequence[str]) -> tuple[str, ...]:
        """Return the addresses of gradients, updates and activations that the patterns match."""
        names = [head + address for head in (GRADIENTS, UPDATES) for address in self.trainable()]
        names += [ACTIVATIONS + placed.name for placed in self.network.layers]
        return tuple(name for name in names if any(matches(pattern, name) for pattern in patterns))

    def restore_units(self, output: str, prediction: Node) -> Node | None:
        """Return the prediction of an output in the units of its targets; None if it has none."""
        section = self.network.estimated_section(output) if self.units.preprocessors else ""
        return self.units.restore(section, prediction) if section else None

    @property
    def judged_layers(self) -> list[str]:
        """Return the names of the layers that costs judge."""
        return list(dict.fromkeys(source for cost in self.network.costs for source in cost.sources))
