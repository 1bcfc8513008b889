"""The conformance suite for operators, to inherit in a plugin's tests, and what tests of hooks need.

::

    class TestMine(OperatorSuite):
        def make(self) -> Operator:
            return Mine()
"""

from __future__ import annotations

import re
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.clock import Moment, TimeStep, every
from sigma_kernel.contracts import (
    GradientOptimiser,
    Hook,
    HookContext,
    Media,
    Metric,
    Operator,
    RowLosses,
    Work,
    running,
)
from sigma_kernel.environment import Environment
from sigma_kernel.graph.node import Node, Spec
from sigma_testing.null import NullBackend
from sigma_testing.suite import Suite, alike
from sigma_training.data.dataset import Rows
from sigma_training.hooks.order import look_up
from sigma_training.minimisation import Plain
from sigma_training.trainer import expect_trainer


@define(eq=False, kw_only=True)
class Descent(GradientOptimiser):
    """Plain gradient descent."""

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Step against the gradient."""
        return parameter - hyper["learning_rate"] * gradient, {}


def small_environment(
    operator: Operator,
    seed: int = 0,
    rows: int = 23,
    splits: Sequence[str] = ("training", "validation"),
    **settings: Any,
) -> Environment:
    """Return an environment that fits a plane to ``rows`` points in batches of 5, on the null backend."""
    draw = np.random.default_rng(7)
    x = draw.normal(size=(rows, 3)).astype(np.float32)
    data = Rows({"inputs": x, "targets": x @ np.array([[1.0], [-2.0], [0.5]], np.float32)})
    environment = Environment("small", seed=seed)
    common = {"backend": NullBackend(), "operator": operator, "batch_size": 5, "epochs": inf}
    trainer = environment.create_trainer("trainer", **{**common, **settings})
    trainer.data = dict.fromkeys(splits, data)
    trainer.optimiser = Descent(learning_rate=0.05)
    trainer.network = Plain(
        lambda p, batch: f.mean(f.square(batch["inputs"] @ p["weights"] - batch["targets"])),
        {"weights": np.zeros((3, 1))},
        ("inputs", "targets"),
    )
    return environment


def state_bytes(trainer: running.Trainer) -> dict[str, bytes]:
    """Return every array of a trainer's state tree as bytes."""
    arrays = expect_trainer(trainer).session.snapshot().arrays
    return {name: value.tobytes() for name, value in arrays.items()}


