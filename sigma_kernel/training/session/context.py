"""The context of a hook while it runs: read, publish, command, evaluate, log."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from attrs import define, field

from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Hook, Metric
from sigma_kernel.graph.node import Spec
from sigma_kernel.registry.addresses import literal
from sigma_kernel.training.checkpoints.encoding import unpacked
from sigma_kernel.training.commands.types import Command, command as made
from sigma_kernel.training.history.recorder import Recorder
from sigma_kernel.training.hooks.background import Background, Firing
from sigma_kernel.training.hooks.order import check_read, check_write, reads
from sigma_kernel.training.session.setup import Setup
from sigma_kernel.training.session.state import RunState
from sigma_kernel.training.step.iteration import Iteration
from sigma_kernel.training.step.model import SLOTS


class Host(Protocol):
    """The session as contexts use it."""

    setup: Setup
    state: RunState
    recorder: Recorder
    background: Background

    @property
    def iteration(self) -> Iteration | None:
        """Return the last iteration, if a hook is due that repeats it."""

    def act(self, command: Command) -> Moment:
        """Apply a command now."""

    def host(self, name: str) -> np.ndarray:
        """Return a copy of an array of the state."""

    def lookup(self, address: str, scope: str = "") -> Any:
        """Return the value at an address, or None."""

    def publish(self, address: str, value: Any) -> None:
        """Publish a value."""

    def evaluate(self, on: str, metrics: Mapping[str, Metric]) -> dict[str, Any]:
        """Return the loss and the metrics over a split of the data."""

    def keep(self, hook: str) -> None:
        """Keep a copy of the parameters for a hook."""

    def bring_back(self, hook: str) -> None:
        """Restore the copy that was kept last for a hook."""


@define(eq=False)
class HookView:
    """The context of one hook; a local scope is a prefix of addresses, such as ``workers.0.``."""

    session: Host
    name: str
    scope: str = ""
    hook: Hook = field(init=False)
    _memory: dict[str, Any] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Hold the hook and its memory, as the hook may detach itself."""
        self.hook, self._memory = self.session.setup.order.hooks[self.name], self.session.state.memory[self.name]

    @property
    def moment(self) -> Moment:
        """Return the current moment."""
        return self.session.state.moment

    @property
    def memory(self) -> dict[str, Any]:
        """Return the hook's own memory."""
        memory: dict[str, Any] = self.session.state.memory.get(self.name, self._memory)["hook"]
        return memory.setdefault(self.scope, {}) if self.scope else memory

    @property
    def folder(self) -> Path | None:
        """Return the run's folder, if it has one."""
        path = self.session.recorder.journal.path
        return None if path is None else path.parent

    def read(self, address: str) -> Any:
        """Return a value that the hook declared in ``reads``, or None if there is none yet."""
        check_read(self.name, self.hook, address)
        return self.session.lookup(address, self.scope)

    def publish(self, address: str, value: Any) -> None:
        """Publish a value under an address that the hook declared in ``writes``, unless it has detached itself."""
        check_write(self.name, self.hook, address)
        if self.session.setup.order.hooks.get(self.name) is self.hook:
            self.session.publish(self.scope + address, value)

    def command(self, command: str, **arguments: Any) -> None:
        """Apply a command at this boundary."""
        with self.session.recorder.on_behalf(self.name):
            self.session.act(made(command, arguments))

    def evaluate(self, on: str, metrics: Mapping[str, Metric]) -> dict[str, Any]:
        """Return the loss and the metrics over a split of the data."""
        return self.session.evaluate(on, metrics)

    def ends(self) -> tuple[Spec, Spec]:
        """Return the specs of one sample of the first input, and of one row of the first output."""
        return self.session.setup.model.ends()

    def excite(self, samples: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the first output for samples of the first input, and its slopes along directions."""
        state = self.session.state
        steer = partial(state.live.at, now=state.moment)
        return self.session.setup.evaluator.excite(state.arrays, steer, samples, directions)

    @property
    def iteration(self) -> Iteration | None:
        """Return the last iteration, if a hook is due that repeats it."""
        return self.session.iteration

    def keep(self) -> None:
        """Keep a copy of the parameters, of layer state, and of the optimiser's slots."""
        self.session.keep(self.name)

    def bring_back(self) -> None:
        """Restore the copy that was kept last."""
        self.session.bring_back(self.name)

    def log(self, text: str) -> None:
        """Log a message for people."""
        self.session.recorder.log(text)

    # -- the background ------------------------------------------------------------------------------------------------
    def freeze(self) -> Firing:
        """Return a background firing of the hook, on copies of everything that it declared."""
        state, hook = self.session.state, self.hook
        known: dict[str, Any] = {}
        for address in reads(hook):
            found = self.session.lookup(address, self.scope)
            known |= {address: found} if literal(address) else {**found, **self.session.lookup(self.scope + address)}
        arrays = {n: self.session.host(n) for n in state.arrays if hook.splits and not n.startswith(SLOTS)}
        return Firing(
            self.name, self.scope, hook, self.moment, self.folder,
            known=deepcopy(known),
            memory=deepcopy(self.memory),
            evaluator=self.session.background.evaluator,
            arrays=arrays,
            steer=partial(state.live.at, now=self.moment),
        )  # fmt: skip

    def apply(self, row: Mapping[str, Any]) -> None:
        """Apply the results of a background firing from its journal row."""
        if "memory" in row:
            self.memory.clear()
            self.memory.update(unpacked(row["memory"]))
        for text in row["logged"]:
            self.log(text)
        for address, value in row["published"].items():
            self.publish(address, unpacked(value))
        for command, arguments in row["commands"]:
            self.command(command, **unpacked(arguments))
