"""The run folder of an environment: create or reopen it, lock it, and write to it in the background.

It holds ``config.toml`` (resolved), ``plugins.json``, ``journal.jsonl``, ``curves.bin``, ``summary.json``,
``curves.svg``, ``checkpoints/<trainer>/<iteration>/``, the lock file, and where hooks publish media ``media.jsonl`` and
``media/``.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from datetime import datetime
from functools import partial
from itertools import chain, count
from pathlib import Path

import numpy as np
from attrs import Factory, define, field

from sigma_kernel.contracts import storing
from sigma_kernel.contracts.storing import Checkpoint, Checkpoints, Log, NoRows, Row, RowWriter, Store, StoredRun
from sigma_kernel.curves import BranchedCurves, Stretch, Window
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError, SigmaError, SigmaStateError
from sigma_store import files
from sigma_store.chain import JournalExcerpt
from sigma_store.checkpoints.store import read, recover, replace, write
from sigma_store.checkpoints.writer import Saver
from sigma_store.curves import EVERYTHING, CurvesReader, rows
from sigma_store.curves_file import CurvesFile
from sigma_store.excerpt import history, readable_rows
from sigma_store.folders import (
    CHECKPOINTS,
    CONFIG,
    CURVES,
    JOURNAL,
    LOCK,
    MEDIA,
    OLDER_METRICS,
    WrittenFolder,
    flock,
    is_locked,
    run_folders,
)
from sigma_store.journal import JournalFile, Lines
from sigma_store.media_file import MediaLines, read_media
from sigma_store.regular import IRREGULAR

NETWORK = (CONFIG, CHECKPOINTS, "plugins.json")  # entries of a saved network
ROWS = {"journal": (JOURNAL,), "metrics": (OLDER_METRICS, CURVES), "media": (MEDIA,)}  # the files of rows
INITIAL = "initial"  # folder of initial values that came from outside, by trainer


@define(eq=False)
class FolderRun(StoredRun):
    """The files of one run; until it is created or reopened, none is written.

    ``fill`` writes those that are neither records nor the configuration.
    """

    home: WrittenFolder  # which folder it is
    log: Log
    fill: Callable[[StoredRun], None]
    journal: storing.Journal = field(factory=NoRows)
    metrics: RowWriter = field(factory=NoRows)
    media_log: RowWriter = field(factory=NoRows)
    _claim: ExitStack | None = None  # the lock on the folder
    _savers: dict[str, Saver] = field(factory=dict)
    _text: str = ""  # of config.toml
    _curves: CurvesReader = field(default=Factory(lambda made: CurvesReader(made.path), takes_self=True), init=False)
    _reading: threading.Lock = field(factory=threading.Lock, init=False)

    @property
    def path(self) -> Path:
        """Return the folder."""
        return self.home.path

    @property
    def place(self) -> str:
        """Return the path of the folder."""
        return str(self.home.path)

    # -- writing -------------------------------------------------------------------------------------------------------
    def begin(self, describe: Callable[[StoredRun], str]) -> None:
        """Fill the new folder; on failure raise a SigmaError, and remove it.

        ``describe`` returns the text of its configuration, and saves there what that refers to.
        """
        try:
            text = describe(self)
            files.put_text(self.path / CONFIG, text, self.home)
            self.fill(self)
        except SigmaError:
            with suppress(OSError, SigmaStateError), self.home.open():  # else it is another folder by now
                shutil.rmtree(self.path, ignore_errors=True)
            raise
        self._write_into(text)

    def reopen(self, text: str | None, journal: storing.Excerpt) -> None:
        """Write to the folder that is locked; append the lines that its ``journal`` lacks at the end.

        A ``text`` is the new configuration: the journal names it first, :meth:`commit` writes the file.
        """
        assert isinstance(journal, JournalExcerpt)  # as it is read here
        text = files.get_bytes(self.path / CONFIG).decode() if text is None else text
        self._write_into(text, journal)

    def commit(self) -> None:
        """Write the current configuration, once the journal is on the disk."""
        if (error := self.journal.durable()) is not None:
            raise error
        files.put_text(self.path / CONFIG, self._text, self.home)
        self.fill(self)

    def _write_into(self, text: str, part: JournalExcerpt | None = None) -> None:
        """Open the journal and the metrics."""
        self._text, digest = text, files.digest(text.encode())
        self.journal = JournalFile(self.path / JOURNAL, self.log, self._mend, self.home, digest, part)
        self.metrics = CurvesFile(self.path / CURVES, self.log, self._mend, self.home)
        self.media_log = MediaLines(partial(Lines, self.path / MEDIA, self.log, self._mend, self.home))

    def _mend(self) -> None:
        """Restore files deleted from the run folder; the next checkpoint restores its own files."""
        with self.home.open(make=True) as inside:
            if self._claim is not None and not os.path.lexists(inside / LOCK):
                os.close(open_lock(self.home))
                self.release()
                self.lock()
            if not (inside / CONFIG).exists():
                files.put_text(self.path / CONFIG, self._text, self.home)
        self.fill(self)

    def write(self, name: str, data: bytes | str, durable: bool = True) -> Path:
        """Write a file, at once on the disk if ``durable``; raise SigmaStateError on failure."""
        path = self.path / name
        if not durable:
            files.put_soon(path, data.encode() if isinstance(data, str) else data, self.home)
        elif isinstance(data, str):
            files.put_text(path, data, self.home)
        else:
            files.put(path, data, self.home)
        return path

    def remove(self, name: str) -> None:
        """Remove a file, if it is there; raise SigmaStateError if that fails."""
        files.remove(self.path / name, self.home)

    # -- one process at a time -----------------------------------------------------------------------------------------
    def lock(self) -> None:
        """Lock the folder against other processes."""
        self._claim = self._claim or lock(self.home)

    def release(self) -> None:
        """Unlock the folder."""
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    # -- checkpoints ---------------------------------------------------------------------------------------------------
    def recover(self, log: Log) -> None:
        """Restore or remove what a crash has left among the checkpoints."""
        recover(self.path, log, self.home)

    def trainers(self) -> list[str]:
        """Return the names of the folders of checkpoints."""
        home = self.path / CHECKPOINTS
        return sorted(path.name for path in home.iterdir() if path.is_dir()) if home.is_dir() else []

    def checkpoints(self, trainer: str) -> Checkpoints:
        """Return the checkpoints of a trainer, always by the same object."""
        if trainer not in self._savers:
            home = self.path / CHECKPOINTS / trainer
            self._savers[trainer] = Saver(home, self.log, lambda: self.journal.durable(), self.home)
        return self._savers[trainer]

    def keep_initial(self, trainer: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep the initial values of a trainer that come from outside."""
        write(self.path / INITIAL / trainer, Checkpoint(arrays, {}), run=self.home)

    def initial(self, trainer: str) -> dict[str, np.ndarray]:
        """Return the initial values that are kept for a trainer; raises SigmaCheckpointError."""
        return read_initial_values(self.path, trainer)

    def wait(self) -> None:
        """Wait until all checkpoints are written or have failed."""
        for saver in self._savers.values():
            saver.wait()

    def flush(self) -> None:
        """Wait until everything is written; raise SigmaCheckpointError if the newest checkpoint failed."""
        for saver in self._savers.values():
            saver.flush()

    # -- reading -------------------------------------------------------------------------------------------------------
    def excerpt(self, trainers: Collection[str], log: Log, whole: bool = True) -> JournalExcerpt:
        """Return the journal, with the lines missing at its end that checkpoints still hold."""
        return history(self.path, trainers, log, whole)

    def read(self, name: str) -> bytes | None:
        """Return the contents of a regular file of at most 16 MiB; None if there is none."""
        path = self.path / name
        return files.get_bytes(path, files.LARGEST) if os.path.lexists(path) else None

    def version(self, name: str) -> tuple[int, ...] | None:
        """Return the time of the last change of regular files, and their sizes."""
        version = list[int]()
        for each in ROWS.get(name, (name,)):
            with suppress(OSError):
                about = (self.path / each).lstat()
                version += [about.st_mtime_ns, about.st_size] if stat.S_ISREG(about.st_mode) else []
        return tuple(version) or None

    def journal_rows(self) -> Iterator[Row]:
        """Yield the rows of ``journal.jsonl``, without the head of the file and the hashes."""
        return readable_rows(self.path / JOURNAL)

    def metric_rows(self, log: Log) -> Iterator[Row]:
        """Yield the rows of metrics; none if their file was removed or replaced."""
        return rows(self.path, log) if self._has_metrics() else iter(())

    def media_rows(self, log: Log) -> Iterator[Row]:
        """Yield the rows of ``media.jsonl``; raise SigmaCheckpointError if it is not a regular file."""
        return read_media(self.path / MEDIA, log)

    def curves(self, log: Log, window: Window = EVERYTHING) -> Mapping[str, BranchedCurves]:
        """Return the metrics of each trainer, read as far as they are in the window."""
        with self._reading:
            return self._curves.read(log, window) if self._has_metrics() else {}

    def points(self, trainer: str, name: str, window: Window, after: int = 0) -> tuple[int, list[Stretch]]:
        """Return what is stored of a value on all branches, read as far as it is wanted."""
        if os.path.lexists(self.path / OLDER_METRICS) or not self._has_metrics():
            return super().points(trainer, name, window, after)
        with self._reading:
            return self._curves.look_through(_silent).points(trainer, name, window, after)

    def _has_metrics(self) -> bool:
        paths = [self.path / name for name in ROWS["metrics"] if os.path.lexists(self.path / name)]
        return bool(paths) and all(path.is_file() and not path.is_symlink() for path in paths)


