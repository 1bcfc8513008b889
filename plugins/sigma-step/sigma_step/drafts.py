"""Write the graph of a step: its inputs by name, the objective and the update of each optimiser, and its outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any

from attrs import Factory, define, evolve, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric, Slot, Step, Update
from sigma_kernel.contracts.optimisation import COUNT
from sigma_kernel.errors import (
    SigmaComponentError,
    SigmaConfigError,
    SigmaGraphError,
    SigmaStateError,
    component_name,
    expect,
    introduce_errors,
    suggest_name,
)
from sigma_kernel.graph.node import OPS, Graph, Node, Spec, constant, originating, symbol
from sigma_kernel.graph.random import Key
from sigma_kernel.graph.regions import RecomputedRegion
from sigma_kernel.graph.rewriting import rewrite
from sigma_kernel.network.network import Forward
from sigma_kernel.network.tracing import LOG, Nodes, Trace, live_settings
from sigma_step.mixing import mix_precision
from sigma_step.model import (
    BATCH,
    COSTS,
    GOOD,
    LAYERS,
    METRICS,
    PART,
    RISE,
    SCALE,
    SCALES,
    SKIPPED,
    SKIPS,
    VECTORS,
    WEIGHTS,
    Model,
)
from sigma_step.recomputation import gradient_recomputing, regions_before, rewrite_with_regions
from sigma_step.rewritings import rewrite_forward
from sigma_step.totals import per_row, record_totals

CHANGES = ("transforms.", "modifiers.")  # whose slots are not those of the optimiser itself
Inputs = Mapping[str, Node]  # of a step, or its outputs, by name


def add_prefix(head: str, nodes: Mapping[str, Node]) -> dict[str, Node]:
    """Return nodes by their names behind a prefix."""
    return {head + name: node for name, node in nodes.items()}


def simplified_step(model: Model, state: Inputs, data: Inputs, steer: Inputs, writes: Inputs, ring: Inputs) -> Step:
    """Return the simplified step from these inputs to the given outputs, without unused inputs."""
    outputs = (*writes.values(), *ring.values())
    used = set(Graph((), outputs))
    state, data, steer = (
        {name: node for name, node in inputs.items() if node in used or name in writes}
        for inputs in (state, data, steer)
    )
    graph = Graph((*state.values(), *data.values(), *steer.values()), outputs)
    if model.low:
        graph = mix_precision(graph, model.low, model.rounds)
    graph = rewrite(graph, keep=OPS)  # composite ops stay, for backends that implement them
    return Step(graph, tuple(state), tuple(data), tuple(steer), tuple(writes), tuple(ring))


@define
class Draft(ABC):
    """A step under construction: its inputs, created on demand by name."""

    model: Model
    state: dict[str, Node] = field(factory=dict, init=False)
    data: dict[str, Node] = field(factory=dict, init=False)
    steer: dict[str, Node] = field(factory=dict, init=False)
    slots: dict[tuple[str, str], tuple[Spec, Slot]] = field(
        default=Factory(lambda draft: draft.model.slots(), takes_self=True), init=False
    )
    _aims: list[Aim] = field(factory=list, init=False)

    def entry(self, name: str, spec: Spec) -> Node:
        """Return the input for a state entry."""
        return self.state.setdefault(name, symbol(spec.shape, spec.dtype, name))

    def live(self, name: str, dtype: str | None = None) -> Node:
        """Return the input for a live value, a scalar."""
        return self.steer.setdefault(name, symbol((), dtype or self.model.precision, name))

    def step_to(self, writes: Mapping[str, Node], ring: Mapping[str, Node]) -> Step:
        """Return the step from these inputs to the given outputs."""
        for name, node in writes.items():
            self.entry(name, node.spec)  # an entry may be written without being read
        return simplified_step(self.model, self.state, self.data, self.steer, writes, ring)

    def key(self, name: str = "", row: Node | None = None) -> Key:
        """Return the key of random numbers, by default for whole batches."""
        words, done = self.entry("random.key", Spec((2,), "uint32")), self.entry("random.iteration", Spec((), "uint32"))
        zero = constant(0, "uint32")
        return Key(words, done, zero if row is None else row, zero, self.model.shapes.streams, name)

    # -- updates -------------------------------------------------------------------------------------------------------
    @abstractmethod
    def loss(self, costs: Collection[str] | None, parameters: Mapping[str, Node] | None = None) -> Node:
        """Return the sum of all or some costs, at these or other parameters."""

    @abstractmethod
    def slopes(self, aim: Aim, parameters: Mapping[str, Node] | None = None) -> dict[str, Node]:
        """Return the gradients of an aim's loss in its parameters, at these or other parameters."""

    @abstractmethod
    def parts(self, aim: Aim) -> Sequence[tuple[Node, Nodes]]:
        """Return what the whole batch weighs in each part of an aim's loss, and the gradients of the part."""

    def aims(self) -> Sequence[Aim]:
        """Return the objective of each optimiser; in an order, one sees the new parameters of those before it."""
        ahead: dict[str, Node] = {}
        for head in self.model.heads if not self._aims else ():
            self._aims.append(aim := Aim(self, head, dict(ahead)))
            if self.model.ordered:
                ahead |= {address: f.stop(node) for address, node in aim.update.parameters.items()}
        return self._aims

    def skip_flags(self) -> dict[str, Node]:
        """Return whether the update of any optimiser is skipped, if losses are scaled."""
        fit = [aim.fits for aim in self.aims()] if self.model.scales_losses else []
        return {SKIPPED: f.cast(f.logical_not(reduce(f.logical_and, fit)), "float32")} if fit else {}

    def gradients(self) -> dict[str, Node]:
        """Return the gradient of each trainable parameter, of the costs that its optimiser minimises."""
        by_address = {address: node for aim in self.aims() for address, node in aim.gradients().items()}
        return {address: by_address[address] for address in self.model.trainable()}

    def new_state(self) -> dict[str, Node]:
        """Return the new parameters, slots and counters by their names in the state."""
        if not self.model.optimisers:
            raise SigmaStateError("trainer: there is no optimiser. Set one, such as 'adam', before training.")
        aims = self.aims()
        parameters = {LAYERS + address: node for aim in aims for address, node in aim.update.parameters.items()}
        slots = {name: node for aim in aims for name, node in aim.new_slots().items()}
        counted = {name: node for aim in aims for name, node in aim.new_counts().items()}
        name = "random.iteration"
        return {**parameters, **slots, **counted, name: self.entry(name, Spec((), "uint32")) + 1}