@define(eq=False)
class Desk:
    """A hook context for tests: holds values to read, and records the hook's actions."""

    values: dict[str, Any] = field(factory=dict)
    moment: Moment = field(factory=Moment)
    memory: dict[str, Any] = field(factory=dict)
    commands: list[tuple[str, dict[str, Any]]] = field(factory=list)
    logged: list[str] = field(factory=list)
    done: list[str] = field(factory=list)
    folder: Path | None = None
    iteration: Any = None
    directions: dict[str, str] = field(factory=dict)
    media: dict[str, Media] = field(factory=dict)

    def direction(self, address: str) -> str:
        """Return which values at an address are better, as ``directions`` say."""
        return self.directions.get(address, "lower" if address.endswith("loss") else "")

    def read(self, address: str) -> Any:
        """Return the value at an address, or None; for a pattern, all values that match, or what is kept under it."""
        return self.values[address] if address in self.values else look_up(self.values, address)

    def write(self, name: str, data: bytes) -> Path | None:
        """Write a file, if there is a folder."""
        if self.folder is None:
            return None
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def publish(self, address: str, value: Any) -> None:
        """Store a value at an address; media beside the others."""
        (self.media if isinstance(value, Media) else self.values)[address] = value

    def command(self, command: str, **arguments: Any) -> None:
        """Record a command."""
        self.commands.append((command, arguments))

    def evaluate(self, on: str, metrics: Mapping[str, Metric]) -> dict[str, Any]:
        """Return 0.5 for the loss and every metric."""
        return dict.fromkeys(("loss", *metrics), 0.5)

    def losses(self, on: str, most: int | None = None) -> RowLosses:
        """Return losses of three rows."""
        losses = RowLosses(np.arange(3), np.array([0.5, 2.0, 0.25]), np.array([0, 1, 1]), np.array([0, 0, 1]))
        return losses if most is None else losses.worst(most)

    def ends(self, layer: str = "", section: str = "") -> tuple[Spec, Spec]:
        """Return specs of 3 x 4 inputs and 2 outputs."""
        return Spec((3, 4), "float32"), Spec((2,), "float32")

    def measure(self, metrics: Mapping[str, Metric]) -> None:
        """Accept any metric."""

    def excite(self, samples: np.ndarray, directions: np.ndarray, **at: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return outputs that sum the upper and the lower half of a sample, and their gradient."""
        halves = np.stack([np.arange(12).reshape(3, 4) < 6, np.arange(12).reshape(3, 4) >= 6]).astype(np.float32)
        return np.einsum("nhw,khw->nk", samples, halves), np.einsum("nk,khw->nhw", directions, halves)

    def generate(self, text: str, length: int = 200, temperature: float = 1.0, seed: int = 0) -> str:
        """Return the text again and again."""
        return (text * length)[:length]

    def keep(self) -> None:
        """Record the call."""
        self.done.append("keep")

    def bring_back(self) -> None:
        """Record the call."""
        self.done.append("bring_back")

    def log(self, text: str) -> None:
        """Record a message."""
        self.logged.append(text)


@define(eq=False)
class Sweep(Operator):
    """A minimal operator: bursts up to the next due point, for a number of epochs or until a stop."""

    epochs: int | None = None

    def train(self, work: Work) -> None:
        """Train."""
        while work.boundary() and (self.epochs is None or work.moment.epoch < self.epochs):
            work.advance(work.distance())
            work.settle()


@define(eq=False)
class Steered(Sweep):
    """Train iteration by iteration up to ``last``, and steer from a script, as a user would.

    ``script`` maps iterations to functions of the environment.
    """

    script: Mapping[int, Callable[[Environment], Any]] = field(factory=dict)
    last: int = 12
    environment: Environment | None = None
    _done: set[int] = field(factory=set, init=False)

    def train(self, work: Work) -> None:
        """Train and steer; each step of the script runs once, even after a rewind to before it."""
        while work.boundary():
            now = work.moment.iteration
            if now in self.script and now not in self._done:
                self._done.add(now)
                self.script[now](self.environment)  # type: ignore[arg-type]  # steered() sets it
            elif now < self.last:
                work.advance(1)
                work.settle()
            else:
                break


def steered_environment(
    script: Mapping[int, Callable[[Environment], Any]] | None = None, last: int = 12, **settings: Any
) -> Environment:
    """Return a small, prepared environment that is steered by a script."""
    operator = Steered(script=script or {}, last=last)
    operator.environment = small_environment(operator, **settings)
    operator.environment.prepare()
    return operator.environment


class Crash(BaseException):
    """Raised by a script to crash a run, of which nothing more is saved, as when its process is killed."""


def crash(sigma: Environment) -> None:
    """Crash the run."""
    raise Crash


def train_until_crash(sigma: Environment, folder: Path) -> Path:
    """Train in a directory until the run crashes; return its run folder."""
    sigma.folder = folder
    try:
        sigma.run()
    except Crash:
        assert sigma.run_folder is not None
        return sigma.run_folder
    raise AssertionError("the run did not crash")


def decisive(trainer: running.Trainer) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Return the state that determines the rest of the run, without the wall clock and the run's end."""
    values = dict(expect_trainer(trainer).session.snapshot().values)
    clock = {name: count for name, count in values["clock"].items() if name not in ("second", "start", "stop")}
    return state_bytes(trainer), {**values, "clock": clock, "progress": None}


class OperatorSuite(Suite):
    """Conformance tests of an operator: inherit, and override :meth:`make`."""

    @abstractmethod
    def make(self) -> Operator:
        """Return the operator under test."""

    def use(self) -> None:
        """Make it, and use it once."""
        with small_environment(self.make()) as sigma:
            sigma.trainer("trainer").fit(iterations=1)

    def test_training_stops_at_the_goal(self) -> None:
        """Return from train() when work.boundary() is False, and advance by work.distance() at most."""
        with small_environment(self.make()) as sigma:
            history = sigma.trainer("trainer").fit(epochs=3)
            moment = sigma.trainer("trainer").session.moment
        assert (moment.epoch, moment.iteration, moment.sample) == (3, 15, 69)
        assert len(history["training.loss"]) == 15

    def test_the_same_seed_gives_the_same_bits(self) -> None:
        """Merge shards in an order that depends on nothing else."""
        states = []
        for _ in range(2):
            with small_environment(self.make()) as sigma:
                sigma.trainer("trainer").fit(epochs=2)
                states.append(state_bytes(sigma.trainer("trainer")))
        assert alike(*states)

    def test_hooks_fire_exactly_when_they_are_due(self) -> None:
        """Call work.settle() after each work.advance(), by work.distance() at most."""
        fired: dict[str, list[tuple[int, int]]] = {"third": [], "epoch": []}
        hooks = {
            "third": Note(fired["third"], every=every(3, "iteration")),
            "epoch": Note(fired["epoch"], every=every(1, "epoch")),
        }
        with small_environment(self.make(), hooks=hooks) as sigma:
            sigma.trainer("trainer").fit(epochs=2)
        assert [iteration for iteration, _ in fired["third"]] == [3, 6, 9]
        assert fired["epoch"] == [(5, 1), (10, 2)]

    def test_an_environment_can_be_paused_stepped_resumed_and_stopped(self) -> None:
        """Call work.boundary() before each burst."""
        with small_environment(self.make(), hooks={"slow": Slow()}) as sigma:
            thread = threading.Thread(target=sigma.run)
            thread.start()
            wait_until(lambda: sigma.state == "running" and sigma.trainer("trainer").session.moment.iteration > 2)
            sigma.pause()
            at = sigma.trainer("trainer").session.moment.iteration
            sigma.step(3)
            wait_until(lambda: sigma.trainer("trainer").session.status == "paused")
            assert sigma.trainer("trainer").session.moment.iteration == at + 3
            sigma.go()
            sigma.stop()
            thread.join(60)
            assert not thread.is_alive()
            assert sigma.state == "stopped"

    def test_it_settles_once_after_each_burst_and_returns_at_the_end(self) -> None:
        """Call work.boundary(), work.advance() and work.settle() in turn; return once work.boundary() is False."""
        calls: list[str] = []
        with small_environment(_note_calls(self.make(), calls)) as sigma:
            sigma.trainer("trainer").fit(epochs=2)
        own = [name for name in calls if name in ("boundary", "advance", "settle")]
        turns = re.fullmatch("(boundary (advance settle )?+)*+", "".join(f"{name} " for name in own))
        assert turns, f"it calls {', '.join(own[:8])}, ... in place of boundary, advance, settle"

    def test_a_reset_starts_again_with_the_same_bits(self) -> None:
        """Keep no state of training on the operator."""
        with small_environment(self.make()) as sigma:
            trainer = sigma.trainer("trainer")
            trainer.fit(epochs=2)
            first = state_bytes(trainer)
            sigma.reset()
            assert trainer.session.moment.iteration == 0
            trainer.fit(epochs=2)
            assert alike(state_bytes(trainer), first)


LATE = 1.0  # seconds in which train() returns once training has ended


@define(eq=False)
class _Calls:
    """A work that notes which of its methods are called, and when training had ended."""

    work: Work
    calls: list[str]
    ended: float = inf

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self.work, name)

    def boundary(self) -> bool:
        self.calls.append("boundary")
        goes_on = self.work.boundary()
        self.ended = inf if goes_on else time.monotonic()
        return goes_on


