"""Build the graphs of the training step, which a backend compiles.

One iteration is one graph: forward, backward, update, records.  With shards it is two: a *gradient* step for each
shard, and an *update* step on the merged gradients.  There is also an *evaluation* step, and an *observing* step, which
computes gradients, updates and activations for hooks without changing the state.

Every value has a name.  State: ``network.layers.<address>``, ``optimiser.slots.<address>.<slot>``,
``optimiser.step``, ``random.key``, ``random.iteration``.  Live values: ``network.layers.<address>``,
``optimiser.<address>.<setting>``, ``shard.row``, ``shard.weights.<cost>``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric, Optimiser, Parameter, Slot, Step, Update
from sigma_kernel.errors import SigmaGraphError, SigmaStateError
from sigma_kernel.graph.differentiation import gradient
from sigma_kernel.graph.node import OPS, Graph, Node, Spec, constant, symbol
from sigma_kernel.graph.random import Key
from sigma_kernel.graph.rewriting import rewrite
from sigma_kernel.network.network import Forward, Network
from sigma_kernel.network.tracing import Resolve, Shapes, Trace, live_settings
from sigma_kernel.registry.addresses import matches

LAYERS = "network.layers."
OPTIMISER = "optimiser."
SLOTS = "optimiser.slots."
GRADIENTS = "gradients."
UPDATES = "updates."
ACTIVATIONS = "activations."
TOTALS = "totals."
WEIGHTS = "shard.weights."
DIRECTIONS = "excitation.directions"  # name of an extra section; no data set has it


@frozen(repr=False)
class Model:
    """Everything that defines what a step computes, for any batch size.

    ``sections`` are the specs of one sample; ``metrics`` are recorded at each training step; ``frozen`` holds the
    addresses of parameters that are not trained.
    """

    network: Network
    shapes: Shapes
    sections: Mapping[str, Spec]
    precision: str
    resolve: Resolve
    optimiser: Optimiser | None = None
    metrics: Mapping[str, Metric] = field(factory=dict)
    frozen: frozenset[str] = frozenset()
    _kinds: Mapping[str, frozenset[str]] = field(init=False)  # kinds of layers, by name

    @_kinds.default
    def _(self) -> dict[str, frozenset[str]]:
        return {placed.name: frozenset([placed.kind]) for placed in self.network.layers}

    # -- what there is -------------------------------------------------------------------------------------------------
    def parameters(self) -> dict[str, Spec]:
        """Return the parameters' specs by address."""
        return self._specs(self.shapes.parameters)

    def trainable(self) -> dict[str, Spec]:
        """Return the parameters that are not frozen."""
        return {address: spec for address, spec in self.parameters().items() if address not in self.frozen}

    def tags(self, address: str) -> frozenset[str]:
        """Return the tags at an address: for a layer, its kind."""
        return self._kinds.get(address, frozenset())

    def layer_state(self) -> dict[str, Spec]:
        """Return the specs of layer state, which layers update themselves, by address."""
        return self._specs(self.shapes.state)

    def held(self) -> dict[str, Spec]:
        """Return the specs of what layers hold, parameters and their own state, by their names in the state."""
        return {LAYERS + address: spec for address, spec in {**self.parameters(), **self.layer_state()}.items()}

    def _specs(self, declared: Mapping[str, Parameter]) -> dict[str, Spec]:
        return {address: Spec(p.shape, p.dtype or self.precision) for address, p in declared.items()}

    def ends(self) -> tuple[Spec, Spec]:
        """Return the specs of one sample of the first input, and of one row of the first output."""
        return self.sections[self.network.sections()[0]], self.shapes.outputs[self.network.outputs[0].name]

    def slots(self) -> dict[tuple[str, str], tuple[Spec, Slot]]:
        """Return the optimiser's slots by address and name."""
        if self.optimiser is None:
            return {}
        return {
            (address, name): (Spec(spec.shape if slot.shape is None else slot.shape, spec.dtype), slot)
            for address, spec in self.trainable().items()
            for name, slot in self.optimiser.slots(spec).items()
        }

    def first_slots(self) -> dict[str, np.ndarray]:
        """Return the initial values of the optimiser's slots."""
        found = {f"{SLOTS}{a}.{name}": np.full(s.shape, t.fill, s.dtype) for (a, name), (s, t) in self.slots().items()}
        return {**found, "optimiser.step": np.zeros((), np.int32)}

    def observable(self, patterns: Sequence[str]) -> tuple[str, ...]:
        """Return the addresses of gradients, updates and activations that the patterns match."""
        names = [head + address for head in (GRADIENTS, UPDATES) for address in self.trainable()]
        names += [ACTIVATIONS + placed.name for placed in self.network.layers]
        return tuple(name for name in names if any(matches(pattern, name) for pattern in patterns))

    # -- the steps -----------------------------------------------------------------------------------------------------
    def training(self, batch: int) -> Step:
        """Return the step of a whole iteration on a batch of this size."""
        whole = Traced(self, batch)
        return whole.step_to({**whole.updated(), **whole.layer_state()}, whole.measured(self.metrics))

    def gradients(self, batch: int) -> Step:
        """Return the step of one shard: loss, totals, layer state and gradients, all recorded.

        A cost with unequal row weights is divided by a live value: the weight of the whole batch (see :meth:`weights`)
        times the shard's share of the rows, so that its means over shards are weighted like all others.
        """
        shard = Traced(self, batch, cut=True)
        return shard.step_to(
            {}, shard.measured(self.metrics) | shard.layer_state() | _named(GRADIENTS, shard.gradients())
        )

    def weights(self, batch: int) -> Step:
        """Return the step of a whole batch's weight, by cost with unequal row weights; shards divide by it."""
        whole = Traced(self, batch)
        return whole.step_to({}, {WEIGHTS + name: cost.weight for name, cost in whole.forward.totals.items()})

    def update(self) -> Step:
        """Return the update step, after gradients were merged; they are state entries here."""
        merged = Merged(self)
        return merged.step_to(merged.updated(), {})

    def evaluation(self, batch: int, metrics: Iterable[tuple[str, Metric]] = ()) -> Step:
        """Return the evaluation step of a batch: costs, and totals of metrics.

        ``loss`` is the mean over its rows; costs with unequal row weights are not part of it: each is recorded as its
        total and its weight.
        """
        traced = Traced(self, batch, training=False)
        return traced.step_to({}, {**traced.costs_apart(), **traced.totals(dict(metrics))})

    def prediction(self, batch: int) -> Step:
        """Return the step that predicts a batch, by output."""
        traced = Traced(self, batch, training=False, costs=False)
        return traced.step_to({}, traced.forward.predictions)

    def excitation(self, batch: int) -> Step:
        """Return the step of the first output, before costs, and the gradient of its sum along directions."""
        traced = Traced(self, batch, training=False, costs=False)
        output = traced.forward.values[self.network.outputs[0].name]
        along = traced.section(DIRECTIONS, Spec(output.shape[1:], output.dtype))
        inputs = traced.data[self.network.sections()[0]]
        return traced.step_to({}, {"output": output, "slopes": gradient(f.sum(output * along), [inputs])[0]})

    def observing(self, batch: int, wanted: Sequence[str]) -> Step:
        """Return the step that computes gradients, updates and activations of an iteration, by address."""
        traced = Traced(self, batch)
        ring = _named(ACTIVATIONS, traced.forward.values)
        if any(name.startswith(GRADIENTS) for name in wanted):
            ring |= _named(GRADIENTS, traced.gradients())
        if any(name.startswith(UPDATES) for name in wanted):
            new = traced.updated()
            ring |= {UPDATES + a: new[LAYERS + a] - node for a, node in traced.parameters.items()}
        return traced.step_to({}, {name: ring[name] for name in wanted})


