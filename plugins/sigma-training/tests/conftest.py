"""Small layers and optimisers for these tests, and an environment with every kind of state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import (
    Context,
    CostLayer,
    GradientOptimiser,
    Initialiser,
    Layer,
    Metric,
    Outputs,
    Parameter,
    Slot,
    live,
)  # fmt: skip
from sigma_kernel.environment import Environment
from sigma_kernel.graph.node import Node, Spec
from sigma_testing.steering import Sweep, small_environment


@define(eq=False)
class Input(Layer):
    section: str = "inputs"
    role: ClassVar[str] = "input"

    def forward(self, context: Context, x: Node) -> Node:
        return x


class Spread(Initialiser):
    """Normal random numbers."""

    def values(self, address: str, parameter: Parameter, draws: Any) -> np.ndarray:
        return np.asarray(draws.normal(parameter.shape, deviation=0.5))


@define(eq=False)
class Dense(Layer):
    units: int

    def parameters(self, x: Spec) -> Mapping[str, Parameter]:
        return {"weights": Parameter((x.shape[-1], self.units), Spread()), "bias": Parameter((self.units,), 0.1)}

    def forward(self, context: Context, x: Node) -> Node:
        return f.tanh(x @ context.parameters["weights"] + context.parameters["bias"])


@define(eq=False)
class Dropout(Layer):
    rate: float = live(0.3, low=0.0, below=1.0)

    def forward(self, context: Context, x: Node) -> Node:
        return context.key.dropout(x, context.live["rate"]) if context.training and context.key else x


@define(eq=False)
class Track(Layer):
    """Returns its input unchanged, and tracks a running mean of it."""

    def state(self, x: Spec) -> Mapping[str, Parameter]:
        return {"mean": Parameter(x.shape, 0.0)}

    def forward(self, context: Context, x: Node) -> Node | Outputs:
        if not context.training:
            return x
        return Outputs(x, {"mean": 0.9 * context.state["mean"] + 0.1 * f.mean(x, axis=0)})


@define(eq=False, kw_only=True)
class SquaredDifference(CostLayer):
    def forward(self, context: Context, output: Node, targets: Node) -> Node:
        return f.mean(f.square(output - targets))


@define(eq=False, kw_only=True)
class Momentum(GradientOptimiser):
    """Gradient descent with momentum."""

    learning_rate: float = live(0.1, low=0.0)
    momentum: float = live(0.9, low=0.0, below=1.0)

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        return {"velocity": Slot()}

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        velocity = hyper["momentum"] * slots["velocity"] - hyper["learning_rate"] * gradient
        return parameter + velocity, {"velocity": velocity}


class Distance(Metric):
    """The mean absolute difference."""

    def totals(self, prediction: Node, targets: Node) -> Node:
        return f.sum(f.abs(prediction - targets))


@pytest.fixture
def layers() -> SimpleNamespace:
    """Return the small layers by name."""
    return SimpleNamespace(Input=Input, Dense=Dense, Dropout=Dropout, Track=Track, SquaredDifference=SquaredDifference)


@pytest.fixture
def metric() -> Metric:
    """Return the mean absolute difference."""
    return Distance()


@pytest.fixture
def deep() -> Callable[..., Environment]:
    """Return a function that makes an environment: 23 rows by 5, two layers, dropout, running means, momentum."""

    def make(operator: Any = None, seed: int = 0, rows: int = 23, **settings: Any) -> Environment:
        optimiser = settings.pop("optimiser", None) or Momentum()
        environment = small_environment(operator or Sweep(), seed, rows, **settings)
        trainer = environment.trainer("trainer")
        trainer.network = Input() + Dense(4) + Track() + Dropout() + Dense(1) + SquaredDifference()
        trainer.optimiser = optimiser
        return environment

    return make


@pytest.fixture
def momentum() -> type[Momentum]:
    """Return the class of the optimiser, for other settings."""
    return Momentum


PARTS = """
from importlib import import_module

import numpy as np
from attrs import define

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, Iterator
from sigma_testing.null import NullBackend
from sigma_testing.steering import Descent

Momentum = import_module("CONFTEST").Momentum


@define(eq=False, kw_only=True)
class Count(Hook):
    every: TimeStep = every(1, "iteration")
    into: str = "count"
    by: int = 1

    @property
    def writes(self):
        return (self.into,)

    def fire(self, context):
        context.memory["count"] = context.memory.get("count", 0) + self.by
        context.publish(self.into, context.memory["count"])


@define(eq=False, kw_only=True)
class Follow(Hook):
    every: TimeStep = every(1, "iteration")
    after: str = "count"
    into: str = "followed"

    @property
    def reads(self):
        return (self.after,)

    @property
    def writes(self):
        return (self.into,)

    def fire(self, context):
        count = context.read(self.after) or 0
        context.publish(self.into, count)
        context.command("set", pattern="optimiser.learning_rate", value=0.05 / (1 + count))


@define(eq=False, kw_only=True)
class Keep(Hook):
    every: TimeStep = every(1, "iteration")

    def fire(self, context):
        context.keep()


@define(eq=False, kw_only=True)
class Saves(Hook):
    every: TimeStep = every(2, "iteration")

    @property
    def retains(self):
        return {"last": 1}

    def fire(self, context):
        context.command("save")


@define(eq=False, kw_only=True)
class Knob(Hook):
    every: TimeStep = every(1, "epoch")
    called: str = "knob"

    @property
    def settable(self):
        return {self.called: 1.0}

    def fire(self, context):
        pass


@define(eq=False, kw_only=True)
class Remove(Hook):
    every: TimeStep = every(1, "iteration")
    name: str = "count"
    priority: int = 1

    def fire(self, context):
        if context.moment.iteration == 3:
            context.command("detach", name=self.name)


class Plain(Descent):
    pass


class Heavy(Momentum):
    pass


class Placed(np.ndarray):
    pass


class Other(NullBackend):
    def to_device(self, host):
        return np.array(host).view(Placed)


class Half(NullBackend):
    dtypes = frozenset({"float16"})


class Broken(NullBackend):
    def lower(self, graph, donate):
        raise RuntimeError("no compiler")


class Backwards(Iterator):
    def indices(self, seed, epoch, block, rows):
        return np.arange(rows)[::-1]
"""


@pytest.fixture
def shop(distribution: Callable[..., Any]) -> None:
    """Install small components by name: hooks, optimisers, backends, an iterator."""
    names = {
        "hook": ("Count", "Follow", "Keep", "Knob", "Remove", "Saves"), "optimiser": ("Plain", "Heavy"),
        "backend": ("Other", "Half", "Broken"), "iterator": ("Backwards",),
    }  # fmt: skip
    records = [f"{kind!r}, {n.lower()!r}, 'acme_shop.parts:{n}', 'It.'" for kind, all_ in names.items() for n in all_]
    distribution("acme-shop", *records, parts=PARTS.replace("CONFTEST", __name__))
