"""The run folder of an environment: created, filled, resumed, and written to in the background."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from attrs import define, field

from sigma_kernel.errors import SigmaStateError
from sigma_kernel.training.checkpoints.format import Log
from sigma_kernel.training.checkpoints.writer import Saver
from sigma_kernel.training.history.journal import Journal, Lines
from sigma_kernel.training.runs import files as folder
from sigma_kernel.training.session.loop import Session

Fill = Callable[[Path], None]


@define(eq=False)
class RunFolder:
    """The files of one run; before the folder is created or resumed, there are none."""

    log: Log
    run: Path | None = None
    _claim: int | None = None  # holds the folder
    _savers: dict[str, Saver] = field(factory=dict)
    journal: Journal = field(factory=Journal)
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

    def reopen(self, run: Path, text: str | None, fill: Fill, missing: Sequence[str]) -> None:
        """Write into a folder that was claimed; ``missing`` lines are added to its journal.

        With a ``text``, that is the configuration from now on: rows of the journal say so before :meth:`edited`.
        """
        text = folder.get_bytes(run / "config.toml").decode() if text is None else text
        self._write_into(run, text, fill, missing)

    def edited(self) -> None:
        """Write the present configuration, once the journal is on the disk."""
        assert self.run is not None
        self.journal.flush()
        folder.put_text(self.run / "config.toml", self._text)
        self._fill(self.run)

    def _write_into(self, run: Path, text: str, fill: Fill, lines: Sequence[str] = ()) -> None:
        """Open the journal, to which the missing ``lines`` are added, and the metrics."""
        self.run, self._text, self._fill = run, text, fill
        self.journal = Journal(run / "journal.jsonl", self.log, self._mend, folder.digest(text.encode()), lines)
        self._metrics = Lines(run / "metrics.jsonl", self.log, self._mend)

    def _mend(self) -> None:
        """Create again what somebody removed from the run folder; checkpoints come with the next one."""
        assert self.run is not None  # else nothing is written
        if not self.run.is_dir():
            self.run.mkdir(parents=True)
            if self._claim is not None:
                self.release()
                self.claim(self.run)
        if not (self.run / "config.toml").exists():
            folder.put_text(self.run / "config.toml", self._text)
        self._fill(self.run)

    def attach(self, session: Session) -> None:
        """Let a session write into the run folder from now on."""
        name = session.setup.name
        if self.run is None or name in self._savers:
            return
        self._savers[name] = Saver(self.run / "checkpoints" / name, self.log, self.check)
        # while nobody else writes: early rows come first
        session.ask(partial(session.recorder.open, self.journal, self._metrics))
        session.attach(self._savers[name])

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
        return self.journal.durable()

    def wait(self) -> None:
        """Wait until nothing more will be written."""
        for saver in self._savers.values():
            saver.wait()

    def flush(self) -> None:
        """Wait until everything is written; raise SigmaCheckpointError if the newest checkpoint could not be."""
        for saver in self._savers.values():
            saver.flush()
