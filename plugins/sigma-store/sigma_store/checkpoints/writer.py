"""Write checkpoints in the background, and apply retention.

The training thread only queues a snapshot.  They are written in order, each in a thread that first waits for the one
before; a queued snapshot is replaced by a newer one, unless it is marked to keep.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from attrs import define, field

from sigma_kernel.contracts.storing import NAMED, Checkpoint, Checkpoints, Log, Mark, Retention
from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_kernel.threads import in_thread
from sigma_store.checkpoints.store import (
    SAVER,
    list_checkpoints,
    numbered_entries,
    read,
    read_manifest,
    refuse_link,
    remove,
    write,
)
from sigma_store.folders import WrittenFolder, open_folder


@define(eq=False)
class Saver(Checkpoints):
    """The checkpoints of one trainer, in ``home``; they are saved in the background.

    A failure, such as a full disk, is logged as an alarm: training continues, and saved checkpoints remain.
    """

    home: Path
    log: Log
    before: Callable[[], Any] = lambda: None  # called before each checkpoint is written: syncs the journal
    run: WrittenFolder | None = None  # the folder of the run, around ``home``
    retention: Retention = Retention()
    _waiting: tuple[int, Checkpoint] | None = field(default=None, init=False)
    _done: Future[None] | None = field(default=None, init=False)  # once all is written
    _gate: threading.Condition = field(factory=threading.Condition, init=False)
    _failure: Exception | None = field(default=None, init=False)
    _failed: int = field(default=0, init=False)  # checkpoints that failed since the last one that was written
    _marks: dict[int, Mark] = field(factory=dict, init=False)

    # -- those that are there ------------------------------------------------------------------------------------------
    def numbers(self) -> list[int]:
        """Return the iterations of the checkpoints, in order; raise SigmaCheckpointError for links."""
        return [int(path.name) for path in list_checkpoints(self.home.parents[1], self.home.name)]

    def epochs(self) -> dict[int, int]:
        """Return the epochs of the checkpoints that are intact, by iteration; each is read once."""
        return {number: int(values["clock"]["epoch"]) for number, values in self._values().items()}

    def names(self) -> dict[int, tuple[str, str]]:
        """Return name and note of the intact checkpoints that a person named, by iteration; each is read once."""
        names = {number: (values.get("name", ""), values.get("note", "")) for number, values in self._values().items()}
        return {number: about for number, about in names.items() if about[0]}

    def _values(self) -> dict[int, Mapping[str, Any]]:
        paths = [path for path in numbered_entries(self.home) if path.exists()]
        values = {int(path.name): _read_head(path, path.stat().st_mtime_ns) for path in paths}
        return {number: head for number, head in values.items() if head is not None}

    def list_abandoned(self, number: int) -> list[str]:
        """Return the labels of the checkpoints of an iteration on abandoned branches."""
        return [path.name for path in self.home.glob(f"{number}.branch-*")]

    def place(self, label: str) -> Path:
        """Return the directory of a checkpoint."""
        return self.home / label

    def read_manifest(self, label: str, log: Log) -> Mapping[str, Any]:
        """Return the manifest of a checkpoint."""
        return read_manifest(self.home / label, log)

    def read(self, label: str, log: Log) -> Checkpoint:
        """Read a checkpoint, verified."""
        return read(self.home / label, log)

    def write(self, label: str, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, and wait for it."""
        write(self.home / label, checkpoint, run=self.run)

    # -- in the background ---------------------------------------------------------------------------------------------
    def save(self, number: int, checkpoint: Checkpoint) -> Path:
        """Queue a checkpoint to be written; return its path.  Its arrays must not be changed after this.

        Returns at once, unless one that is marked to keep is still queued behind another.
        """
        with self._gate:
            self._gate.wait_for(lambda: self._waiting is None or not self._is_retained(*self._waiting))
            idle, self._waiting = self._waiting is None, (number, checkpoint)
            if idle:  # else a thread is about to write the queue
                self._done = in_thread(partial(self._work, self._done), SAVER, daemon=False)
        return self.home / str(number)

    def set_aside(self, after: int, branch: int) -> None:
        """Rename the checkpoints after a number, on an abandoned branch: none counts as the newest."""
        self.wait()
        for path in numbered_entries(self.home):
            if int(path.name) > after:
                self._rename(path, branch)

    def _rename(self, path: Path, branch: int) -> None:
        place = path.with_name(f"{path.name}.branch-{branch}")
        try:
            refuse_link(path)
            if place.exists():  # from before a crash, after which it was saved again
                remove(place, self.run)
            with open_folder(path.parent, self.run) as home:
                (home / path.name).rename(home / place.name)
        except (OSError, SigmaStateError) as error:
            self.log(
                f"ALARM: checkpoint {path.name} cannot be set aside: {error}. Remove it by hand: it is on an abandoned "
                "branch, and would be taken for the newest."
            )

    def flush(self) -> None:
        """Wait until all checkpoints are written; raise SigmaCheckpointError if the newest one could not be."""
        self.wait()
        if self._failure is not None:
            raise SigmaCheckpointError(f"{self._failure} ({self._failed} in a row)") from self._failure
        if self._done is not None:
            self._done.result()  # raises any other error of the thread

    def wait(self) -> None:
        """Wait until all checkpoints are written or have failed."""
        if self._done is not None:
            wait([self._done])

    def _work(self, earlier: Future[None] | None) -> None:
        """Write the queued checkpoint, once the earlier one is written."""
        if earlier is not None:
            wait([earlier])
        with self._gate:
            job, self._waiting = self._waiting, None
            self._gate.notify_all()
        if job is not None:
            self._write(*job)

    def _write(self, number: int, checkpoint: Checkpoint) -> None:
        self.before()
        with suppress(SigmaCheckpointError):  # a save at the end of a run keeps score and name
            checkpoint = checkpoint.in_place_of(read_manifest(self.home / str(number), lambda _: None))
        try:
            write(self.home / str(number), checkpoint, self.log, self.run)
        except Exception as error:  # logged; training must not end because of it
            first, self._failure, self._failed = self._failure is None, error, self._failed + 1
            if first:
                self.log(f"ALARM: checkpoint {number}: {error} Training continues; later failures are counted.")
            return
        failed, self._failure, self._failed = self._failed, None, 0
        if failed:
            self.log(f"checkpoint {number}: written; {failed} before it failed.")
        self._clear(number)

    # -- retention -----------------------------------------------------------------------------------------------------
    def _clear(self, number: int) -> None:
        """Apply retention, now that a newer checkpoint is complete."""
        if self.retention.last is None:
            return
        for old in sorted(self._select_removable(number)):
            try:
                remove(self.home / str(old), self.run)
            except (OSError, SigmaStateError) as error:
                self.log(f"checkpoint {old}: cannot be removed: {error}. Remove it by hand.")

    def _select_removable(self, newest: int) -> set[int]:
        numbers = [int(path.name) for path in numbered_entries(self.home)]
        with self._gate:
            self._marks.pop(newest, None)
            self._marks = {n: self._marks.get(n) or _mark(self.home / str(n)) for n in numbers}
            return self.retention.select_removable(self._marks, newest)

    def _is_retained(self, number: int, checkpoint: Checkpoint) -> bool:
        return number in self.retention.deserving({**self._marks, number: (checkpoint.score, checkpoint.keep)})


@lru_cache(maxsize=1024)
def _read_head(path: Path, changed: int) -> Mapping[str, Any] | None:
    """Return clock and name of a checkpoint; None if it is damaged, or has just been removed."""
    try:
        values = read_manifest(path, lambda text: None)["values"]
    except SigmaCheckpointError:
        return None
    return {name: values[name] for name in ("clock", *NAMED) if name in values}


def _mark(folder: Path) -> Mark:
    try:
        manifest = read_manifest(folder, lambda _: None)
    except SigmaCheckpointError:  # reading it raises the error
        return None, False
    return manifest["score"], manifest["keep"]