def _silent(text: str) -> None:
    """Log nothing: reading all of the curves logs what is damaged."""


class FolderStore(Store):
    """Runs in folders of this machine, or of a file system that it mounts."""

    def create(
        self,
        parent: Path,
        name: str,
        log: Log,
        describe: Callable[[StoredRun], str],
        fill: Callable[[StoredRun], None],
        exact: bool = False,
    ) -> StoredRun:
        """Create a new run folder and fill it; on failure raise a SigmaError, and leave no files."""
        run = FolderRun(create(parent, name, exact), log, fill)
        run.begin(describe)
        return run

    def open(self, path: Path, log: Log, fill: Callable[[StoredRun], None]) -> FolderRun:
        """Return the run in a folder, without reading it; raise SigmaCheckpointError if there is no folder."""
        if not path.is_dir():
            raise SigmaCheckpointError(f"{path}: not a directory. Pass the folder of a run.")
        return FolderRun(WrittenFolder(path.absolute()), log, fill)

    def runs(self, places: Sequence[Path]) -> Iterator[Path]:
        """Yield the run folders among and directly below some folders, oldest first."""
        return run_folders(places)

    def is_locked(self, run: Path) -> bool:
        """Return whether a process writes to a run folder; False if that cannot be determined."""
        return is_locked(run)