def _note_calls(operator: Operator, calls: list[str]) -> Operator:
    """Return a copy of an operator that notes what it calls, and fails if it lingers after the end."""

    def train(self: Any, work: Work) -> None:
        noted = _Calls(work, calls)
        own.train(self, noted)
        late = time.monotonic() - noted.ended
        assert late < LATE, f"train() goes on for {late:.1f} seconds after the end"

    own, noting = type(operator), copy(operator)
    named = {"__module__": own.__module__, "__qualname__": own.__qualname__}
    noting.__class__ = type(own.__name__, (own,), {**named, "train": train, "__slots__": ()})
    return noting


@define(eq=False, kw_only=True)
class Note(Hook):
    """Record the moments at which it fires."""

    fired: list[tuple[int, int]] = field(kw_only=False)

    def fire(self, context: HookContext) -> None:
        """Record the iteration and the epoch."""
        self.fired.append((context.moment.iteration, context.moment.epoch))


@define(eq=False, kw_only=True)
class Slow(Hook):
    """Sleep after each iteration, to let other threads run."""

    every: TimeStep = every(1, "iteration")

    def fire(self, context: HookContext) -> None:
        """Sleep for two milliseconds."""
        time.sleep(0.002)


def wait_until(holds: Any, seconds: float = 60.0) -> None:
    """Wait until something holds; fail after so many seconds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.001)
