"""The run folder of an environment: create or reopen it, lock it, and write to it in the background."""

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
    _claim: int | None = None  # the lock on the folder
    _savers: dict[str, Saver] = field(factory=dict)
    journal: Journal = field(factory=Journal)
    _metrics: Lines = field(factory=Lines)
    _fill: Fill = field(default=lambda run: None)
    _text: str = ""  # of config.toml

    def open(self, parent: Path, name: str, text: str, fill: Fill) -> None:
        """Create a new run folder and fill it; on failure raise a SigmaError, and leave no folder."""
        run = folder.create(parent, name)
        try:
            folder.put_text(run / "config.toml", text)
            fill(run)
        except SigmaStateError:
            shutil.rmtree(run, ignore_errors=True)
            raise
        self._write_into(run, text, fill)

    def reopen(self, run: Path, text: str | None, fill: Fill, missing: Sequence[str]) -> None:
        """Write to an existing, claimed folder; append ``missing`` lines to its journal.

        A ``text`` is the new configuration: the journal names it first, :meth:`edited` writes the file.
        """
        text = folder.get_bytes(run / "config.toml").decode() if text is None else text
        self._write_into(run, text, fill, missing)

    def edited(self) -> None:
        """Write the current configuration, once the journal is on the disk."""
        assert self.run is not None
        self.journal.flush()
        folder.put_text(self.run / "config.toml", self._text)
        self._fill(self.run)

    def _write_into(self, run: Path, text: str, fill: Fill, lines: Sequence[str] = ()) -> None:
        """Open the journal, with the missing ``lines`` appended, and the metrics."""
        self.run, self._text, self._fill = run, text, fill
        self.journal = Journal(run / "journal.jsonl", self.log, self._mend, folder.digest(text.encode()), lines)
        self._metrics = Lines(run / "metrics.jsonl", self.log, self._mend)

    def _mend(self) -> None:
        """Restore files deleted from the run folder; the next checkpoint restores its own folder."""
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
        """Let a session write to the run folder from now on."""
        name = session.setup.name
        if self.run is None or name in self._savers:
            return
        self._savers[name] = Saver(self.run / "checkpoints" / name, self.log, self.check)
        # while no other thread writes: early rows come first
        session.ask(partial(session.recorder.open, self.journal, self._metrics))
        session.attach(self._savers[name])

    def claim(self, run: Path | None) -> None:
        """Lock the run folder, if there is one, against other processes."""
        if run is not None and self._claim is None:
            self._claim = folder.claim(run)

    def release(self) -> None:
        """Unlock the run folder."""
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None

    def check(self) -> SigmaStateError | None:
        """Restore missing files, and sync all rows to the disk; return the error if that fails."""
        return self.journal.durable()

    def wait(self) -> None:
        """Wait until all checkpoints are written or have failed."""
        for saver in self._savers.values():
            saver.wait()

    def flush(self) -> None:
        """Wait until everything is written; raise SigmaCheckpointError if the newest checkpoint failed."""
        for saver in self._savers.values():
            saver.flush()
