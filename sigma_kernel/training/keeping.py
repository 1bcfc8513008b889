"""The run folder of an environment: opened, filled, taken up again, and written to beside training."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from attrs import define, evolve, field

from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_kernel.training import folder, resuming
from sigma_kernel.training.checkpoint import Checkpoint, Say, recover
from sigma_kernel.training.saving import Saver, made_with
from sigma_kernel.training.trainer import Trainer

Fill = Callable[[Path], None]


@define(eq=False)
class Keeping:
    """What keeps the files of one run; without a folder there are none."""

    say: Say
    run: Path | None = None
    _claim: int | None = None  # holds the folder
    _savers: dict[str, Saver] = field(factory=dict)

    def open(self, parent: Path, name: str, fill: Fill) -> None:
        """Make a new run folder and fill it; a SigmaError, and no folder, if that cannot be."""
        run = folder.create(parent, name)
        try:
            fill(run)
        except SigmaStateError:
            shutil.rmtree(run, ignore_errors=True)
            raise
        self.run = run

    def resume(self, run: Path, trainers: Iterable[Trainer], edits: Sequence[str], fill: Fill, say: Say) -> None:
        """Take up a run folder: put every trainer where it stood, and write on from there."""
        if not run.is_dir():
            raise SigmaCheckpointError(f"{run}: is no folder. Give that of a run.")
        self.claim(run)
        self.run = run
        recover(run, say)
        if not (run / "journal.jsonl").exists():
            say(f"{run}: its journal is missing: what was done after the last checkpoint is lost")
        for trainer in trainers:
            trainer.records.early.clear()  # what is put back takes its place
            self.attach(trainer)
            resuming.resume(run, trainer.session, edits, partial(_made_with, trainer), say)
        if edits:
            fill(run)

    def attach(self, trainer: Trainer) -> None:
        """Let a trainer write into the run folder from now on."""
        if self.run is None or trainer.name in self._savers:
            return
        saver = Saver(self.run / "checkpoints" / trainer.name, self.say)
        saver.retain(trainer.session.runner.hooks.values())
        self._savers[trainer.name] = saver
        trainer.records.open(self.run)
        trainer.session.save_as = partial(_save, saver, trainer)
        trainer.session.forsake = saver.forsake

    def claim(self, run: Path | None) -> None:
        """Keep every other process out of a run folder, if there is one, while something is written into it."""
        if run is not None and self._claim is None:
            self._claim = folder.claim(run)

    def release(self) -> None:
        """Let others into the run folder."""
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None

    def wait(self) -> None:
        """Wait until nothing more will be written."""
        for saver in self._savers.values():
            saver.wait()

    def flush(self) -> None:
        """Wait until everything is written; raise SigmaCheckpointError if the newest checkpoint could not be."""
        for saver in self._savers.values():
            saver.flush()


def _save(saver: Saver, trainer: Trainer, state: Checkpoint) -> Path:
    saver.retain(trainer.session.runner.hooks.values())  # they may have changed
    state = evolve(state, made_with=_made_with(trainer))
    return saver.save(trainer.session.clock.moment.iteration, state)


def _made_with(trainer: Trainer) -> dict[str, str]:
    return made_with(trainer.backend_name, trainer.session.programs.backend.about)
