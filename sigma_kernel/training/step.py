"""The training step as graphs: what a backend compiles.

One iteration is one graph: forward, backward, update, records.  Where gradients of several shards are merged, it is
two: a *gradient* step for each shard and an *update* step.  Beside them stand the *evaluation* step, and the
*observing* step, which computes what a hook wants to see of an iteration without touching the state.

Every value has a name.  State: ``network.layers.<address>``, ``optimiser.slots.<address>.<slot>``,
``optimiser.step``, ``random.key``, ``random.iteration``.  Live values: ``network.layers.<address>``,
``optimiser.<address>.<setting>``, ``shard.row``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, field, frozen

from sigma_kernel.contracts import Metric, Optimiser, Slot, Step
from sigma_kernel.errors import SigmaGraphError, SigmaStateError
from sigma_kernel.graph import functions as f
from sigma_kernel.graph.gradient import gradient
from sigma_kernel.graph.node import OPS, Graph, Node, Spec, constant, symbol
from sigma_kernel.graph.random import Key
from sigma_kernel.graph.rewrite import rewrite
from sigma_kernel.network import Forward, Network, Resolve, Shapes, live_settings
from sigma_kernel.registry import matches

LAYERS = "network.layers."
SLOTS = "optimiser.slots."
GRADIENTS = "gradients."
UPDATES = "updates."
ACTIVATIONS = "activations."
DIRECTIONS = "excitation.directions"  # a section that no data set has


@define
class Symbols:
    """The inputs of a step, made on demand and remembered by name."""

    state: dict[str, Node] = field(factory=dict)
    data: dict[str, Node] = field(factory=dict)
    steer: dict[str, Node] = field(factory=dict)

    def entry(self, name: str, spec: Spec) -> Node:
        """Return the input for a state entry."""
        return self.state.setdefault(name, symbol(spec.shape, spec.dtype, name))

    def live(self, name: str, dtype: str) -> Node:
        """Return the input for a live value, a scalar."""
        return self.steer.setdefault(name, symbol((), dtype, name))

    def section(self, name: str, spec: Spec, batch: int) -> Node:
        """Return the input for a minibatch of one section."""
        return self.data.setdefault(name, symbol((batch, *spec.shape), spec.dtype, name))

    def step(self, writes: Mapping[str, Node], ring: Mapping[str, Node]) -> Step:
        """Return the simplified step from these inputs to the given outputs; inputs that nothing uses are left out.

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
        state = {name: node for name, node in self.state.items() if node in used or name in writes}
        data = {name: node for name, node in self.data.items() if node in used}
        steer = {name: node for name, node in self.steer.items() if node in used}
        graph = Graph((*state.values(), *data.values(), *steer.values()), outputs)
        graph = rewrite(graph, keep=OPS)  # composites stay, for backends that know them
        return Step(graph, tuple(state), tuple(data), tuple(steer), tuple(writes), tuple(ring))


