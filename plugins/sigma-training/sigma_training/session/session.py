"""The session of a prepared trainer: its current run, and the parts that train it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field

from sigma_kernel.contracts import Arrays
from sigma_kernel.contracts.running import Host
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.registry.registry import Registry
from sigma_step.initial import Initial
from sigma_step.model import LAYERS
from sigma_training.history.recorder import Recorder
from sigma_training.hooks.background import Background
from sigma_training.session.applying import Applier
from sigma_training.session.checkpoint_policy import CheckpointPolicy
from sigma_training.session.current import CurrentRun
from sigma_training.session.hook_runner import HookRunner
from sigma_training.session.loop import Drive, TrainingLoop
from sigma_training.session.planning import accept
from sigma_training.session.recovery import Recovery
from sigma_training.session.replayer import Replayer
from sigma_training.session.snapshot import restore, take_snapshot
from sigma_training.session.state import Present, Setup


@define(eq=False, repr=False)
class Session(CurrentRun):
    """The current run of one prepared trainer, with the parts that act on it."""

    initial: Initial = field(kw_only=True)
    drive: Drive = field(kw_only=True)
    checkpoints: CheckpointPolicy = field(init=False)
    hooks: HookRunner = field(init=False)
    commands: Applier = field(init=False)
    replayer: Replayer = field(init=False)
    loop: TrainingLoop = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Put the parts together; each knows those that it calls."""
        recovery = Recovery()
        self.checkpoints = CheckpointPolicy(self)
        self.hooks = HookRunner(self, self.checkpoints)
        self.commands = Applier(self, self.initial, self.hooks, self.checkpoints, recovery)
        self.replayer = Replayer(self, self.hooks)
        self.loop = TrainingLoop(self, self.hooks, self.checkpoints, self.replayer, recovery, self.drive)

    def snapshot(self) -> Checkpoint:
        """Return a copy of the whole run: arrays by name, and everything else as JSON values."""
        return take_snapshot(self.present)

    def restore(self, saved: Checkpoint, check: Callable[[Checkpoint, Arrays], Any] = accept) -> None:
        """Restore a snapshot, with its components; training in progress keeps its own progress.

        Whatever ``check`` raises about the snapshot and the arrays of these components leaves everything as it was.
        """
        self.commands.restore(saved, check=check)

    def close(self) -> None:
        """End training if it is in progress, and stop all background work."""
        if self.queue.busy:
            self.commands.send(self.commands.make("stop"))
        self.setup.close()
        self.background.close()


def build_session(
    setup: Setup, initial: Initial, recorder: Recorder, host: Host, registry: Registry, drive: Drive
) -> Session:
    """Return the session of a setup: copy the initial state to the device, and bind every address."""
    present = Present(setup, restore(Checkpoint(initial.arrays(), {}), setup))
    background = Background(setup.evaluator.silent_copy(), recorder.log)
    session = Session(present, recorder, registry, background, host, initial=initial, drive=drive)
    for placed in setup.model.network.layers:
        registry.branch(f"{LAYERS}{placed.name}", placed.kind)
    session.open()
    return session