@define(eq=False, slots=False)
class Aim:
    """The objective of one optimiser in a step: its parameters and slots, and the costs that it minimises.

    ``ahead`` are the new parameters of optimisers before it in an order. It may be for a ``part`` of the costs.
    """

    draft: Draft
    head: str
    ahead: Mapping[str, Node]
    part: Collection[str] = ()

    @cached_property
    def parameters(self) -> dict[str, Node]:
        """Return the parameters that the optimiser updates."""
        return {a: self.draft.entry(LAYERS + a, spec) for a, spec in self.draft.model.trainable(self.head).items()}

    def updates(self, address: str) -> Node:
        """Return the number of this update of a parameter, counted from 1."""
        return f.cast(self.slot(address, COUNT) + 1, dtype=self.draft.model.precision)

    def _scalar(self, name: str, dtype: str) -> Node:
        """Return a scalar of this optimiser in the state."""
        return self.draft.entry(f"{self.head}.{name}", Spec((), dtype))

    @property
    def costs(self) -> Collection[str] | None:
        """Return the costs that the optimiser minimises; None for all."""
        own = self.draft.model.optimisers
        if self.part:
            return self.part
        return own[self.head].minimises if self.head in own else None

    def loss(self, parameters: Mapping[str, Node] | None = None) -> Node:
        """Return the loss at these or other parameters."""
        at = {**self.ahead, **(parameters or {})}
        return self.draft.loss(self.costs, at or None)

    def gradients(self, parameters: Mapping[str, Node] | None = None) -> dict[str, Node]:
        """Return the loss's gradients at these or other parameters."""
        return self._slopes if parameters is None else self.draft.slopes(self, parameters)

    @cached_property
    def _slopes(self) -> dict[str, Node]:
        return self.draft.slopes(self)

    def parts(self) -> Sequence[tuple[Node, Nodes]]:
        """Return the weights and gradients of parts of the loss."""
        return self.draft.parts(self)

    # -- scaled losses -------------------------------------------------------------------------------------------------
    @cached_property
    def scale(self) -> Node:
        """Return the factor of the loss whose gradients are computed."""
        return self._scalar(SCALE, "float32")

    @cached_property
    def fits(self) -> Node:
        """Return whether all gradients are finite: in float16, the scale was not too large."""
        wrong = [f.sum(f.cast(f.logical_not(f.is_finite(x)), "float32")) for x in self.gradients().values()]
        return f.equal(sum(wrong, start=constant(0)), 0.0)

    def new_counts(self) -> dict[str, Node]:
        """Return the new number of updates and, if losses are scaled, what :meth:`Model.scales` names.

        The factor is halved where an update is skipped, and doubled after many in a row that are not.
        """
        done = self._scalar("step", "int32")
        if not self.draft.model.scales_losses:
            return {f"{self.head}.step": done + 1}
        good, skipped, fits = self._scalar(GOOD, "int32") + 1, self._scalar(SKIPS, "int32"), self.fits
        risen = f.where(good >= RISE, f.minimum(self.scale * 2.0, SCALES[1]), self.scale)
        new = {
            "step": f.where(fits, done + 1, done),
            SCALE: f.where(fits, risen, f.maximum(self.scale * 0.5, SCALES[0])),
            GOOD: f.where(f.logical_and(fits, good < RISE), good, 0),
            SKIPS: f.where(fits, skipped, skipped + 1),
        }
        return add_prefix(f"{self.head}.", new)

    def new_slots(self) -> dict[str, Node]:
        """Return the new slots by their names in the state, without counts of updates that nothing reads."""
        new, parameters = self.update.slots, self.update.parameters.values()
        read = set(Graph((), (*parameters, *(node for (_, name), node in new.items() if name != COUNT))))
        wanted = {x: n for x, n in new.items() if x[1] != COUNT or self.slot(*x) in read}
        return {self.draft.model.slot(a or f"{self.head}.", name): n for (a, name), n in wanted.items()}

    def _unless_skipped(self, done: Update) -> Update:
        """Return an update that changes nothing where a gradient is not finite."""
        parameters = {a: f.where(self.fits, x, self.parameters[a]) for a, x in done.parameters.items()}
        return Update(parameters, {at: f.where(self.fits, x, self.slot(*at)) for at, x in done.slots.items()})

    def key(self, name: str) -> Key:
        """Return a key of random numbers."""
        return self.draft.key(f"{self.head}:{name}")

    def setting(self, address: str, name: str) -> Node:
        """Return the live setting of one parameter; without an address, of the whole optimiser: that of the first one.

        Raises SigmaConfigError if the optimiser, transform or modifier has none of that name.
        """
        if (owner := self._find_owner(address)) is not None and name not in live_settings(owner):
            hint = suggest_name(name, live_settings(owner), "There are:")
            raise SigmaConfigError(f"{self.head}: {type(owner).__name__} has no live setting {name!r}.{hint}")
        return self.draft.live(f"{self.head}.{address or self._first_address}.{name}")

    def log_setting(self, address: str, name: str) -> Node:
        """Return the logarithm of a live setting."""
        self.setting(address, name)
        return self.draft.live(f"{self.head}.{address or self._first_address}.{name}{LOG}")

    @cached_property
    def _first_address(self) -> str:
        """Return the parameter whose settings are those that the address of the whole optimiser shows."""
        return next(iter(self.draft.model.tuned_parameters(self.head)))

    def _find_owner(self, address: str) -> Any:
        """Return the optimiser, its transform or modifier that has the settings at an address; None for another."""
        optimiser = self.draft.model.optimisers[self.head].type
        return optimiser if not address or address in self.parameters else optimiser.changes.get(address)

    def tags(self, address: str) -> frozenset[str]:
        """Return the tags of a layer."""
        return self.draft.model.tags(address)

    def slot(self, address: str, name: str) -> Node:
        """Return a slot; without an address, one that all parameters of the optimiser share."""
        place = address or f"{self.head}.", name
        return self.draft.entry(self.draft.model.slot(*place), self.draft.slots[place][0])

    # -- what the optimiser makes of it --------------------------------------------------------------------------------
    @cached_property
    def update(self) -> Update:
        """Return the optimiser's update, with its modifiers applied.

        Raises SigmaComponentError if it does not match the parameters and slots.
        """
        optimiser, parameters = self.draft.model.optimisers[self.head].type, self.parameters
        if not parameters:  # all are frozen
            return Update({})
        slots = {place: spec for place, (spec, _) in self.draft.slots.items() if place[0] in parameters}
        slots |= {("", n): spec for (owner, n), (spec, _) in self.draft.slots.items() if owner == f"{self.head}."}
        specs: dict[Any, Spec] = {**{address: node.spec for address, node in parameters.items()}, **slots}
        with introduce_errors(self.head, optimiser), originating(self.head):
            objective = optimiser.transform_objective(self)
            update = optimiser.build(objective)
            _check_update(update, specs, [x for x in slots if x[1] != COUNT and not x[1].startswith(CHANGES)])
            done = optimiser.complete_update(update, objective)
            _check_update(done, specs, [place for place in slots if place[0] in update.parameters])
            done = evolve(done, parameters={a: self._with_fixed_rows(a, x) for a, x in done.parameters.items()})
            return self._unless_skipped(done) if self.draft.model.scales_losses else done

    def _with_fixed_rows(self, address: str, new: Node) -> Node:
        """Return the new values of a parameter, with the rows that its layer declares fixed."""
        for row, number in self.draft.model.shapes.parameters[address].fixed_rows.items():
            rows = f.reshape(f.iota(new.shape[:1], dtype="int32"), (new.shape[0], *(1,) * (len(new.shape) - 1)))
            new = f.where(f.equal(rows, row), number, new)
        return new


