"""A store that keeps runs in memory: the smallest that passes :class:`StoreSuite`, for tests and as an example.

Its runs live as long as the process. Values are encoded as in files, so that those read back share no memory with those
written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_kernel.contracts import storing
from sigma_kernel.contracts.storing import Checkpoint, Checkpoints, Excerpt, Log, Row, RowWriter, Store, StoredRun
from sigma_kernel.encoding import pack, unpack
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError, SigmaError, SigmaStateError
from sigma_kernel.plain import strict

CONFIGURATION = "config.toml"


@define(eq=False)
class MemoryRows(RowWriter):
    """Metrics: rows as JSON, appended to a list."""

    lines: list[str]
    is_behind = False  # none waits

    def append(self, row: Row) -> None:
        """Add a row."""
        self.lines.append(json.dumps(strict(row)))


@define(eq=False)
class MemoryJournal(MemoryRows, storing.Journal):
    """The journal: rows as JSON with the bits of every value."""

    configuration: str = ""

    def append(self, row: Row) -> None:
        """Add a row."""
        self.lines.append(json.dumps(pack(row)))

    def durable(self) -> None:
        """Return at once: nothing survives a crash, and nothing is lost without one."""

    def chain(self, trainer: str, place: int = -1) -> dict[str, Any]:
        """Return the configuration; no rows can be lost later."""
        return {"configuration": self.configuration}


@frozen
class MemoryExcerpt(Excerpt):
    """All rows of a journal."""

    place: str
    lines: Sequence[str]

    def rows(self, trainer: str) -> list[dict[str, Any]]:
        """Return the rows of a trainer."""
        own = (row for row in map(unpack, map(json.loads, self.lines)) if row["trainer"] == trainer)
        return [{**row, "place": place} for place, row in enumerate(own)]


@define(eq=False)
class MemoryCheckpoints(Checkpoints):
    """The checkpoints of one trainer by label, saved at once."""

    home: Path
    saved: dict[str, Checkpoint] = field(factory=dict)

    def numbers(self) -> list[int]:
        """Return the iterations of the checkpoints, in order."""
        return sorted(int(label) for label in self.saved if label.isdecimal())

    def list_abandoned(self, number: int) -> list[str]:
        """Return the labels of an iteration on abandoned branches."""
        return [label for label in self.saved if label.startswith(f"{number}.branch-")]

    def place(self, label: str) -> Path:
        """Return the path that stands for a checkpoint."""
        return self.home / label

    def read_manifest(self, label: str, log: Log) -> Mapping[str, Any]:
        """Return a checkpoint without its arrays."""
        checkpoint = self.read(label, log)
        return {
            "values": checkpoint.values,
            "made_with": checkpoint.made_with,
            "score": checkpoint.score,
            "keep": checkpoint.keep,
        }

    def read(self, label: str, log: Log) -> Checkpoint:
        """Return a copy of a checkpoint."""
        if label not in self.saved:
            raise SigmaCheckpointError(f"{self.place(label)}: there is none. Use another checkpoint.")
        return _copy(self.saved[label])

    def write(self, label: str, checkpoint: Checkpoint) -> None:
        """Keep a copy of a checkpoint."""
        self.saved[label] = _copy(checkpoint)

    def save(self, number: int, checkpoint: Checkpoint) -> Path:
        """Keep a copy of a checkpoint, with the score and the name that it had; drop those that need not be kept."""
        if str(number) in self.saved:
            checkpoint = checkpoint.in_place_of(self.read_manifest(str(number), lambda text: None))
        self.write(str(number), checkpoint)
        marks = {each: (self.saved[str(each)].score, self.saved[str(each)].keep) for each in self.numbers()}
        for old in self.retention.select_removable(marks, number):
            del self.saved[str(old)]
        return self.place(str(number))

    def set_aside(self, after: int, branch: int) -> None:
        """Label the checkpoints after an iteration by a branch."""
        for number in self.numbers():
            if number > after:
                self.saved[f"{number}.branch-{branch}"] = self.saved.pop(str(number))

    def wait(self) -> None:
        """Return at once: nothing is written later."""


@define(eq=False)
class Contents:
    """The stored data of a run."""

    path: Path
    files: dict[str, bytes] = field(factory=dict)
    journal: list[str] = field(factory=list)
    metrics: list[str] = field(factory=list)
    media: list[str] = field(factory=list)
    checkpoints: dict[str, MemoryCheckpoints] = field(factory=dict)
    initial: dict[str, dict[str, np.ndarray]] = field(factory=dict)
    writer: StoredRun | None = None  # who has locked it


RUNS: dict[Path, Contents] = {}  # of this process, in the order in which they were created


@define(eq=False)
class MemoryRun(StoredRun):
    """A run in memory."""

    held: Contents
    journal: storing.Journal = field(factory=storing.NoRows)
    metrics: RowWriter = field(factory=storing.NoRows)
    media_log: RowWriter = field(factory=storing.NoRows)
    _text: str = ""

    @property
    def place(self) -> str:
        """Return the path that stands for it."""
        return str(self.held.path)

    def lock(self) -> None:
        """Let nobody else write."""
        if self.held.writer not in (None, self):
            raise SigmaStateError(f"{self.place}: another run writes to it. Wait for its end.")
        self.held.writer = self

    def release(self) -> None:
        """Let others write."""
        self.held.writer = None if self.held.writer is self else self.held.writer

    def recover(self, log: Log) -> None:
        """Do nothing: a crash leaves nothing."""

    def reopen(self, text: str | None, journal: Excerpt | None = None) -> None:
        """Write rows from now on, after those that are there."""
        self._text = (self.read(CONFIGURATION) or b"").decode() if text is None else text
        digest = hashlib.sha256(self._text.encode()).hexdigest()
        self.journal, self.metrics = MemoryJournal(self.held.journal, digest), MemoryRows(self.held.metrics)
        self.media_log = MemoryRows(self.held.media)

    def commit(self) -> None:
        """Write the configuration."""
        self.write(CONFIGURATION, self._text)

    def write(self, name: str, data: bytes | str, durable: bool = True) -> Path:
        """Keep named bytes."""
        self.held.files[name] = data.encode() if isinstance(data, str) else data
        return self.held.path / name

    def read(self, name: str) -> bytes | None:
        """Return named bytes."""
        return self.held.files.get(name)

    def remove(self, name: str) -> None:
        """Drop named bytes."""
        self.held.files.pop(name, None)

    def version(self, name: str) -> Any:
        """Return the named bytes, or the number of rows."""
        rows = {"journal": self.held.journal, "metrics": self.held.metrics, "media": self.held.media}.get(name)
        return self.read(name) if rows is None else len(rows) or None

    def trainers(self) -> list[str]:
        """Return the names of the trainers that have checkpoints."""
        return sorted(name for name, own in self.held.checkpoints.items() if own.saved)

    def checkpoints(self, trainer: str) -> MemoryCheckpoints:
        """Return the checkpoints of a trainer."""
        return self.held.checkpoints.setdefault(trainer, MemoryCheckpoints(self.held.path / trainer))

    def keep_initial(self, trainer: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep copies of initial values."""
        self.held.initial[trainer] = {name: array.copy() for name, array in arrays.items()}

    def initial(self, trainer: str) -> dict[str, np.ndarray]:
        """Return copies of the initial values."""
        return {name: array.copy() for name, array in self.held.initial.get(trainer, {}).items()}

    def excerpt(self, trainers: Collection[str], log: Log, whole: bool = True) -> MemoryExcerpt:
        """Return the rows that the journal has by now."""
        return MemoryExcerpt(f"{self.place}: journal", [*self.held.journal])

    def journal_rows(self) -> Iterator[Row]:
        """Yield the rows that the journal has by now."""
        return map(json.loads, [*self.held.journal])

    def metric_rows(self, log: Log) -> Iterator[Row]:
        """Yield the rows of metrics that there are by now."""
        return map(json.loads, [*self.held.metrics])

    def media_rows(self, log: Log) -> Iterator[Row]:
        """Yield the rows of media that there are by now."""
        return map(json.loads, [*self.held.media])

    def wait(self) -> None:
        """Return at once: nothing is written later."""


