"""Contracts of optimisation: optimisers, gradient transforms, schedules, modifiers; updates are built as graphs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, ClassVar, Protocol, cast

import numpy as np
from attrs import define, field, frozen

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaConfigError, expect, introduce_errors
from sigma_kernel.graph.node import Node, Spec
from sigma_kernel.graph.random import Key
from sigma_kernel.graph.reprs import brief
from sigma_kernel.network.tracing import Nodes, live, live_settings
from sigma_kernel.registry.addresses import matches
from sigma_kernel.settings import Settled, instance_of


@frozen
class Slot:
    """One array kept per parameter: its initial fill, and its shape and dtype if they are not the parameter's.

    One that is ``per_cost`` has a first axis for the costs that the optimiser minimises, if there are several. One that
    ``copies_parameter`` begins as the parameter is at that time: at the start, when a parameter that was frozen from
    the start is released, with a new optimiser, and again when the parameter is set.
    """

    fill: float = 0.0
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    per_cost: bool = False
    copies_parameter: bool = False

    def __attrs_post_init__(self) -> None:
        """Raise SigmaComponentError for a copy in another shape."""
        alike = not self.copies_parameter or self.shape is None
        expect(alike, "a Slot that copies_parameter has its shape. Leave out one of the two", self)

    def spec(self, parameter: Spec, costs: int = 1) -> Spec:
        """Return its spec for a parameter, and for so many costs."""
        shape = parameter.shape if self.shape is None else self.shape
        return Spec((costs, *shape) if self.per_cost and costs > 1 else shape, self.dtype or parameter.dtype)

    def initial(self, spec: Spec, parameter: Any) -> np.ndarray:
        """Return its initial values in a spec, given those of the parameter."""
        return np.full(spec.shape, parameter if self.copies_parameter else self.fill, spec.dtype)


Slots = Mapping[tuple[str, str], Node]  # by address and name; the address of shared ones is ""
COUNT = "updates"  # the slot of every parameter that counts its updates


@frozen
class Update:
    """New parameters ``{address: node}`` (absent ones are unchanged), and all slots ``{(address, slot): node}``.

    The address of a slot that all parameters share is ``""``.
    A parameter with a scalar in ``due`` is neither updated nor modified in a step in which that is false.
    """

    parameters: Nodes
    slots: Slots = field(factory=dict)
    due: Nodes = field(factory=dict)

    __repr__ = brief


class Objective(Protocol):
    """The objective that an optimiser builds its update from; addresses are relative to ``network.layers``."""

    @property
    def parameters(self) -> Nodes:
        """Return the parameters that the optimiser updates by address, without frozen ones."""

    def updates(self, address: str) -> Node:
        """Return the number of updates of a parameter, this one included: a scalar of the parameters' dtype.

        Steps in which the parameter is frozen, or its update is not due, do not count.
        """

    def loss(self, parameters: Nodes | None = None) -> Node:
        """Return the sum of the costs that it minimises, at the current parameters, or at the given values."""

    def gradients(self, parameters: Nodes | None = None) -> Nodes:
        """Return the gradients of the loss at the current parameters, or at the given values.

        In ``build()``, those at the current parameters are the result of the optimiser's transforms.
        """

    def parts(self) -> Sequence[tuple[Node, Nodes]]:
        """Return the weight of the batch and the gradients of the loss: a pair for all costs of equal weights.

        It weighs the number of its rows, or the sum of their weights; the gradients times it are sums over rows.
        """

    def setting(self, address: str, name: str) -> Node:
        """Return the current value of a live setting for one parameter, or ``""`` for the whole optimiser: a scalar."""

    def log_setting(self, address: str, name: str) -> Node:
        """Return the logarithm of a live setting, computed in float64: near 1, a power of it would be too coarse."""

    def slot(self, address: str, name: str) -> Node:
        """Return the current value of a slot; the address of one that all parameters share is ``""``."""

    def tags(self, address: str) -> frozenset[str]:
        """Return the tags of a layer, for patterns such as ``*<dense>.weights``."""

    def key(self, name: str) -> Key:
        """Return the key of random numbers for a purpose of this optimiser; they differ from step to step."""


@define(eq=False)
class Change(Settled):
    """The base of transforms and modifiers: their parameters, and slots of each.

    Args:
        match: Pattern of the parameters concerned, relative to ``network.layers``; by default all.
    """

    match: str = field(default="**", kw_only=True)

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Declare the slots of one parameter."""
        return {}


