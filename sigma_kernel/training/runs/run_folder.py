"""The run folder of an environment: opened, filled, taken up again, and written to beside training."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from attrs import define, evolve, field

from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_kernel.training.checkpoints.format import Checkpoint, Say
from sigma_kernel.training.checkpoints.store import recover
from sigma_kernel.training.checkpoints.writer import Saver
from sigma_kernel.training.history.journal import Journal, Lines
from sigma_kernel.training.runs import files as folder, resume as resuming
from sigma_kernel.training.runs.compatibility import made_with
from sigma_kernel.training.trainer import Trainer

Fill = Callable[[Path], None]


@define(eq=False)
class Keeping:
    """What keeps the files of one run; without a folder there are none."""

    say: Say
    run: Path | None = None
    _claim: int | None = None  # holds the folder
    _savers: dict[str, Saver] = field(factory=dict)
    _journal: Journal = field(factory=Journal)
    _metrics: Lines = field(factory=Lines)
    _fill: Fill = field(default=lambda run: None)
    _text: str = ""  # of config.toml

    def open(self, parent: Path, name: str, text: str, fill: Fill) -> None:
        """Make a new run folder and fill it; a SigmaError, and no folder, if that cannot be."""
        run = folder.create(parent, name)
        try:
            folder.put_text(run / "config.toml", text)
            fill(run)
        except SigmaStateError:
            shutil.rmtree(run, ignore_errors=True)
            raise
        self._write_into(run, text, fill)

    def resume(
        self, run: Path, trainers: Mapping[str, Trainer], edits: Sequence[str], text: str, fill: Fill, say: Say,
        paused: bool,
    ) -> None:  # fmt: skip
        """Take up a run folder: put every trainer where it stood, and write on from there.

        With ``edits``, ``text`` is the configuration from now on: rows say so before the file does.
        """
        if not run.is_dir():
            raise SigmaCheckpointError(f"{run}: is no folder. Give that of a run.")
        self.claim(run)
        recover(run, say)
        lines, more = resuming.history(run, trainers, say)
        text = text if edits else folder.get_bytes(run / "config.toml").decode()
        self._write_into(run, text, fill, more)
        for trainer in trainers.values():
            trainer.records.early.clear()  # what is put back takes its place
            self.attach(trainer)
            about = [*lines, *more], self._journal.configuration, edits
            resuming.resume(run, trainer.session, *about, partial(_made_with, trainer), say, paused)
        if edits:
            self._journal.flush()
            folder.put_text(run / "config.toml", text)
            fill(run)

    def _write_into(self, run: Path, text: str, fill: Fill, lines: Sequence[str] = ()) -> None:
        """Open the files that grow; ``lines`` are missing in the journal."""
        self.run, self._text, self._fill = run, text, fill
        self._journal = Journal(run / "journal.jsonl", self.say, self._mend, folder.digest(text.encode()), lines)
        self._metrics = Lines(run / "metrics.jsonl", self.say, self._mend)

    def _mend(self) -> None:
        """Make the run folder again as far as somebody removed it; checkpoints come with the next one."""
        assert self.run is not None  # else nothing is written
        if not self.run.is_dir():
            self.run.mkdir(parents=True)
            if self._claim is not None:
                self.release()
                self.claim(self.run)
        if not (self.run / "config.toml").exists():
            folder.put_text(self.run / "config.toml", self._text)
        self._fill(self.run)

    def attach(self, trainer: Trainer) -> None:
        """Let a trainer write into the run folder from now on."""
        if self.run is None or trainer.name in self._savers:
            return
        saver = Saver(self.run / "checkpoints" / trainer.name, self.say, self.check)
        saver.retain(trainer.session.runner.hooks.values())
        self._savers[trainer.name] = saver
        # while nobody else writes: what came early stays first
        trainer.session.control.ask(partial(trainer.records.open, self._journal, self._metrics))
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

    def check(self) -> SigmaStateError | None:
        """Put back what is missing in the folder, bring all rows to the disk; return why they do not get there."""
        return self._journal.durable()

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
    state = evolve(state, made_with=_made_with(trainer), chain=trainer.records.journal.chain(trainer.name))
    return saver.save(trainer.session.clock.moment.iteration, state)


def _made_with(trainer: Trainer) -> dict[str, str]:
    return made_with(trainer.backend_name, trainer.session.programs.backend.about)