@frozen
class Model:
    """Everything that decides what a step computes, whatever the size of its batch.

    ``sections`` are the specs of one sample; ``metrics`` are recorded at each training step; ``frozen`` holds the
    addresses of parameters that are left untouched.
    """

    network: Network
    shapes: Shapes
    sections: Mapping[str, Spec]
    precision: str
    resolve: Resolve
    optimiser: Optimiser | None = None
    metrics: Mapping[str, Metric] = field(factory=dict)
    frozen: frozenset[str] = frozenset()

    # -- what there is -------------------------------------------------------------------------------------------------
    def parameters(self) -> dict[str, Spec]:
        """Return the parameters' specs by address."""
        return {address: Spec(p.shape, p.dtype or self.precision) for address, p in self.shapes.parameters.items()}

    def trainable(self) -> dict[str, Spec]:
        """Return the parameters that are not frozen."""
        return {address: spec for address, spec in self.parameters().items() if address not in self.frozen}

    def tags(self, address: str) -> frozenset[str]:
        """Return the tags of the level at an address: those of a layer say what kind of layer it is."""
        return frozenset(placed.kind for placed in self.network.layers if placed.name == address)

    def layer_state(self) -> dict[str, Spec]:
        """Return the specs of what layers update by themselves."""
        return {address: Spec(p.shape, p.dtype or self.precision) for address, p in self.shapes.state.items()}

    def slots(self) -> dict[tuple[str, str], tuple[Spec, Slot]]:
        """Return the optimiser's slots by address and name."""
        if self.optimiser is None:
            return {}
        return {
            (address, name): (Spec(spec.shape if slot.shape is None else slot.shape, spec.dtype), slot)
            for address, spec in self.trainable().items()
            for name, slot in self.optimiser.slots(spec).items()
        }

    def observable(self, patterns: Sequence[str]) -> tuple[str, ...]:
        """Return the addresses of gradients, updates and activations that the patterns match."""
        names = [head + address for head in (GRADIENTS, UPDATES) for address in self.trainable()]
        names += [ACTIVATIONS + placed.name for placed in self.network.layers]
        return tuple(name for name in names if any(matches(pattern, name) for pattern in patterns))

    # -- the steps -----------------------------------------------------------------------------------------------------
    def training(self, batch: int) -> Step:
        """Return the whole iteration on a batch of so many samples."""
        symbols = Symbols()
        objective = Traced(self, symbols, batch)
        update = self._update(symbols, objective)
        ring = self._measured(self.metrics, objective.forward, symbols, batch)
        return symbols.step({**update, **self._layer_updates(objective.forward)}, ring)

    def gradients(self, batch: int) -> Step:
        """Return the part of an iteration that a shard does: loss, totals, layer state and gradients, all recorded."""
        symbols = Symbols()
        objective = Traced(self, symbols, batch, row=symbols.live("shard.row", "uint32"))
        ring = self._measured(self.metrics, objective.forward, symbols, batch)
        ring |= self._layer_updates(objective.forward)
        ring |= {GRADIENTS + address: node for address, node in objective.gradients().items()}
        return symbols.step({}, ring)

    def update(self) -> Step:
        """Return the part of an iteration that follows the merging of gradients, which are state entries here."""
        symbols = Symbols()
        return symbols.step(self._update(symbols, Merged(self, symbols)), {})

    def evaluation(self, batch: int, metrics: Mapping[str, Metric]) -> Step:
        """Return what is measured on a batch: the loss (mean over its rows) and the metrics' totals."""
        symbols = Symbols()
        forward = self.forward(symbols, batch, training=False)
        return symbols.step({}, self._measured(metrics, forward, symbols, batch))

    def prediction(self, batch: int) -> Step:
        """Return the predictions for a batch, by output."""
        symbols = Symbols()
        return symbols.step({}, self.forward(symbols, batch, training=False, costs=False).predictions)

    def ends(self) -> tuple[Spec, Spec]:
        """Return the specs of one sample of the first input, and of one row of the first output."""
        return self.sections[self.network.sections()[0]], self.shapes.outputs[self.network.outputs[0].name]

    def excitation(self, batch: int) -> Step:
        """Return the first output of a batch, before costs, and how its sum along directions changes with the input."""
        symbols = Symbols()
        output = self.forward(symbols, batch, training=False, costs=False).values[self.network.outputs[0].name]
        along = symbols.section(DIRECTIONS, Spec(output.shape[1:], output.dtype), batch)
        inputs = symbols.data[self.network.sections()[0]]
        return symbols.step({}, {"output": output, "slopes": gradient(f.sum(output * along), [inputs])[0]})

    def observing(self, batch: int, wanted: Sequence[str]) -> Step:
        """Return gradients, updates and activations of an iteration by address, computed beside the step."""
        symbols = Symbols()
        objective = Traced(self, symbols, batch)
        ring: dict[str, Node] = {}
        if any(name.startswith(GRADIENTS) for name in wanted):
            ring |= {GRADIENTS + address: node for address, node in objective.gradients().items()}
        if any(name.startswith(UPDATES) for name in wanted):
            new = self._update(symbols, objective)
            old = {LAYERS + address: node for address, node in objective.parameters.items()}
            ring |= {UPDATES + name.removeprefix(LAYERS): new[name] - node for name, node in old.items()}
        ring |= {ACTIVATIONS + name: node for name, node in objective.forward.values.items()}
        return symbols.step({}, {name: ring[name] for name in wanted})

    # -- their parts ---------------------------------------------------------------------------------------------------
    def forward(
        self,
        symbols: Symbols,
        batch: int,
        *,
        training: bool,
        costs: bool = True,
        row: Node | None = None,
        parameters: Mapping[str, Node] | None = None,
    ) -> Forward:
        """Trace the network on a batch, at the state's parameters or at other values for some of them."""
        wanted = self.sections if costs else {name: self.sections[name] for name in self.network.sections(costs=False)}
        values = {address: symbols.entry(LAYERS + address, spec) for address, spec in self.parameters().items()}
        return self.network.forward(
            {name: symbols.section(name, spec, batch) for name, spec in wanted.items()},
            {**values, **(parameters or {})},
            {address: symbols.entry(LAYERS + address, spec) for address, spec in self.layer_state().items()},
            {address: symbols.live(LAYERS + address, self.precision) for address in self.shapes.live},
            training=training,
            key=self._key(symbols, row) if training else None,
            resolve=self.resolve,
        )

    def _key(self, symbols: Symbols, row: Node | None) -> Key:
        return Key(
            symbols.entry("random.key", Spec((2,), "uint32")),
            symbols.entry("random.iteration", Spec((), "uint32")),
            constant(0, "uint32") if row is None else row,
            constant(0, "uint32"),
            self.shapes.streams,
        )

    def _update(self, symbols: Symbols, objective: Traced | Merged) -> dict[str, Node]:
        if self.optimiser is None:
            raise SigmaStateError("trainer: there is no optimiser. Set one, such as 'adam', before training.")
        update = self.optimiser.build(objective)
        parameters = {LAYERS + a: self._modified(a, node, objective) for a, node in update.parameters.items()}
        slots = {f"{SLOTS}{address}.{slot}": node for (address, slot), node in update.slots.items()}
        count = symbols.entry("optimiser.step", Spec((), "int32"))
        iteration = symbols.entry("random.iteration", Spec((), "uint32"))
        counters = {"optimiser.step": count + 1, "random.iteration": iteration + 1}
        return {**parameters, **slots, **counters}

    def _modified(self, address: str, node: Node, objective: Traced | Merged) -> Node:
        for name, modifier in self.optimiser.modifiers.items() if self.optimiser else ():
            if matches(modifier.match, address, self.tags):
                live = {setting: objective.setting(f"modifiers.{name}", setting) for setting in live_settings(modifier)}
                node = modifier.modify(node, live)
        return node

    def _layer_updates(self, forward: Forward) -> dict[str, Node]:
        return {LAYERS + address: node for address, node in forward.state.items()}

    def _measured(
        self, metrics: Mapping[str, Metric], forward: Forward, symbols: Symbols, batch: int
    ) -> dict[str, Node]:
        measured = {"loss": forward.loss_or_fail()}
        for name, metric in metrics.items():
            targets = self.network.targets()
            section = symbols.section(targets, self.sections[targets], batch)
            measured[f"metrics.{name}"] = metric.totals(forward.prediction, section)
        return measured


