"""The context of a hook: what it may read, publish and command while it runs in the training thread."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from attrs import define, evolve, field

from sigma_kernel.arrays import protect
from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Hook, Metric, RowLosses
from sigma_kernel.encoding import unpack
from sigma_kernel.graph.node import Spec
from sigma_kernel.registry.addresses import literal
from sigma_training.history.recorder import Recorder
from sigma_training.hooks.background import Background, HookCall
from sigma_training.hooks.order import check_read, check_write, reads
from sigma_training.session import keeping
from sigma_training.session.collaborators import Commander
from sigma_training.session.state import Present
from sigma_training.session.timing import Timed
from sigma_training.step.steps import Iteration


class HookedRun(Protocol):
    """The current run, as the context of a hook needs it."""

    phases: dict[str, float]
    present: Present
    recorder: Recorder
    background: Background
    commands: Commander

    def lookup(self, address: str, scope: str = "") -> Any:
        """Return the value at an address, local values first."""

    def publish(self, address: str, value: Any) -> None:
        """Publish a value at an address."""

    def put(self, present: Present) -> None:
        """Put another value of the run in force."""

    def evaluate(
        self, on: str, metrics: Mapping[str, Metric], edited: bool = True, weights: str = ""
    ) -> dict[str, Any]:
        """Return the loss and the metrics over a split of the data."""

    def generate(self, *how: Any, weights: str = "") -> str:
        """Return the continuation of a text."""


@define(eq=False)
class HookView:
    """The context of one hook; a local scope is a prefix of addresses, such as ``workers.0.``."""

    run: HookedRun
    name: str
    scope: str = ""
    second: float | None = None  # of the journal, for a hook that depends on the wall clock
    hook: Hook = field(init=False)
    _memory: dict[str, Any] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Hold the hook and its memory, as the hook may detach itself."""
        present = self.run.present
        self.hook, self._memory = present.setup.order.hooks[self.name], present.state.memory[self.name]

    @property
    def moment(self) -> Moment:
        """Return the current moment; for a hook that depends on the wall clock, with the second at which it fired."""
        now = self.run.present.state.moment
        return now if self.second is None else evolve(now, second=self.second)

    @property
    def memory(self) -> dict[str, Any]:
        """Return the hook's own memory."""
        memory: dict[str, Any] = self.run.present.state.memory.get(self.name, self._memory)["hook"]
        return memory.setdefault(self.scope, {}) if self.scope else memory

    @property
    def folder(self) -> Path | None:
        """Return the run's folder, if it has one."""
        stored = self.run.recorder.stored
        return None if stored is None else stored.path

    def write(self, name: str, data: bytes) -> Path | None:
        """Write a file of the run, if it has a folder."""
        stored = self.run.recorder.stored
        return None if stored is None else stored.write(name, data, durable=False)

    def read(self, address: str) -> Any:
        """Return a value that the hook declared in ``reads``, or None if there is none yet."""
        check_read(self.name, self.hook, address)
        return protect(self.run.lookup(address, self.scope))

    def direction(self, address: str) -> str:
        """Return which values at an address are better."""
        return self.run.present.setup.direction(address)

    def publish(self, address: str, value: Any) -> None:
        """Publish a value under an address that the hook declared in ``writes``, unless it has detached itself."""
        check_write(self.name, self.hook, address, value)
        if self.run.present.setup.order.hooks.get(self.name) is self.hook:
            self.run.publish(self.scope + address, value)

    def command(self, command: str, **arguments: Any) -> None:
        """Apply a command at this boundary."""
        with self.run.recorder.on_behalf(self.name):
            self.run.commands.apply(self.run.commands.make(command, **arguments))

    def evaluate(self, on: str, metrics: Mapping[str, Metric]) -> dict[str, Any]:
        """Return the loss and the metrics over a split of the data."""
        return self.run.evaluate(on, metrics, weights=self.hook.weights)

    def losses(self, on: str, most: int | None = None) -> RowLosses:
        """Return the loss of each row of a split of the data."""
        now = self.run.present
        with Timed(self.run.phases, "evaluation"):
            return now.setup.evaluator.losses(now.steps(self.hook.weights), on, most)

    def ends(self, layer: str = "", section: str = "") -> tuple[Spec, Spec]:
        """Return the specs of one sample of an input section, and of one row of a layer's output."""
        return self.run.present.setup.model.ends(layer, section)

    def excite(self, samples: np.ndarray, directions: np.ndarray, **at: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return a layer's output for samples of an input section, and its slopes along directions."""
        now = self.run.present
        return now.setup.evaluator.excite(now.steps(self.hook.weights), samples, directions, **at)

    def generate(self, text: str, length: int = 200, temperature: float = 1.0, seed: int = 0) -> str:
        """Return the continuation of a text."""
        return self.run.generate(text, length, temperature, seed, weights=self.hook.weights)

    @property
    def iteration(self) -> Iteration | None:
        """Return the last iteration, if a hook is due that repeats it."""
        return self.run.present.last.iteration

    def keep(self) -> None:
        """Keep a copy of the parameters, of layer state, and of the optimiser's slots."""
        self.run.put(keeping.keep(self.run.present, self.name))

    def bring_back(self) -> None:
        """Restore the copy that was kept last."""
        self.run.put(keeping.restore_kept(self.run.present, self.name))

    def log(self, text: str) -> None:
        """Log a message for people."""
        self.run.recorder.log(text)

    # -- the background ------------------------------------------------------------------------------------------------
    def freeze(self) -> HookCall:
        """Return a background firing of the hook, on copies of everything that it declared."""
        hook, run, background = self.hook, self.run, self.run.background
        values: dict[str, Any] = {}
        for address in reads(hook):
            value = run.lookup(address, self.scope)
            values |= {address: value} if literal(address) else {**value, **run.lookup(self.scope + address)}
        return HookCall(
            self.name, self.scope, hook, self.moment, run.recorder.stored,
            known=deepcopy(values),
            fresh=background.fresh(self.moment),
            memory=deepcopy(self.memory),
            evaluator=background.evaluator,
            steps=run.present.copy_steps(hook.weights) if hook.splits else evolve(run.present.steps(), arrays={}),
            metrics=run.present.setup.metrics,
        )  # fmt: skip

    def apply(self, row: Mapping[str, Any]) -> None:
        """Apply the results of a background firing from its journal row."""
        if "memory" in row:
            self.memory.clear()
            self.memory.update(unpack(row["memory"]))
        for text in row["logged"]:
            self.log(text)
        for address, value in row["published"].items():
            self.publish(address, unpack(value))
        for command, arguments in row["commands"]:
            self.command(command, **unpack(arguments))