def _named(head: str, nodes: Mapping[str, Node]) -> dict[str, Node]:
    return {head + name: node for name, node in nodes.items()}


# -- writing a step ----------------------------------------------------------------------------------------------------
@define
class Draft(ABC):
    """A step under construction: its inputs, created on demand by name; also the objective of an optimiser."""

    model: Model
    state: dict[str, Node] = field(factory=dict, init=False)
    data: dict[str, Node] = field(factory=dict, init=False)
    steer: dict[str, Node] = field(factory=dict, init=False)
    slots: dict[tuple[str, str], tuple[Spec, Slot]] = field(init=False)

    @slots.default
    def _(self) -> dict[tuple[str, str], tuple[Spec, Slot]]:
        return self.model.slots()

    def entry(self, name: str, spec: Spec) -> Node:
        """Return the input for a state entry."""
        return self.state.setdefault(name, symbol(spec.shape, spec.dtype, name))

    def live(self, name: str, dtype: str | None = None) -> Node:
        """Return the input for a live value, a scalar."""
        return self.steer.setdefault(name, symbol((), dtype or self.model.precision, name))

    def step_to(self, writes: Mapping[str, Node], ring: Mapping[str, Node]) -> Step:
        """Return the simplified step from these inputs to the given outputs, without unused inputs.

        Raises SigmaGraphError if an entry of the state would change its shape or dtype.
        """
        for name, node in writes.items():
            old = self.entry(name, node.spec)  # an entry may be written without being read
            if old.spec != node.spec:
                raise SigmaGraphError(
                    f"{name}: is {old.spec} and would become {node.spec}. A step keeps both as they are."
                )
        outputs = (*writes.values(), *ring.values())
        used = set(Graph((), outputs))
        state, data, steer = (
            {name: node for name, node in inputs.items() if node in used or name in writes}
            for inputs in (self.state, self.data, self.steer)
        )
        graph = Graph((*state.values(), *data.values(), *steer.values()), outputs)
        graph = rewrite(graph, keep=OPS)  # composite ops stay, for backends that implement them
        return Step(graph, tuple(state), tuple(data), tuple(steer), tuple(writes), tuple(ring))

    # -- what an optimiser is given ------------------------------------------------------------------------------------
    @property
    def parameters(self) -> dict[str, Node]:
        """Return the trainable parameters."""
        return {address: self.entry(LAYERS + address, spec) for address, spec in self.model.trainable().items()}

    @property
    def step(self) -> Node:
        """Return the number of this update, counted from 1."""
        return f.cast(self.entry("optimiser.step", Spec((), "int32")) + 1, dtype=self.model.precision)

    @abstractmethod
    def loss(self, parameters: Mapping[str, Node] | None = None) -> Node:
        """Return the loss at these or other parameters."""

    @abstractmethod
    def gradients(self, parameters: Mapping[str, Node] | None = None) -> dict[str, Node]:
        """Return the loss's gradients at these or other parameters."""

    def setting(self, address: str, name: str) -> Node:
        """Return the live setting of one parameter."""
        return self.live(f"optimiser.{address}.{name}")

    def tags(self, address: str) -> frozenset[str]:
        """Return the tags of a layer."""
        return self.model.tags(address)

    def slot(self, address: str, name: str) -> Node:
        """Return a slot."""
        return self.entry(f"{SLOTS}{address}.{name}", self.slots[address, name][0])

    # -- what it makes of it -------------------------------------------------------------------------------------------
    def updated(self) -> dict[str, Node]:
        """Return the new parameters, slots and counters by their names in the state."""
        if self.model.optimiser is None:
            raise SigmaStateError("trainer: there is no optimiser. Set one, such as 'adam', before training.")
        update = self._built(self.model.optimiser)
        parameters = {LAYERS + a: self._modified(a, node) for a, node in update.parameters.items()}
        slots = {f"{SLOTS}{address}.{slot}": node for (address, slot), node in update.slots.items()}
        counters = {"optimiser.step": Spec((), "int32"), "random.iteration": Spec((), "uint32")}
        return {**parameters, **slots, **{name: self.entry(name, spec) + 1 for name, spec in counters.items()}}

    def _built(self, optimiser: Optimiser) -> Update:
        """Return an optimiser's update; raise SigmaGraphError if it does not match the parameters and slots."""
        update, known = optimiser.build(self), {*self.parameters, *self.slots}
        made = (*update.parameters.items(), *update.slots.items()) if isinstance(update, Update) else [("", update)]
        for place, node in made:
            if place not in known or not isinstance(node, Node):
                got = f"{type(node).__name__}{f' for {place!r}' if place else ''}"
                raise SigmaGraphError(
                    f"optimiser {type(optimiser).__name__}: build() must return an Update: a node for each parameter "
                    f"by its address, and for each slot by address and name (got {got}). Fix its plugin."
                )
        for address, slot in self.model.slots():
            if (address, slot) not in update.slots:
                raise SigmaGraphError(
                    f"optimiser {type(optimiser).__name__}: build() does not return the slot {slot!r} of {address!r}, "
                    "which slots() declares. Return it, if only as it was."
                )
        return update

    def _modified(self, address: str, node: Node) -> Node:
        for name, modifier in self.model.optimiser.modifiers.items() if self.model.optimiser else ():
            if matches(modifier.match, address, self.tags):
                live = {setting: self.setting(f"modifiers.{name}", setting) for setting in live_settings(modifier)}
                node = modifier.modify(node, live)
        return node


