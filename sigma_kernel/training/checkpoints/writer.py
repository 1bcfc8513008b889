"""Write checkpoints in the background, and apply retention.

The training thread only queues a snapshot.  One thread writes them in order; a queued snapshot is replaced by a newer
one, unless it is marked to keep.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from math import isnan
from pathlib import Path
from typing import Any, Literal

from attrs import define, evolve, field

from sigma_kernel.contracts import Hook
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError
from sigma_kernel.training.checkpoints.format import Checkpoint, Log
from sigma_kernel.training.checkpoints.store import numbered, read_manifest, refuse_link, remove, write

Mark = tuple[float | None, bool]  # the score of a checkpoint, and whether it is marked to keep


@define(eq=False)
class Saver:
    """Save the checkpoints of one trainer in the background, in ``home``, with retention.

    Retained are the newest ``last`` (all, if None), the ``best`` by their score (of equal ones the earlier), and those
    marked to keep.  A failure, such as a full disk, is logged as an alarm: training continues, and saved ones remain.
    """

    home: Path
    log: Log
    before: Callable[[], Any] = lambda: None  # called before each checkpoint is written: syncs the journal
    last: int | None = None
    best: int = 0
    prefer: Literal["greatest", "least"] = "greatest"
    _waiting: tuple[int, Checkpoint] | None = field(default=None, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _gate: threading.Condition = field(factory=threading.Condition, init=False)
    _failure: Exception | None = field(default=None, init=False)
    _failed: int = field(default=0, init=False)  # checkpoints that failed since the last one that was written
    _marks: dict[int, Mark] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        """Refuse invalid retention settings."""
        if self.best < 0 or (self.last is not None and self.last < 1) or self.prefer not in ("greatest", "least"):
            raise SigmaConfigError(
                f"checkpoints: cannot keep the last {self.last} and the best {self.best}, the {self.prefer} preferred. "
                "Keep the last 1, 2, 3 ..., the best 0, 1, 2 ..., and prefer 'greatest' or 'least'."
            )

    def retain(self, hooks: Iterable[Hook]) -> None:
        """Set the retention to what these hooks ask for."""
        wanted: dict[str, Any] = {name: value for hook in hooks for name, value in hook.retains.items()}
        asked = evolve(self, **{"last": None, "best": 0, "prefer": "greatest", **wanted})  # validates them
        self.last, self.best, self.prefer = asked.last, asked.best, asked.prefer

    def save(self, number: int, checkpoint: Checkpoint) -> Path:
        """Queue a checkpoint to be written; return its path.  Its arrays must not be changed after this.

        Returns at once, unless one that is marked to keep is still queued behind another.
        """
        with self._gate:
            self._gate.wait_for(lambda: self._waiting is None or not self._wanted(*self._waiting))
            self._waiting = (number, checkpoint)
            if self._thread is None:  # not a daemon: the last one is written even without flush()
                self._thread = threading.Thread(target=self._work, name="sigma-saver")
                self._thread.start()
        return self.home / str(number)

    def forsake(self, after: int, branch: int) -> None:
        """Set aside the checkpoints after a number, on an abandoned branch: none is taken for the newest."""
        self.wait()
        for path in numbered(self.home):
            if int(path.name) > after:
                self._set_aside(path, branch)

    def _set_aside(self, path: Path, branch: int) -> None:
        place = path.with_name(f"{path.name}.branch-{branch}")
        try:
            refuse_link(path)
            if place.exists():  # from before a crash, after which it was saved again
                remove(place)
            path.rename(place)
        except OSError as error:
            self.log(
                f"ALARM: checkpoint {path.name} cannot be set aside: {error}. Remove it by hand: it is on an abandoned "
                "branch, and would be taken for the newest."
            )

    def flush(self) -> None:
        """Wait until all checkpoints are written; raise SigmaCheckpointError if the newest one could not be."""
        self.wait()
        if self._failure is not None:
            raise SigmaCheckpointError(f"{self._failure} ({self._failed} in a row)") from self._failure

    def wait(self) -> None:
        """Wait until all checkpoints are written or have failed."""
        with self._gate:
            self._gate.wait_for(lambda: self._thread is None)

    def _work(self) -> None:
        try:
            while (job := self._next()) is not None:
                self._write(*job)
        finally:
            with self._gate:
                if self._thread is threading.current_thread():  # only if logging failed
                    self._thread = None
                self._gate.notify_all()

    def _next(self) -> tuple[int, Checkpoint] | None:
        with self._gate:
            job, self._waiting = self._waiting, None
            if job is None:
                self._thread = None
            self._gate.notify_all()
            return job

    def _write(self, number: int, checkpoint: Checkpoint) -> None:
        self.before()
        try:
            write(self.home / str(number), checkpoint)
        except Exception as error:  # logged; training must not end because of it
            first, self._failure, self._failed = self._failure is None, error, self._failed + 1
            if first:
                self.log(f"ALARM: checkpoint {number}: {error} Training continues; later failures are counted.")
            return
        failed, self._failure, self._failed = self._failed, None, 0
        if failed:
            self.log(f"checkpoint {number}: written; {failed} before it failed.")
        self._clear(number)

    # -- what is kept --------------------------------------------------------------------------------------------------
    def _clear(self, number: int) -> None:
        """Apply retention, now that a newer checkpoint is complete."""
        if self.last is None:
            return
        for old in sorted(self._unwanted(number)):
            try:
                remove(self.home / str(old))
            except OSError as error:
                self.log(f"checkpoint {old}: cannot be removed: {error}. Remove it by hand.")

    def _unwanted(self, newest: int) -> set[int]:
        numbers = [int(path.name) for path in numbered(self.home)]
        with self._gate:
            self._marks.pop(newest, None)
            self._marks = {n: self._marks.get(n) or _mark(self.home / str(n)) for n in numbers}
            kept = {n for n, (_, keep) in self._marks.items() if keep}
            return {*numbers} - {newest, *numbers[-(self.last or 0) :], *self._best(self._marks), *kept}

    def _best(self, marks: Mapping[int, Mark]) -> list[int]:
        scores = {n: score for n, (score, _) in marks.items() if score is not None and not isnan(score)}
        sign = -1 if self.prefer == "greatest" else 1
        return sorted(scores, key=lambda n: (sign * scores[n], n))[: self.best]

    def _wanted(self, number: int, checkpoint: Checkpoint) -> bool:
        mark = (checkpoint.score, checkpoint.keep)
        return checkpoint.keep or number in self._best({**self._marks, number: mark})


def _mark(folder: Path) -> Mark:
    try:
        manifest = read_manifest(folder, lambda _: None)
    except SigmaCheckpointError:  # reading it raises the error
        return None, False
    return manifest["score"], manifest["keep"]
