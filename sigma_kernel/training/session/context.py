"""What hooks see of a session, and may do with it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field

from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Hook, Metric
from sigma_kernel.graph.node import Spec
from sigma_kernel.registry.addresses import literal
from sigma_kernel.training.checkpoints.encoding import unpacked
from sigma_kernel.training.commands import types as commands
from sigma_kernel.training.hooks.background import Firing
from sigma_kernel.training.hooks.order import check_read, check_write, reads
from sigma_kernel.training.session.state import State
from sigma_kernel.training.step.iteration import Iteration
from sigma_kernel.training.step.live import Live
from sigma_kernel.training.step.model import LAYERS, OPTIMISER, SLOTS


@define(eq=False)
class Context:
    """What one hook sees of its session while it runs; a local scope is a prefix of addresses, ``workers.0.``."""

    session: State
    name: str
    scope: str = ""
    hook: Hook = field(init=False)
    _entry: dict[str, Any] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Hold the hook and what it remembers, which it may detach itself."""
        self.hook, self._entry = self.session.runner.hooks[self.name], self.session.runner.memory[self.name]

    @property
    def moment(self) -> Moment:
        """Return the present moment."""
        return self.session.clock.moment

    @property
    def memory(self) -> dict[str, Any]:
        """Return the hook's own memory."""
        memory: dict[str, Any] = self.session.runner.memory.get(self.name, self._entry)["hook"]
        return memory.setdefault(self.scope, {}) if self.scope else memory

    @property
    def folder(self) -> Path | None:
        """Return the run's folder, if it has one."""
        path = self.session.records.journal.path
        return None if path is None else path.parent

    def read(self, address: str) -> Any:
        """Return a value that the hook declared in ``reads``, or None if there is none yet."""
        check_read(self.name, self.hook, address)
        return self.session.lookup(address, self.scope)

    def publish(self, address: str, value: Any) -> None:
        """Publish a value under an address that the hook declared in ``writes``, unless it has detached itself."""
        check_write(self.name, self.hook, address)
        if self.session.runner.hooks.get(self.name) is self.hook:
            self.session.publish(self.scope + address, value)
            self.session.show(self.scope + address)

    def command(self, command: str, **arguments: Any) -> None:
        """Let a command act at this boundary."""
        with self.session.chronicle.on_behalf(self.name):
            self.session.act(self.session, commands.command(command, arguments))

    def evaluate(self, on: str, metrics: Mapping[str, Metric]) -> dict[str, Any]:
        """Return the loss and the metrics over a split of the data."""
        return self.session.evaluate(on, metrics)

    def ends(self) -> tuple[Spec, Spec]:
        """Return what one sample of the first input is, and one row of the first output."""
        return self.session.model.ends()

    def excite(self, samples: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the first output for samples of the first input, and the slopes of it along directions."""
        session = self.session
        return session.evaluator.excite(session.arrays, session.steer, samples, directions)

    @property
    def iteration(self) -> Iteration | None:
        """Return the last iteration, where a hook is due that repeats it."""
        return self.session.repeatable

    def keep(self) -> None:
        """Keep a copy of the parameters, of layer state, and of what the optimiser goes on from."""
        names = [name for name in self.session.arrays if name.startswith((LAYERS, OPTIMISER))]
        self.session.kept.update({f"kept.{self.name}.{name}": self.session.host(name) for name in names})

    def bring_back(self) -> None:
        """Put back what was kept last."""
        place, kept = self.session.programs.backend.to_device, self.session.kept
        names = [name for name in self.session.arrays if f"kept.{self.name}.{name}" in kept]
        self.session.arrays.update({name: place(kept[f"kept.{self.name}.{name}"]) for name in names})

    def tell(self, text: str) -> None:
        """Say something to the people who watch."""
        self.session.records.say(text)

    # -- the background ------------------------------------------------------------------------------------------------
    def freeze(self) -> Firing:
        """Return copies of all that the hook declared, for it to run on while training goes on."""
        session, hook = self.session, self.hook
        known: dict[str, Any] = {}
        for address in reads(hook):
            found = session.lookup(address, self.scope)
            known |= {address: found} if literal(address) else {**found, **session.lookup(self.scope + address)}
        arrays = {n: session.host(n) for n in session.arrays if hook.splits and not n.startswith(SLOTS)}
        live = Live(session.live.values if hook.splits else {}, session.live.dtype)  # else nothing can be evaluated
        live.restore(session.live.base)
        return Firing(
            self.name, self.scope, hook, self.moment, self.folder,
            known=deepcopy(known),
            memory=deepcopy(self.memory),
            evaluator=session.background.evaluator,
            arrays=arrays,
            steer=partial(live.at, now=self.moment),
        )  # fmt: skip

    def do_again(self, row: Mapping[str, Any]) -> None:
        """Do what a firing in the background did, as its row in the journal says."""
        if "memory" in row:
            self.memory.clear()
            self.memory.update(unpacked(row["memory"]))
        for text in row["told"]:
            self.tell(text)
        for address, value in row["published"].items():
            self.publish(address, unpacked(value))
        for command, arguments in row["commands"]:
            self.command(command, **unpacked(arguments))