@define
class Traced(Draft):
    """The step of a network on a batch, or on a shard ``cut`` from one, with its first row as a live value."""

    batch: int
    training: bool = True
    costs: bool = True
    cut: bool = False
    forward: Forward = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Trace the network once, at the state's parameters."""
        self.forward = self._run({})

    def section(self, name: str, spec: Spec) -> Node:
        """Return the input for a minibatch of one section."""
        return self.data.setdefault(name, symbol((self.batch, *spec.shape), spec.dtype, name))

    def _run(self, others: Mapping[str, Node]) -> Forward:
        """Trace the network at the state's parameters, or at other values for some of them."""
        model = self.model
        wanted = model.sections if self.costs else model.network.sections(costs=False)
        parameters = {address: self.entry(LAYERS + address, spec) for address, spec in model.parameters().items()}
        sections = {name: self.section(name, model.sections[name]) for name in wanted}
        state = {address: self.entry(LAYERS + address, spec) for address, spec in model.layer_state().items()}
        live = {address: self.live(LAYERS + address) for address in model.shapes.live}
        key, given = self._key() if self.training else None, {**parameters, **others, **state, **live}
        return model.network.forward(Trace(model.resolve, self.training, key, model.precision, given), sections)

    def _key(self) -> Key:
        return Key(
            self.entry("random.key", Spec((2,), "uint32")),
            self.entry("random.iteration", Spec((), "uint32")),
            self.live("shard.row", "uint32") if self.cut else constant(0, "uint32"),
            constant(0, "uint32"),
            self.model.shapes.streams,
        )

    def layer_state(self) -> dict[str, Node]:
        """Return the new layer state, by its name in the state."""
        return _named(LAYERS, self.forward.state)

    def measured(self, metrics: Mapping[str, Metric]) -> dict[str, Node]:
        """Return the loss, and the metrics' totals."""
        return {"loss": self.loss(), **self.totals(metrics)}

    def totals(self, metrics: Mapping[str, Metric]) -> dict[str, Node]:
        """Return the metrics' totals."""
        totals: dict[str, Node] = {}
        for name, metric in metrics.items():
            targets = self.model.network.targets()
            totals[name] = metric.totals(self.forward.prediction, self.section(targets, self.model.sections[targets]))
        return _named("metrics.", totals)

    def costs_apart(self) -> dict[str, Node]:
        """Return the loss of the costs with equal row weights, and total and weight of each of the others."""
        self.forward.loss_or_fail()
        costs, totals = self.forward.costs, self.forward.totals
        alike = evolve(self.forward, costs={name: cost for name, cost in costs.items() if name not in totals}).loss
        apart = {TOTALS + name: f.stack(cost.total, cost.weight) for name, cost in totals.items()}
        return apart if alike is None else {"loss": alike, **apart}

    def loss(self, parameters: Mapping[str, Node] | None = None) -> Node:
        """Return the loss at these or other parameters."""
        forward = self.forward if parameters is None else self._run(parameters)
        if self.cut:
            means = {name: cost.mean(self.live(WEIGHTS + name)) for name, cost in forward.totals.items()}
            forward = evolve(forward, costs={**forward.costs, **means})
        return forward.loss_or_fail()

    def gradients(self, parameters: Mapping[str, Node] | None = None) -> dict[str, Node]:
        """Return the loss's gradients at these or other parameters."""
        at, loss = (self.parameters if parameters is None else parameters), self.loss(parameters)
        if parameters is None:  # at other parameters a simplified graph may compute differently
            (loss,) = rewrite(Graph((), (loss,)), keep=OPS).outputs  # so that gradients are of the simplified graph
        return dict(zip(at, gradient(loss, list(at.values())), strict=True))


@define
class Merged(Draft):
    """The update step: merged gradients are given, and the loss cannot be computed again."""

    def loss(self, parameters: Mapping[str, Node] | None = None) -> Node:
        """Refuse: other shards would be missing."""
        raise SigmaStateError(
            "optimiser: it asks for the loss again, which one shard of a batch cannot compute. Use shards = 1."
        )

    def gradients(self, parameters: Mapping[str, Node] | None = None) -> dict[str, Node]:
        """Return the merged gradients."""
        if parameters is not None:
            self.loss(parameters)
        return {a: self.entry(GRADIENTS + a, spec) for a, spec in self.model.trainable().items()}