@frozen
class Transformed:
    """Transformed gradients, and the transform's slots ``{(address, slot): node}``, if it has any.

    A parameter with a scalar in ``due`` is updated in those steps only in which that is true.
    """

    gradients: Nodes
    slots: Slots = field(factory=dict)
    due: Nodes = field(factory=dict)

    __repr__ = brief


@define(eq=False)
class TransformedObjective:
    """The objective of an optimiser with transforms: its gradients at the current parameters are transformed.

    All else is that of ``objective``.
    """

    objective: Objective
    given: Transformed
    optimiser: Optimiser
    reads: set[str] = field(factory=set, init=False)  # what build() computes: gradients "here", or "elsewhere"

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the objective itself."""
        return getattr(self.objective, name)

    @property
    def parameters(self) -> Nodes:
        """Return the parameters that the optimiser updates."""
        return self.objective.parameters

    def gradients(self, parameters: Nodes | None = None) -> Nodes:
        """Return the transformed gradients; at other parameters, those of the loss, as no transform reaches them."""
        self.reads.add("here" if parameters is None else "elsewhere")
        return self.given.gradients if parameters is None else self.objective.gradients(parameters)

    def complete_update(self, update: Update) -> Update:
        """Return an update with the slots of transforms; where one is not due, the optimiser's own slots stay."""
        where = f"{type(self.optimiser).__name__}: build()"
        remedy = f"Leave out the transforms ({', '.join(self.optimiser.transforms)}), or use another optimiser."
        if "elsewhere" in self.reads:
            raise SigmaConfigError(f"{where} computes gradients at other parameters too, untransformed. {remedy}")
        if "here" not in self.reads:
            raise SigmaConfigError(f"{where} does not use the gradients that transforms change. {remedy}")
        if set(update.due) & set(self.given.due):
            raise SigmaConfigError(f"{where} and a transform delay updates of the same parameters. {remedy}")
        own = {at: _hold_back(self._due(at[0]), x, self.objective.slot(*at)) for at, x in update.slots.items()}
        return Update(update.parameters, {**self.given.slots, **own}, {**update.due, **self.given.due})

    def _due(self, address: str) -> Node | None:
        """Return when an update is due; that of shared slots is when one of any parameter is."""
        due = self.given.due
        if address:
            return due.get(address)
        return reduce(f.logical_or, due.values()) if due.keys() == self.parameters.keys() else None