def _check_update(update: Any, known: Mapping[Any, Spec], slots: Iterable[tuple[str, str]]) -> None:
    nodes = (*update.parameters.items(), *update.slots.items()) if isinstance(update, Update) else [("", update)]
    for place, node in nodes:
        if place not in known or not isinstance(node, Node):
            what = f"{type(node).__name__}{f' for {place!r}' if place else ''}"
            wanted = "an Update: a node for each parameter by its address, and for each slot by address and name"
            raise SigmaComponentError(f"build() must return {wanted} (got {what}).")
        expect(node.spec == known[place], f"{place!r} is {known[place]}, and must keep shape and dtype", node)
    for address, slot in (place for place in slots if place not in update.slots):
        whose = f" of {address!r}, which slots() declares" if address else ", which shared_slots() declares"
        does_not = f"does not return the slot {slot!r}{whose}"
        raise SigmaComponentError(f"build() {does_not}. Return it, if only as it was.")


@define
class Traced(Draft):
    """The step of a network on a batch, or on a shard ``cut`` from one, with its first row as a live value.

    It reads all sections, or those that are ``given``.
    """

    batch: int
    training: bool = True
    given: Collection[str] | None = None
    cut: bool = False
    recomputes: bool = True  # whether layers that say so are computed again in the backward pass
    regions: list[RecomputedRegion] = field(factory=list, init=False)  # of all forward passes, to be recomputed
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
        wanted = model.sections if self.given is None else self.given
        parameters = {address: self.entry(LAYERS + address, spec) for address, spec in model.parameters().items()}
        sections = {name: self.section(name, model.sections[name]) for name in wanted}
        state = {address: self.entry(LAYERS + address, spec) for address, spec in model.layer_state().items()}
        live = {address: self.live(LAYERS + address) for address in model.shapes.live}
        row = self.live("shard.row", "uint32") if self.cut and self.training else None
        key, given = self.key(row=row) if self.training else None, {**parameters, **others, **state, **live}
        trace = Trace(model.resolve, self.training, key, model.precision, given, frozen=model.frozen)
        forward = model.network.forward(trace, sections)
        if model.rewritings:
            inputs = {**add_prefix(LAYERS, given), **sections}
            forward = rewrite_forward(forward, inputs, model.rewritings, self.training, model.tags)
        self.regions += forward.regions if self.recomputes else ()
        return forward

    def layer_state(self) -> dict[str, Node]:
        """Return the new layer state, by its name in the state."""
        return add_prefix(LAYERS, self.forward.state)

    def predictions(self) -> dict[str, Node]:
        """Return the predictions by output, in the units of their targets if they have any."""
        pairs = {name: (x, self.model.restore_units(name, x)) for name, x in self.forward.predictions.items()}
        return {name: x if restored is None else restored for name, (x, restored) in pairs.items()}

    def comparison(self, output: str, section: str) -> tuple[Node, Node]:
        """Return the prediction of an output and the rows of a section, both in units of the data if they have such."""
        prediction = self.forward.predictions[output] if output else self.forward.prediction
        rows, value = self.section(section, self.model.sections[section]), self.model.restore_units(output, prediction)
        if value is None:
            return prediction, rows
        restored = self.model.units.restore(section, rows)
        return value, rows if restored is None else restored

    def measurements(self, metrics: Mapping[str, Metric]) -> dict[str, Node]:
        """Return the loss, the costs if there are several, the mean weight of rows that differ, and metrics' totals."""
        costs = {COSTS + name: self.loss([name]) for name in self.model.costs}
        totals = {n: self.live(WEIGHTS + n) if self.cut else x.weight for n, x in self.forward.totals.items()}
        over = {COSTS + name: total for name, total in totals.items() if COSTS + name in costs}
        if len(totals) == len(self.forward.costs):
            over["loss"] = sum(totals.values(), start=constant(0, self.model.precision))
        weights = add_prefix(WEIGHTS, {name: total / self.batch for name, total in over.items()})
        return {"loss": self.loss(None), **costs, **weights, **self.totals(metrics)}

    def rows(self) -> dict[str, Node]:
        """Return what each row adds to each cost, beside its weight if rows differ; see :func:`per_row`."""
        self.loss(None)
        means = {name: per_row(x, self.batch, Fraction(self.batch)) for name, x in self.forward.costs.items()}
        parts = {name: f.stretch(x, (self.batch,)) for name, x in means.items()}
        parts |= {n: per_row(f.stack(x.total, x.weight), self.batch) for n, x in self.forward.totals.items()}
        return add_prefix(COSTS, parts)

    def totals(self, metrics: Mapping[str, Metric]) -> dict[str, Node]:
        """Return the metrics' totals, or what each row adds to them."""
        totals: dict[str, Node] = {}
        for name, metric in metrics.items():
            output = name.rpartition(".")[0]
            wanted = [metric.section or self.model.network.targets(output), *filter(None, [metric.lengths])]
            if missing := [section for section in wanted if section not in self.model.sections]:
                hint = suggest_name(missing[0], self.model.sections, "It reads")
                raise SigmaConfigError(f"metric {name!r}: the network reads no section {missing[0]!r}.{hint}")
            compared = self.comparison(output, wanted[0])
            lengths = [self.section(section, self.model.sections[section]) for section in wanted[1:]]
            with introduce_errors(f"metric {name!r}", metric):
                try:
                    totals[name] = metric.totals(*compared, *lengths)
                except SigmaGraphError as error:  # of shapes or dtypes: it names an op
                    raise SigmaGraphError(f"metric {name!r} ({component_name(metric)}): {error}") from error
                expect(isinstance(totals[name], Node), "totals() must return a node", totals[name])
            totals[name] = record_totals(metric, totals[name], self.batch)
        return add_prefix(METRICS, totals)

    def loss(self, costs: Collection[str] | None, parameters: Mapping[str, Node] | None = None) -> Node:
        """Return the sum of all or some costs, at these or other parameters."""
        forward = self.forward if parameters is None else self._run(parameters)
        if self.cut:
            means = {name: cost.mean(self.live(WEIGHTS + name)) for name, cost in forward.totals.items()}
            forward = evolve(forward, costs={**forward.costs, **means})
        if costs is not None:
            forward = evolve(forward, costs={name: node for name, node in forward.costs.items() if name in costs})
        return forward.loss_or_fail()

    def parts(self, aim: Aim) -> Sequence[tuple[Node, Nodes]]:
        """Return the weights of the batch in an aim's costs, and the gradients of those costs that share one."""
        names = [name for name in self.forward.costs if aim.costs is None or name in aim.costs]
        totals, rows = self.forward.totals, constant(self.batch, self.model.precision)
        own = [totals[name].weight if name in totals else rows for name in names]
        groups: dict[int, tuple[Node, list[str]]] = {}
        for name, weight in zip(names, rewrite(Graph((), tuple(own)), keep=OPS).outputs, strict=True):
            groups.setdefault(id(weight), (weight, []))[1].append(name)  # equal ones have become one
        if len(groups) == 1:
            return [(weight, aim.gradients()) for weight, _ in groups.values()]
        return [(weight, Aim(self, aim.head, aim.ahead, part).gradients()) for weight, part in groups.values()]

    def slopes(self, aim: Aim, parameters: Mapping[str, Node] | None = None) -> dict[str, Node]:
        """Return the gradients of an aim's loss in its parameters, at these or other parameters."""
        at, loss = (aim.parameters if parameters is None else parameters), aim.loss(parameters)
        loss = loss * self.live(PART) if self.cut else loss
        regions = regions_before(loss, self.regions)
        if parameters is None:  # at other parameters a simplified graph may compute differently
            loss, regions = rewrite_with_regions(loss, regions, OPS)  # so that gradients are of the simplified graph
        if not self.model.scales_losses:
            return dict(zip(at, gradient_recomputing(loss, list(at.values()), regions), strict=True))
        slopes = gradient_recomputing(loss * aim.scale, list(at.values()), regions)
        return {address: slope / aim.scale for address, slope in zip(at, slopes, strict=True)}


@define
class Merged(Draft):
    """The update step: merged gradients are given, and the loss cannot be computed again."""

    def loss(self, costs: Collection[str] | None, parameters: Mapping[str, Node] | None = None) -> Node:
        """Refuse: other shards would be missing."""
        raise SigmaStateError(
            "optimiser: it asks for the loss again, which one shard of a batch cannot compute. Use shards = 1."
        )

    def parts(self, aim: Aim) -> Sequence[tuple[Node, Nodes]]:
        """Return the weight of the whole batch, which is given, and the merged gradients."""
        return [(self.entry(f"{BATCH}{aim.head}", Spec((), self.model.precision)), aim.gradients())]

    def slopes(self, aim: Aim, parameters: Mapping[str, Node] | None = None) -> dict[str, Node]:
        """Return the merged gradients."""
        if parameters is not None:
            self.loss(None, parameters)
        layout = self.model.vectors
        vectors = {dtype: self.entry(VECTORS + dtype, Spec((n,), dtype)) for dtype, n in layout.sizes.items()}
        return {address: layout.part(vectors, address) for address in aim.parameters}