class MemoryStore(Store):
    """Keep runs in the memory of this process: there are no folders, and nothing survives its end."""

    def create(
        self,
        parent: Path,
        name: str,
        log: Log,
        describe: Callable[[StoredRun], str],
        fill: Callable[[StoredRun], None],
        exact: bool = False,
    ) -> MemoryRun:
        """Create a run ``<name>-<number>``, or of the ``exact`` name, and fill it."""
        path = parent.absolute() / name
        if not exact:
            path = next(place for n in count(1) if (place := parent.absolute() / f"{name}-{n}") not in RUNS)
        elif path in RUNS:
            raise SigmaConfigError(f"{path}: is there already. Choose another name.")
        run = MemoryRun(RUNS.setdefault(path, Contents(path)))
        try:
            run.reopen(describe(run))
            run.commit()
            fill(run)
        except SigmaError:
            del RUNS[path]
            raise
        return run

    def open(self, path: Path, log: Log, fill: Callable[[StoredRun], None]) -> MemoryRun:
        """Return a run once more."""
        if path.absolute() not in RUNS:
            raise SigmaCheckpointError(f"{path}: no such run. There are: {', '.join(map(str, RUNS)) or 'none'}.")
        return MemoryRun(RUNS[path.absolute()])

    def runs(self, places: Sequence[Path]) -> Iterator[Path]:
        """Yield the runs at or below some places."""
        wanted = {place.absolute() for place in places}
        return (path for path in [*RUNS] if wanted & {path, path.parent})

    def is_locked(self, run: Path) -> bool:
        """Return whether a run is locked."""
        return run.absolute() in RUNS and RUNS[run.absolute()].writer is not None


def _copy(checkpoint: Checkpoint) -> Checkpoint:
    plain = {name: unpack(json.loads(json.dumps(pack(getattr(checkpoint, name))))) for name in ("values", "chain")}
    return evolve(checkpoint, arrays={name: np.array(x) for name, x in checkpoint.arrays.items()}, **plain)