@define
class Given:
    """What every objective offers, wherever its gradients come from."""

    model: Model
    symbols: Symbols
    parameters: dict[str, Node] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Name the trainable parameters."""
        trainable = self.model.trainable()
        self.parameters = {address: self.symbols.entry(LAYERS + address, spec) for address, spec in trainable.items()}

    @property
    def step(self) -> Node:
        """Return the number of this update, the first one being 1."""
        return f.cast(self.symbols.entry("optimiser.step", Spec((), "int32")) + 1, dtype=self.model.precision)

    def setting(self, address: str, name: str) -> Node:
        """Return the live setting of one parameter."""
        return self.symbols.live(f"optimiser.{address}.{name}", self.model.precision)

    def tags(self, address: str) -> frozenset[str]:
        """Return the tags of a layer."""
        return self.model.tags(address)

    def slot(self, address: str, name: str) -> Node:
        """Return a slot."""
        return self.symbols.entry(f"{SLOTS}{address}.{name}", self.model.slots()[address, name][0])


@define
class Traced(Given):
    """The objective of a fused step: the network itself."""

    batch: int
    row: Node | None = None
    forward: Forward = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Trace the network once, at the state's parameters."""
        Given.__attrs_post_init__(self)
        self.forward = self._run(None)

    def _run(self, parameters: Mapping[str, Node] | None) -> Forward:
        return self.model.forward(self.symbols, self.batch, training=True, row=self.row, parameters=parameters)

    def loss(self, parameters: Mapping[str, Node] | None = None) -> Node:
        """Return the loss at these or other parameters."""
        return (self.forward if parameters is None else self._run(parameters)).loss_or_fail()

    def gradients(self, parameters: Mapping[str, Node] | None = None) -> dict[str, Node]:
        """Return the loss's gradients at these or other parameters."""
        at, loss = (self.parameters if parameters is None else parameters), self.loss(parameters)
        if parameters is None:  # others may be values that a simpler graph computes in another way
            (loss,) = rewrite(Graph((), (loss,)), keep=OPS).outputs  # gradients inherit what is simpler
        return dict(zip(at, gradient(loss, list(at.values())), strict=True))


@define
class Merged(Given):
    """The objective of an update step: gradients are given, and the loss cannot be asked for again."""

    def loss(self, parameters: Mapping[str, Node] | None = None) -> Node:
        """Refuse: other shards would be missing."""
        raise SigmaStateError(
            "optimiser: it asks for the loss again, which one shard of a batch cannot tell. Use shards = 1."
        )

    def gradients(self, parameters: Mapping[str, Node] | None = None) -> dict[str, Node]:
        """Return the merged gradients."""
        if parameters is not None:
            self.loss(parameters)
        return {a: self.symbols.entry(GRADIENTS + a, spec) for a, spec in self.model.trainable().items()}
