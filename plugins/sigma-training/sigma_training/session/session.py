"""The session of a prepared trainer: the parts that train it, and what others read and ask of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Arrays
from sigma_kernel.contracts.commanding import Command
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.registry.registry import Registry
from sigma_training.history.recorder import Recorder
from sigma_training.hooks.background import Background
from sigma_training.session.applying import Applier
from sigma_training.session.checkpoint_policy import CheckpointPolicy
from sigma_training.session.current import CurrentRun
from sigma_training.session.hook_runner import HookRunner
from sigma_training.session.loop import TrainingLoop
from sigma_training.session.planning import accept
from sigma_training.session.progress import TrainingProgress
from sigma_training.session.queue import Queue, Request
from sigma_training.session.readings import Readings
from sigma_training.session.recovery import Recovery
from sigma_training.session.replayer import Replayer
from sigma_training.session.snapshot import restore, take_snapshot
from sigma_training.session.state import Present, RunState, Setup
from sigma_training.step.initial import Initial
from sigma_training.step.model import LAYERS
from sigma_training.step.steps import Steps


@frozen(eq=False, kw_only=True, repr=False)
class Session:
    """One prepared trainer: its current run, and the parts that act on it."""

    initial: Initial
    current: CurrentRun
    checkpoints: CheckpointPolicy
    hooks: HookRunner
    commands: Applier
    replayer: Replayer
    loop: TrainingLoop
    readings: Readings = field(init=False)

    @readings.default
    def _(self) -> Readings:
        return Readings(self.current)

    # -- the run -------------------------------------------------------------------------------------------------------
    @property
    def setup(self) -> Setup:
        """Return the setup."""
        return self.current.setup

    @property
    def state(self) -> RunState:
        """Return the state."""
        return self.current.state

    @property
    def progress(self) -> TrainingProgress:
        """Return the progress of training."""
        return self.current.progress

    @property
    def moment(self) -> Moment:
        """Return the current moment."""
        return self.current.moment

    @property
    def status(self) -> str:
        """Return prepared, running, paused, stopped or failed."""
        return self.current.status

    @property
    def can_undo(self) -> bool:
        """Return whether a command can be undone."""
        return bool(self.state.undo)

    def steps(self, weights: str = "") -> Steps:
        """Return the steps that compute iterations from the state, or evaluate the weights of a modifier."""
        return self.current.present.steps(weights)

    def host(self, name: str) -> np.ndarray:
        """Return a copy of an array of the state; for the training thread, or inside a request."""
        return self.current.host(name)

    # -- what it shares with others ------------------------------------------------------------------------------------
    @property
    def recorder(self) -> Recorder:
        """Return the recorder: journal, metrics, log."""
        return self.current.recorder

    @property
    def registry(self) -> Registry:
        """Return the addresses of the trainer."""
        return self.current.registry

    @property
    def queue(self) -> Queue:
        """Return the requests to the training thread."""
        return self.current.queue

    # -- requests ------------------------------------------------------------------------------------------------------
    def send(self, command: Command) -> Request:
        """Queue a command for the next boundary; the request's result is the moment at which it was applied."""
        return self.commands.send(command)

    def post(self, command: Command) -> None:
        """Queue a command for the next boundary without waiting for a lock, from a signal handler for instance."""
        self.commands.post(command)

    def ask(self, question: Callable[[], Any]) -> Any:
        """Evaluate a function of the run between bursts, and return its result."""
        return self.current.ask(question)

    def snapshot(self) -> Checkpoint:
        """Return a copy of the whole run: arrays by name, and everything else as JSON values."""
        return take_snapshot(self.current.present)

    def restore(self, saved: Checkpoint, check: Callable[[Checkpoint, Arrays], Any] = accept) -> None:
        """Restore a snapshot, with its components; training in progress keeps its own progress.

        Whatever ``check`` raises about the snapshot and the arrays of these components leaves everything as it was.
        """
        self.commands.restore(saved, check=check)

    def close(self) -> None:
        """End training if it is in progress, and stop all background work."""
        if self.queue.busy:
            self.send(self.commands.make("stop"))
        self.setup.close()
        self.current.background.close()


def build_session(setup: Setup, initial: Initial, recorder: Recorder, registry: Registry) -> Session:
    """Return the session of a setup: copy the initial state to the device, and bind every address."""
    present = Present(setup, restore(Checkpoint(initial.arrays(), {}), setup))
    current = CurrentRun(present, recorder, registry, Background(setup.evaluator.silent_copy(), recorder.log))
    recovery, checkpoints = Recovery(), CheckpointPolicy(current)
    hooks = HookRunner(current, checkpoints)
    commands = Applier(current, initial, hooks, checkpoints, recovery)
    replayer = Replayer(current, hooks, commands)
    loop = TrainingLoop(current, hooks, checkpoints, commands, replayer, recovery)
    for placed in setup.model.network.layers:
        registry.branch(f"{LAYERS}{placed.name}", placed.kind)
    current.open(commands)
    return Session(
        initial=initial,
        current=current,
        checkpoints=checkpoints,
        hooks=hooks,
        commands=commands,
        replayer=replayer,
        loop=loop,
    )
