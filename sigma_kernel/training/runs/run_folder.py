"""The run folder of an environment: create or reopen it, lock it, and write to it in the background.

It holds ``config.toml`` (resolved), ``plugins.json``, ``journal.jsonl``, ``metrics.jsonl``, ``summary.json``,
``curves.svg``, ``checkpoints/<trainer>/<iteration>/``, and the lock file.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import ExitStack, nullcontext, suppress
from datetime import datetime
from functools import partial
from itertools import chain, count
from pathlib import Path

import numpy as np
from attrs import define, field

from sigma_kernel.contracts.storing import Checkpoint, Log
from sigma_kernel.errors import SigmaConfigError, SigmaError, SigmaStateError
from sigma_kernel.folders import LOCK, WrittenFolder, flock
from sigma_kernel.regular import IRREGULAR
from sigma_kernel.training import files
from sigma_kernel.training.checkpoints.store import read, write
from sigma_kernel.training.checkpoints.writer import Saver
from sigma_kernel.training.history.chain import Excerpt
from sigma_kernel.training.history.journal import Journal, Lines
from sigma_kernel.training.history.metrics_file import MetricsFile
from sigma_kernel.training.session.loop import Session

INITIAL = "initial"  # folder of initial values that came from outside, by trainer


@define(eq=False)
class RunFolder:
    """The files of one run; before the folder is created or resumed, there are none.

    ``fill`` writes those that are neither records nor the configuration.
    """

    log: Log
    fill: Callable[[Path], None]
    run: Path | None = None
    home: WrittenFolder | None = None  # which it is, or is to be
    _claim: ExitStack | None = None  # the lock on the folder
    _savers: dict[str, Saver] = field(factory=dict)
    journal: Journal = field(factory=Journal)
    _metrics: Lines = field(factory=Lines)
    _text: str = ""  # of config.toml

    def open(self, parent: Path, name: str, describe: Callable[[Path], str]) -> None:
        """Create a new run folder and fill it; on failure raise a SigmaError, and leave no files.

        ``describe`` returns the text of its configuration, and saves there what that refers to.
        """
        self.home = create(parent, name)
        run = self.home.path
        try:
            text = describe(run)
            files.put_text(run / "config.toml", text, self.home)
            self.fill(run)
        except SigmaError:
            with suppress(OSError, SigmaStateError), self.home.opened():  # else it is another folder by now
                shutil.rmtree(run, ignore_errors=True)
            raise
        self._write_into(self.home, text)

    def reopen(self, text: str | None, journal: Excerpt) -> None:
        """Write to the folder that was claimed; append the lines that its ``journal`` lacks at the end.

        A ``text`` is the new configuration: the journal names it first, :meth:`edited` writes the file.
        """
        assert self.home is not None
        text = files.get_bytes(self.home.path / "config.toml").decode() if text is None else text
        self._write_into(self.home, text, journal)

    def edited(self) -> None:
        """Write the current configuration, once the journal is on the disk."""
        assert self.run is not None
        if (error := self.journal.durable()) is not None:
            raise error
        files.put_text(self.run / "config.toml", self._text, self.home)
        self.fill(self.run)

    def _write_into(self, home: WrittenFolder, text: str, part: Excerpt | None = None) -> None:
        """Open the journal and the metrics."""
        self.run, self._text, digest = home.path, text, files.digest(text.encode())
        self.journal = Journal(self.run / "journal.jsonl", self.log, self._mend, home, digest, part)
        self._metrics = MetricsFile(self.run / "metrics.jsonl", self.log, self._mend, home)

    def _mend(self) -> None:
        """Restore files deleted from the run folder; the next checkpoint restores its own files."""
        assert self.home is not None  # else nothing is written
        with self.home.opened(make=True) as inside:
            if self._claim is not None and not os.path.lexists(inside / LOCK):
                os.close(open_lock(self.home))
                self.release()
                self.claim(self.home.path)
            if not (inside / "config.toml").exists():
                files.put_text(self.home.path / "config.toml", self._text, self.home)
        self.fill(self.home.path)

    def keep(self, session: Session) -> None:
        """Keep the initial values of a session that come from outside, in a new run folder."""
        if self.run is not None and (arrays := session.initial.outside()):
            write(self.run / INITIAL / session.setup.name, Checkpoint(arrays, {}), run=self.home)

    def attach(self, session: Session) -> None:
        """Let a session write to the run folder from now on."""
        name = session.setup.name
        if self.run is None or name in self._savers:
            return
        self._savers[name] = Saver(self.run / "checkpoints" / name, self.log, self.journal.durable, self.home)
        # while no other thread writes: early rows come first
        session.ask(partial(session.recorder.open, self.journal, self._metrics))
        session.attach(self._savers[name])

    def claim(self, run: Path | None) -> None:
        """Lock the run folder, if there is one, against other processes."""
        if run is not None:
            if self.home is None or self.home.path != run.absolute():
                self.release()
                self.home = WrittenFolder(run.absolute())
            self._claim = self._claim or lock(self.home)

    def release(self) -> None:
        """Unlock the run files."""
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def wait(self) -> None:
        """Wait until all checkpoints are written or have failed."""
        for saver in self._savers.values():
            saver.wait()

    def flush(self) -> None:
        """Wait until everything is written; raise SigmaCheckpointError if the newest checkpoint failed."""
        for saver in self._savers.values():
            saver.flush()


def kept(run: Path, trainer: str) -> dict[str, np.ndarray]:
    """Return the initial values that a run has kept for a trainer, by address; raises SigmaCheckpointError."""
    path = run / INITIAL / trainer
    return dict(read(path).arrays) if path.exists() else {}


def create(parent: Path, name: str) -> WrittenFolder:
    """Create a new folder ``<name>-<time>`` in ``parent`` and return it."""
    base = f"{name}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    names = chain([base], (f"{base}-{number}" for number in count(1)))
    try:
        while not (home := WrittenFolder(parent.absolute() / next(names))).make():
            pass
        os.close(open_lock(home))  # before a reader can lock the folder
        return home
    except OSError as error:
        raise SigmaConfigError(f"{parent}: cannot be created: {error.strerror}. Choose another run.folder.") from error


# -- one process at a time ---------------------------------------------------------------------------------------------
def lock(home: WrittenFolder) -> ExitStack:
    """Lock a run folder until the result is closed; raise SigmaStateError if another process has locked it.

    The lock is on a file that only its owner can open, since any process that can open a file can lock it.  The folder
    is also locked where possible, to show other users that the run is in progress, and for versions of Sigma without a
    lock file.  If that file is missing, such a version may have made the run, and the lock on the folder is required.
    """
    with ExitStack() as claim, home.opened(make=True) as inside:
        strict = not os.path.lexists(inside / LOCK)
        folder = os.open(inside, os.O_RDONLY | os.O_DIRECTORY)
        claim.callback(os.close, folder)
        with nullcontext() if strict else suppress(SigmaStateError):
            if not flock(home.path, folder):
                raise _busy(home.path)
        file = open_lock(home)
        claim.callback(os.close, file)
        if not flock(home.path, file):
            raise _busy(home.path)
        return claim.pop_all()


def open_lock(home: WrittenFolder) -> int:
    """Open the lock file of a run folder, for its owner alone; create it if there is none."""
    path, how = home.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with home.opened() as inside:
            handle = os.open(inside / LOCK, how, 0o600)
        try:
            if not stat.S_ISREG(mode := os.fstat(handle).st_mode):
                raise OSError(errno.EINVAL, IRREGULAR)
            if stat.S_IMODE(mode) != 0o600:  # a copy that lost its mode
                os.fchmod(handle, 0o600)
        except OSError:
            os.close(handle)
            raise
    except OSError as error:
        remedy = "If no other user's run writes to the folder, remove this file"
        raise SigmaStateError(f"{path}: cannot be opened to lock the run: {error.strerror}. {remedy}.") from error
    return handle


def _busy(run: Path) -> SigmaStateError:
    return SigmaStateError(f"{run}: another run writes to it. Wait for its end.")