@define(eq=False, kw_only=True)
class Optimiser(Settled):
    """Build the update of all parameters as a graph.

    One that has the slot ``weights``, in the form of the parameter, offers these weights for evaluation in place of the
    parameter, under the name ``optimiser``.

    Args:
        settings: Rules for some of the parameters, by name: ``{"match": pattern, setting: value, ...}``; the most
            specific match wins. The setting ``frozen`` excludes a parameter from updates.
        schedules: Schedules by the setting that they multiply over time, such as ``learning_rate``.
        modifiers: Modifiers of updated parameters, by name, applied in this order.
        transforms: Transforms of the gradients before the update, by name, applied in this order. An optimiser that
            computes no gradients, or some at other parameters, refuses them.
    """

    settings: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    schedules: Mapping[str, Schedule] = field(factory=dict)
    modifiers: Mapping[str, Modifier] = field(factory=dict)
    transforms: Mapping[str, Transform] = field(factory=dict)

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Declare the slots of one parameter."""
        return {}

    def shared_slots(self) -> Mapping[str, Slot]:
        """Declare the slots that the optimiser has once, for all its parameters: scalars, unless they have a shape."""
        return {}

    @abstractmethod
    def build(self, objective: Objective) -> Update:
        """Build the update graph; ``objective.gradients()`` are those after all transforms."""

    @property
    def changes(self) -> Mapping[str, Change]:
        """Return the transforms and the modifiers by their addresses below that of the optimiser."""
        transforms = {f"transforms.{name}": transform for name, transform in self.transforms.items()}
        return {**transforms, **{f"modifiers.{name}": modifier for name, modifier in self.modifiers.items()}}

    def declare_slots(self, address: str, parameter: Spec, tags: Callable[[str], frozenset[str]]) -> dict[str, Slot]:
        """Return the slots of one parameter by name; those of changes are such as ``modifiers.<name>.<slot>``.

        One of them is the number of its ``updates``.
        """
        owners: dict[str, Optimiser | Change] = {"": self}
        owners |= {f"{o}.": change for o, change in self.changes.items() if matches(change.match, address, tags)}
        own = {
            o + name: slot
            for o, owner in owners.items()
            for name, slot in _require_slots(owner.slots(parameter)).items()
        }
        expect(COUNT not in own, f"slots() must not declare {COUNT!r}, which every parameter has", own)
        return {**own, COUNT: Slot(0.0, (), "int32")}

    def declare_shared_slots(self) -> dict[str, Slot]:
        """Return the slots that all parameters share, by name."""
        shared = _require_slots(self.shared_slots(), "shared_slots()")
        for name, slot in shared.items():
            expect(not slot.copies_parameter, f"shared_slots(): {name!r} cannot copy one parameter", slot)
            expect("." not in name, f"shared_slots(): {name!r} must be a name without dots", name)
        return dict(shared)

    def transform_objective(self, objective: Objective) -> Objective:
        """Return the objective that :meth:`build` receives: one with transformed gradients, if there are transforms."""
        if not self.transforms:
            return objective
        return cast(Objective, TransformedObjective(objective, self._transform_gradients(objective), self))

    def _transform_gradients(self, objective: Objective) -> Transformed:
        """Return the gradients after all transforms, with all their slots by full names."""
        current = Transformed(objective.gradients())
        for name, transform in self.transforms.items():
            with introduce_errors(f"transform {name!r}", transform):
                result = transform.apply(current.gradients, objective, f"transforms.{name}")
                new = result if isinstance(result, Transformed) else Transformed(result)
                alike = isinstance(new.gradients, Mapping) and new.gradients.keys() == current.gradients.keys()
                expect(alike, "apply() must return a gradient for each gradient it receives", result)
            if new.due.keys() & current.due.keys():
                raise SigmaConfigError(f"transform {name!r}: another transform already delays updates. Keep one.")
            slots = {(address, f"transforms.{name}.{slot}"): node for (address, slot), node in new.slots.items()}
            current = Transformed(new.gradients, {**current.slots, **slots}, {**current.due, **new.due})
        return current

    def complete_update(self, update: Update, objective: Objective) -> Update:
        """Return an update with parameters modified and updates counted; parameters that are not due stay unchanged.

        Raises:
            SigmaConfigError: If the optimiser has transforms, and its update was built without them.
        """
        if isinstance(objective, TransformedObjective):
            update = objective.complete_update(update)
        parameters, slots = dict[str, Node](), dict(update.slots)
        for address, new in update.parameters.items():
            node, due = new, update.due.get(address)
            nodes = {COUNT: objective.slot(address, COUNT) + 1}
            for name, modifier in self.modifiers.items():
                if matches(modifier.match, address, objective.tags):
                    with introduce_errors(f"modifier {name!r}", modifier):
                        node, own = _pair(modifier.apply(node, address, objective, f"modifiers.{name}"), "apply()")
                        expect(node.spec == new.spec, f"{address!r} is {new.spec}, and must keep shape and dtype", node)
                    nodes |= {f"modifiers.{name}.{slot}": value for slot, value in own.items()}
            parameters[address] = _hold_back(due, node, objective.parameters[address])
            slots |= {(address, slot): _hold_back(due, x, objective.slot(address, slot)) for slot, x in nodes.items()}
        return Update(parameters, slots)


def _require_slots(slots: Any, method: str = "slots()") -> Mapping[str, Slot]:
    right = isinstance(slots, Mapping) and all(isinstance(slot, Slot) for slot in slots.values())
    expect(right, f'{method} must return a Slot for each name, as {{"velocity": Slot()}}', slots)
    return slots  # type: ignore[no-any-return]


def _hold_back(due: Node | None, new: Node, old: Node) -> Node:
    """Return a new value, or the old one where an update is not due."""
    return new if due is None else f.where(due, new, old)


@frozen
class Optimisation:
    """One of several optimisers of a trainer: its parameters and its costs.

    In a table of settings, those of the optimiser itself are next to these.

    Args:
        type: An optimiser, its name or a table.
        match: A pattern of the parameters that it updates, relative to ``network.layers``.
        minimises: The names of cost layers, by default all: the gradients are those of their sum.
    """

    slot: ClassVar[str] = "type"

    type: Optimiser
    match: str = field(default="**", validator=instance_of(str, "a string"))
    minimises: Sequence[str] | None = None

    __repr__ = brief


@define(eq=False, kw_only=True)
class GradientOptimiser(Optimiser):
    """An optimiser that updates each parameter independently, after transforms over all gradients.

    Args:
        learning_rate: Step size.
    """

    learning_rate: float = live(0.01, low=0.0)

    @abstractmethod
    def update(self, gradient: Node, parameter: Node, slots: Nodes, step: Node, hyper: Nodes) -> tuple[Node, Nodes]:
        """Return one parameter's new value and its new slots.

        ``step`` is the number of this update of the parameter, counted from 1; ``hyper`` holds the live settings as
        scalars, and the logarithm of one from 0 to below 1 as ``log_<name>``: ``1 - beta^t`` is
        ``-f.expm1(step * hyper["log_beta"])``.
        """

    def build(self, objective: Objective) -> Update:
        """Build the update graph: :meth:`update` for each parameter."""
        gradients = objective.gradients()
        parameters: dict[str, Node] = {}
        slots: dict[tuple[str, str], Node] = {}
        for address, parameter in objective.parameters.items():
            old = {name: objective.slot(address, name) for name in self.slots(parameter.spec)}
            hyper = self._hyper(address, objective)
            updated = self.update(gradients[address], parameter, old, objective.updates(address), hyper)
            parameters[address], new = _pair(updated, "update()")
            slots |= {(address, name): value for name, value in new.items()}
        return Update(parameters, slots)

    def _hyper(self, address: str, objective: Objective) -> Nodes:
        """Return the live settings of one parameter, and the logarithms of those from 0 to below 1."""
        settings = live_settings(self)
        rates = [name for name, setting in settings.items() if setting.is_decay]
        logarithms = {f"log_{name}": objective.log_setting(address, name) for name in rates}
        return {**logarithms, **{name: objective.setting(address, name) for name in settings}}


def _pair(updated: Any, what: str) -> tuple[Node, Nodes]:
    pair = isinstance(updated, tuple) and len(updated) == 2 and isinstance(updated[1], Mapping)
    expect(pair and isinstance(updated[0], Node), f"{what} must return a pair, (node, slots by name)", updated)
    return updated  # type: ignore[no-any-return]


@define(eq=False)
class Transform(Change):
    """Transform the gradients before the update (clip, penalise), all of them at once."""

    def select_gradients(self, gradients: Nodes, objective: Objective) -> dict[str, Node]:
        """Return the gradients selected by ``match``."""
        return {a: gradient for a, gradient in gradients.items() if matches(self.match, a, objective.tags)}

    @abstractmethod
    def apply(self, gradients: Nodes, objective: Objective, owner: str) -> Nodes | Transformed:
        """Return the transformed gradients; read live fields with ``objective.setting(owner, name)``.

        A slot is ``objective.slot(address, f"{owner}.{name}")``.
        """


class Schedule(Settled):
    """Scale a setting by a factor that is a function of the clock.

    One that ``needs_end`` is asked by :meth:`with_end` for the schedule of a run of known length; a run without an end
    is refused.
    """

    @property
    def needs_end(self) -> bool:
        """Return whether its factors depend on when training ends; by default they do not."""
        return False

    def with_end(self, end: int) -> Schedule:
        """Return the schedule of a run that ends after so many iterations in total, as far as that is known now.

        It is the goal of ``fit``, else the total number of epochs. One that holds others passes it on.
        """
        return self

    @abstractmethod
    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        """Return one factor per iteration, given the numbers of iterations and of epochs completed before it.

        Those of epochs are floats: half-way through the first one, 0.5.
        """


@define(eq=False)
class Modifier(Change):
    """Modify a parameter at the end of its update, inside the step (clip, max-norm): override one of two methods.

    One that has the slot ``weights``, in the form of the parameter, offers these weights for evaluation in place of the
    parameter; if it has a slot ``count``, a scalar, as soon as that is above 0.
    """

    def modify(self, parameter: Node, settings: Nodes) -> Node:
        """Return the modified parameter; ``settings`` holds the live fields as scalars."""
        return parameter

    def apply(self, parameter: Node, address: str, objective: Objective, owner: str) -> tuple[Node, Nodes]:
        """Return the modified parameter and the new slots; by default, :meth:`modify` without slots.

        The parameter before its update is ``objective.parameters[address]``. Read live fields with
        ``objective.setting(owner, name)``, slots with ``objective.slot(address, f"{owner}.{name}")``.
        """
        modified = self.modify(parameter, {name: objective.setting(owner, name) for name in live_settings(self)})
        expect(isinstance(modified, Node), "modify() must return a node", modified)
        return modified, {}