def read_initial_values(run: Path, trainer: str) -> dict[str, np.ndarray]:
    """Return the initial values that a run has kept for a trainer, by address; raises SigmaCheckpointError."""
    path = run / INITIAL / trainer
    return dict(read(path).arrays) if path.exists() else {}


def replace_network(path: Path, fill: Callable[[StoredRun], None]) -> Path:
    """Write a saved network, which is filled like a run folder without rows, to a directory; return its path.

    It is whole or not there, and replaces another one.  Raises SigmaStateError if the directory holds anything else, or
    cannot be written.
    """
    folder = path.absolute()
    if folder.exists() and not (folder.is_dir() and {entry.name for entry in folder.iterdir()} <= {*NETWORK}):
        raise SigmaStateError(f"{path}: already exists and is not a saved network. Choose another path.")
    temporary = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        fill(FolderRun(WrittenFolder(temporary), warnings.warn, fill))
        replace(temporary, folder)
    except OSError as error:
        raise SigmaStateError(f"{path}: cannot be written: {error.strerror}. Choose another path.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def create(parent: Path, name: str, exact: bool = False) -> WrittenFolder:
    """Create a new folder ``<name>-<time>`` in ``parent``, or one of the ``exact`` name, and return it."""
    base = name if exact else f"{name}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    names = chain([base], (f"{base}-{number}" for number in count(1)))
    try:
        while not (home := WrittenFolder(parent.absolute() / next(names))).make():
            if exact:
                raise SigmaConfigError(f"{home.path}: is there already. Move it away, or choose another run.folder.")
        os.close(open_lock(home))  # before a reader can lock the folder
        return home
    except OSError as error:
        raise SigmaConfigError(f"{parent}: cannot be created: {error.strerror}. Choose another run.folder.") from error


def open_events(home: WrittenFolder, log: Log) -> RowWriter:
    """Return the writer of what happened in a folder of several runs: the lines of its ``journal.jsonl``."""
    return Lines(home.path / JOURNAL, log, folder=home)


# -- one process at a time ---------------------------------------------------------------------------------------------
def lock(home: WrittenFolder) -> ExitStack:
    """Lock a run folder until the result is closed; raise SigmaStateError if another process has locked it.

    The lock is on a file that only its owner can open, since any process that can open a file can lock it.  The folder
    is also locked where possible, to show other users that the run is in progress, and for versions of Sigma without a
    lock file.  If that file is missing, such a version may have made the run, and the lock on the folder is required.
    """
    with ExitStack() as claim, home.open(make=True) as inside:
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
        with home.open() as inside:
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
