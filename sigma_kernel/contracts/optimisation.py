"""Contracts of optimisation: optimisers, gradient transforms, schedules, modifiers; updates are built as graphs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from attrs import define, field, frozen

from sigma_kernel.errors import expect, inside
from sigma_kernel.graph.node import Node, Spec
from sigma_kernel.network.tracing import Nodes, live, live_settings
from sigma_kernel.registry.addresses import matches
from sigma_kernel.settings import Settled, brief, instance_of


@frozen
class Slot:
    """One array an optimiser keeps per parameter: its initial fill, and its shape if it is not the parameter's."""

    fill: float = 0.0
    shape: tuple[int, ...] | None = None


@frozen
class Update:
    """New parameters ``{address: node}`` (absent ones are unchanged), and all slots ``{(address, slot): node}``."""

    parameters: Nodes
    slots: Mapping[tuple[str, str], Node] = field(factory=dict)

    __repr__ = brief


class Objective(Protocol):
    """The objective that an optimiser builds its update from; addresses are relative to ``network.layers``."""

    @property
    def parameters(self) -> Nodes:
        """Return the parameters that the optimiser updates by address, without frozen ones."""

    @property
    def step(self) -> Node:
        """Return the number of updates, this one included: a scalar of the parameters' dtype."""

    def loss(self, parameters: Nodes | None = None) -> Node:
        """Return the sum of the costs that it minimises, at the current parameters, or at the given values."""

    def gradients(self, parameters: Nodes | None = None) -> Nodes:
        """Return the gradients of the loss at the current parameters, or at the given values."""

    def setting(self, address: str, name: str) -> Node:
        """Return the current value of a live setting for one parameter, as a scalar."""

    def slot(self, address: str, name: str) -> Node:
        """Return the current value of a slot."""

    def tags(self, address: str) -> frozenset[str]:
        """Return the tags of a layer, for patterns such as ``*<dense>.weights``."""


@define(eq=False, kw_only=True)
class Optimiser(Settled):
    """Build the update of all parameters as a graph.

    Args:
        settings: Rules for some of the parameters, by name: ``{"match": pattern, setting: value, ...}``; the most
            specific match wins. The setting ``frozen`` excludes a parameter from updates.
        schedules: Schedules by the setting that they multiply over time, such as ``learning_rate``.
        modifiers: Modifiers of updated parameters, by name, applied in this order.
    """

    settings: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    schedules: Mapping[str, Schedule] = field(factory=dict)
    modifiers: Mapping[str, Modifier] = field(factory=dict)

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Declare the slots of one parameter."""
        return {}

    @abstractmethod
    def build(self, objective: Objective) -> Update:
        """Build the update graph."""


@frozen
class Optimisation:
    """One of several optimisers of a trainer: what it updates, and what it minimises.

    ``type`` is an optimiser, its name or a table; in a table of settings, its own settings are next to the others.
    ``match`` is a pattern of parameters, relative to ``network.layers``. ``minimises`` are the names of cost layers, by
    default all: the gradients are those of their sum.
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
        transforms: Transforms of the gradients before the update, by name, applied in this order.
    """

    learning_rate: float = live(0.01, low=0.0)
    transforms: Mapping[str, Transform] = field(factory=dict)

    @abstractmethod
    def update(self, gradient: Node, parameter: Node, slots: Nodes, step: Node, hyper: Nodes) -> tuple[Node, Nodes]:
        """Return one parameter's new value and its new slots; ``hyper`` holds the live settings as scalars."""

    def build(self, objective: Objective) -> Update:
        """Build the update graph: transforms in order, then :meth:`update` for each parameter."""
        gradients = objective.gradients()
        for name, transform in self.transforms.items():
            with inside(f"transform {name!r}", transform):
                before, gradients = gradients, transform.apply(gradients, objective, f"transforms.{name}")
                alike = isinstance(gradients, Mapping) and gradients.keys() == before.keys()
                expect(alike, "apply() must return a gradient for each one that it is given", gradients)
        parameters: dict[str, Node] = {}
        slots: dict[tuple[str, str], Node] = {}
        settings = live_settings(self)
        for address, parameter in objective.parameters.items():
            old = {name: objective.slot(address, name) for name in self.slots(parameter.spec)}
            hyper = {name: objective.setting(address, name) for name in settings}
            parameters[address], new = _pair(self.update(gradients[address], parameter, old, objective.step, hyper))
            slots |= {(address, name): value for name, value in new.items()}
        return Update(parameters, slots)


def _pair(updated: Any) -> tuple[Node, Nodes]:
    pair = isinstance(updated, tuple) and len(updated) == 2 and isinstance(updated[1], Mapping)
    expect(pair and isinstance(updated[0], Node), "update() must return a pair, (node, slots by name)", updated)
    return updated  # type: ignore[no-any-return]


@define(eq=False)
class Transform(Settled):
    """Transform the gradients before the update (clip, penalise), all of them at once.

    Args:
        match: Pattern of the parameters concerned, relative to ``network.layers``; by default all.
    """

    match: str = field(default="**", kw_only=True)

    def concerned(self, gradients: Nodes, objective: Objective) -> dict[str, Node]:
        """Return the gradients selected by ``match``."""
        return {a: gradient for a, gradient in gradients.items() if matches(self.match, a, objective.tags)}

    @abstractmethod
    def apply(self, gradients: Nodes, objective: Objective, owner: str) -> Nodes:
        """Return the transformed gradients; read live fields with ``objective.setting(owner, name)``."""


class Schedule(Settled):
    """Scale a setting by a factor that is a function of the clock."""

    @abstractmethod
    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        """Return one factor per iteration, given the numbers of iterations and of whole epochs completed before it."""


@define(eq=False)
class Modifier(Settled):
    """Modify a parameter at the end of its update, inside the step (clip, max-norm).

    Args:
        match: Pattern of the parameters concerned, relative to ``network.layers``; by default all.
    """

    match: str = field(default="**", kw_only=True)

    @abstractmethod
    def modify(self, parameter: Node, settings: Nodes) -> Node:
        """Return the modified parameter; ``settings`` holds the live fields as scalars."""
