"""Contract of stores: where checkpoints, journals and metrics of runs are kept.

A store is independent of training. It keeps bytes by name, arrays by name with plain JSON values, and rows; it
guarantees which of these survive a crash, in which order, and that one process writes to a run at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isnan
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from attrs import asdict, define, evolve, field, frozen
from attrs.converters import optional

from sigma_kernel.contracts.media import FOLDER, Media, MediaEntry, decode_media
from sigma_kernel.contracts.steering import Hook
from sigma_kernel.curves import (
    BranchedCurves,
    Place,
    Stretch,
    Timeline,
    Window,
    begin_cursor,
    join_rows,
    limits,
    part,
    place_of,
)
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError, SigmaStateError, suggest_name
from sigma_kernel.settings import Settled, ge, in_, optional as or_none

Log = Callable[[str], Any]
Row = Mapping[str, Any]
EVERYTHING = Window()  # of the curves, as far as their points are not too many
ALL = 2**62  # points of a curve
NAMED = ("name", "note")  # values of a checkpoint that a person named
FOR_REPLAYS = ("digest", "ages")  # events of a journal that are not shown to people


@frozen(repr=False)
class Checkpoint:
    """A saved state: arrays by name, everything else as plain JSON values, and metadata.

    ``made_with`` are versions by name; retention of the best compares ``score``, and never removes a checkpoint with
    ``keep``; ``chain`` is the end of the journal at the time of saving.
    """

    arrays: Mapping[str, np.ndarray]
    values: Mapping[str, Any]
    made_with: Mapping[str, str] = field(factory=dict)
    score: float | None = field(default=None, converter=optional(float))
    keep: bool = False
    chain: Mapping[str, Any] = field(factory=dict)

    def in_place_of(self, manifest: Mapping[str, Any]) -> Checkpoint:
        """Return this checkpoint with the score and the name of the one that it replaces, unless it has its own."""
        named = {name: manifest["values"][name] for name in NAMED if manifest["values"].get(NAMED[0])}
        return evolve(
            self,
            score=manifest["score"] if self.score is None else self.score,
            keep=self.keep or bool(named),
            values={**named, **self.values},
        )

    def __repr__(self) -> str:
        return f"Checkpoint({len(self.arrays)} arrays, iteration {self.values.get('clock', {}).get('iteration')})"


Use = Callable[[str, Checkpoint], None]  # take a checkpoint by its label, or raise SigmaCheckpointError


# -- rows --------------------------------------------------------------------------------------------------------------
class RowWriter(ABC):
    """Rows that are appended, of plain JSON values: never changed, and in the order in which they came."""

    @property
    def is_kept(self) -> bool:
        """Return whether they are written."""
        return True

    @property
    @abstractmethod
    def is_behind(self) -> bool:
        """Return whether rows wait to be written, as where a disk is full."""

    @abstractmethod
    def append(self, row: Row) -> None:
        """Add a row, from any thread. It never fails: what cannot be written now is written with a later row."""


class Journal(RowWriter):
    """The journal of a run, shared by its trainers."""

    configuration: str = ""  # a digest of the run's configuration

    @abstractmethod
    def durable(self) -> Exception | None:
        """Wait until all rows so far survive a crash; return the reason if they cannot."""

    @abstractmethod
    def chain(self, trainer: str, place: int = -1) -> dict[str, Any]:
        """Return the end of the journal, for a checkpoint of a trainer: with it, rows that are lost later are missed.

        A resume from that checkpoint reads the rows of the trainer from a ``place`` among them on.
        """


class NoRows(Journal):
    """The rows of a run that is not stored: none."""

    @property
    def is_kept(self) -> bool:
        """Return that they are not."""
        return False

    @property
    def is_behind(self) -> bool:
        """Return that none waits."""
        return False

    def append(self, row: Row) -> None:
        """Drop a row."""

    def durable(self) -> None:
        """Return at once."""

    def chain(self, trainer: str, place: int = -1) -> dict[str, Any]:
        """Return nothing."""
        return {}


class Excerpt(Protocol):
    """The verified rows of a journal, from its beginning or from a place on that newest checkpoints name."""

    @property
    def place(self) -> str:
        """Return where the journal is, for people."""

    @property
    def is_complete(self) -> bool:
        """Return whether it begins at the beginning."""
        return True

    def rows(self, trainer: str) -> list[dict[str, Any]]:
        """Return the rows of a trainer, each with its index as ``place``.

        Large fields may be left out of a row, which then has ``stored``: an object whose ``read()`` returns them.
        Raises SigmaCheckpointError for an invalid row.
        """

    def count_before(self, trainer: str) -> tuple[int, int]:
        """Return how many rows of a trainer came before, and how many of these began with a resume."""
        return 0, 0

    def reaches(self, checkpoint: Checkpoint) -> bool:
        """Return whether it holds all that a resume from a checkpoint needs."""
        return True


# -- checkpoints -------------------------------------------------------------------------------------------------------
Mark = tuple[float | None, bool]  # the score of a checkpoint, and whether it is marked to keep


def thin(moments: Iterable[int], most: int, fixed: Collection[int] = ()) -> list[int]:
    """Return the moments to keep, in order: at most ``most``, and those ``fixed``; the older, the further apart.

    The newest is kept and, of two or more, the first. One by one, that moment goes whose neighbours are closest for
    their age. So after ``T`` iterations a gap that this has made is at most ``T ** (1 / ((most - 1) // 2)) - 1`` times
    the age of its newer end, whenever it was made: among that many pairs of neighbours the ratios of ages multiply to
    at most ``T``.
    """
    kept = sorted({*moments})
    apart, first = {*fixed}.intersection(kept), int(most > 1)

    def gap(n: int) -> float:
        """Return the gap without a moment, relative to its age."""
        before = kept[max(n - 1, 0)]
        return (kept[n + 1] - before) / (kept[-1] - before)

    while len(kept) - len(apart) > most and (free := [n for n in range(first, len(kept) - 1) if kept[n] not in apart]):
        del kept[min(free, key=gap)]
    return kept


@frozen
class Retention:
    """Which checkpoints are kept: the newest ``last`` (all, if None), the ``best`` by score, and marked ones.

    Of the others, ``spread`` are kept over the whole run: the first, and the older, the further apart.
    """

    last: int | None = field(default=None, validator=or_none(ge(1)))
    spread: int = field(default=0, validator=ge(0))
    best: int = field(default=0, validator=ge(0))
    prefer: str = field(default="greatest", validator=in_(("greatest", "least")))

    def deserving(self, marks: Mapping[int, Mark]) -> set[int]:
        """Return the checkpoints kept by score (of equal ones the earlier), or marked to keep."""
        sign = -1 if self.prefer == "greatest" else 1
        scores = {n: sign * score for n, (score, _) in marks.items() if score is not None and not isnan(score)}
        best = sorted(scores, key=lambda n: (scores[n], n))[: self.best]
        return {*best, *(n for n, (_, keep) in marks.items() if keep)}

    def select_removable(self, marks: Mapping[int, Mark], newest: int) -> set[int]:
        """Return the saved checkpoints to delete, now that the ``newest`` is complete."""
        if self.last is None:
            return set()
        kept = {newest, *sorted(marks)[-self.last :], *self.deserving(marks)}
        return {*marks} - kept.union(thin(marks, self.spread, kept) if self.spread else ())


class Checkpoints(ABC):
    """The checkpoints of one trainer, each written atomically.

    A label is the number of the iteration. ``12.branch-3`` labels a checkpoint on an abandoned branch, ``12.edited-7``
    a state continued under other settings: neither is ever the newest.
    """

    retention: Retention = Retention()

    @abstractmethod
    def numbers(self) -> list[int]:
        """Return the iterations of the checkpoints, in order."""

    def epochs(self) -> dict[int, int]:
        """Return the epochs of the checkpoints that are intact, by iteration; it is called often."""
        epochs = dict[int, int]()
        for number in self.numbers():
            with suppress(SigmaCheckpointError):  # reading it raises the error
                epochs[number] = int(self.read_manifest(str(number), _silent)["values"]["clock"]["epoch"])
        return epochs

    def names(self) -> dict[int, tuple[str, str]]:
        """Return name and note of the intact checkpoints that a person named, by iteration."""
        names = dict[int, tuple[str, str]]()
        for number in self.numbers():
            with suppress(SigmaCheckpointError):
                values = self.read_manifest(str(number), _silent)["values"]
                if values.get("name"):
                    names[number] = str(values["name"]), str(values.get("note", ""))
        return names

    def find_named(self, name: str) -> int:
        """Return the iteration of a checkpoint that a person named; raise SigmaStateError if there is none."""
        iterations = {own: number for number, (own, _) in self.names().items()}
        if name not in iterations:
            raise SigmaStateError(f"no state is named {name!r}.{suggest_name(name, iterations, 'There are:')}")
        return iterations[name]

    @abstractmethod
    def list_abandoned(self, number: int) -> list[str]:
        """Return the labels of the checkpoints of an iteration on abandoned branches."""

    @abstractmethod
    def place(self, label: str) -> Path:
        """Return where a checkpoint is, or would be, for people."""

    @abstractmethod
    def read_manifest(self, label: str, log: Log) -> Mapping[str, Any]:
        """Return all of a checkpoint but its arrays, by name; raise SigmaCheckpointError if that is damaged."""

    @abstractmethod
    def read(self, label: str, log: Log) -> Checkpoint:
        """Return a checkpoint, verified; raise SigmaCheckpointError if it is missing or damaged."""

    def newest(self, log: Log, use: Use, among: Sequence[int] = ()) -> tuple[str, Checkpoint]:
        """Return the newest intact checkpoint, or the first of those named, that ``use`` accepts; log the others.

        Raises SigmaCheckpointError if none is left.
        """
        if not (numbers := self.numbers()):
            remedy = "One is saved when a run ends, and by the hook checkpoint"
            raise SigmaCheckpointError(f"{self.place('')}: holds no checkpoint. {remedy}.")
        for label in map(str, among or numbers[::-1]):
            try:
                checkpoint = self.read(label, log)
                use(label, checkpoint)
            except SigmaCheckpointError as error:
                log(str(error))
            else:
                return label, checkpoint
        remedy = "Use its own configuration, or train again"
        raise SigmaCheckpointError(f"{self.place('')}: has no intact checkpoint that fits. {remedy}.")

    @abstractmethod
    def write(self, label: str, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, and wait for it; raise SigmaCheckpointError if that fails."""

    # -- in the background ---------------------------------------------------------------------------------------------
    def retain(self, hooks: Iterable[Hook], direction: Callable[[str], str]) -> None:
        """Set the retention to what these hooks ask for; raise SigmaConfigError if it is invalid.

        ``direction`` says which values at an address are better.
        """
        asked = {name: value for hook in hooks for name, value in hook.retains.items()}
        if (address := asked.pop("value", None)) is not None:
            asked.setdefault("prefer", "greatest" if direction(address) == "higher" else "least")
        self.retention = Retention(**asked)

    def ranking(self) -> dict[str, Any]:
        """Return the retention as plain values."""
        return asdict(self.retention)

    @abstractmethod
    def save(self, number: int, checkpoint: Checkpoint) -> Any:
        """Queue a checkpoint to be written once the journal is durable; its arrays are not changed after this."""

    @abstractmethod
    def set_aside(self, after: int, branch: int) -> None:
        """Count the checkpoints after an iteration as those of an abandoned branch."""

    @abstractmethod
    def wait(self) -> None:
        """Wait until all checkpoints are written or have failed."""

    def flush(self) -> None:
        """Wait until all checkpoints are written; raise SigmaCheckpointError if the newest one could not be."""
        self.wait()


# -- runs --------------------------------------------------------------------------------------------------------------
class StoredRun(ABC):
    """One run in a store: named bytes, a journal, metrics, and checkpoints.

    Rows are kept once the run was created or reopened: until then, and for reading alone, nothing is written.
    """

    journal: Journal
    metrics: RowWriter
    media_log: RowWriter = NoRows()  # rows of :func:`join_media`; a store that keeps none needs no :meth:`remove`

    @property
    def path(self) -> Path | None:
        """Return its folder, if it has one."""
        return None

    @property
    @abstractmethod
    def place(self) -> str:
        """Return its location as text for users."""

    @abstractmethod
    def lock(self) -> None:
        """Let no other process write to the run; raise SigmaStateError if one does."""

    @abstractmethod
    def release(self) -> None:
        """Let others write."""

    @abstractmethod
    def recover(self, log: Log) -> None:
        """Recover from a crash, while the run is locked; raise SigmaCheckpointError if that fails."""

    @abstractmethod
    def reopen(self, text: str | None, journal: Excerpt) -> None:
        """Go on with the run after the rows of its journal.

        A ``text`` is its new configuration: :meth:`commit` writes it, once the journal names it.
        """

    @abstractmethod
    def commit(self) -> None:
        """Write the configuration, once the journal is durable; raise SigmaStateError if either fails."""

    @abstractmethod
    def write(self, name: str, data: bytes | str, durable: bool = True) -> Path:
        """Write named bytes, or a text, atomically; return their location as text for users.

        They survive a crash if ``durable``; a ``/`` in the name of others is a folder. Raises SigmaStateError.
        """

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """Return the named bytes, ``config.toml`` the configuration; None if there are none.

        Raises SigmaCheckpointError if they cannot be read.
        """

    def remove(self, name: str) -> None:  # noqa: B027  # see ``media_log``
        """Remove named bytes, if they are there; a value of media goes to make room for others."""

    @abstractmethod
    def version(self, name: str) -> Any:
        """Return what changes with named bytes, with ``journal``, ``metrics`` or ``media``; None without them.

        Monitors compare it, and read again only what has changed.
        """

    @abstractmethod
    def trainers(self) -> list[str]:
        """Return the names of the trainers that have checkpoints, sorted."""

    @abstractmethod
    def checkpoints(self, trainer: str) -> Checkpoints:
        """Return the checkpoints of a trainer, always by the same object."""

    @abstractmethod
    def keep_initial(self, trainer: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep initial values of a trainer that come from outside, by address."""

    @abstractmethod
    def initial(self, trainer: str) -> dict[str, np.ndarray]:
        """Return the initial values that are kept for a trainer."""

    @abstractmethod
    def excerpt(self, trainers: Collection[str], log: Log, whole: bool = True) -> Excerpt:
        """Return the journal, with the rows missing at its end that checkpoints still hold.

        If the ``whole`` is not needed, it may begin where the newest checkpoints of these trainers say. Raises
        SigmaCheckpointError if the journal was changed or cut, or does not fit the configuration.
        """

    @abstractmethod
    def journal_rows(self) -> Iterator[Row]:
        """Yield the rows of the journal that can be read, to be shown: none is verified, and all are strict JSON."""

    @abstractmethod
    def metric_rows(self, log: Log) -> Iterator[Row]:
        """Yield the rows of metrics, in their order; none if they are missing.

        Each has its trainer, ``iteration``, ``epoch``, ``seconds``, ``branch``, ``session`` and ``start``, the
        ``texts`` that were published, and by name ``values``: the ``last``, the least (``low``), the greatest
        (``high``) and the ``mean`` since the row before, and their ``count``.  A number that is not finite is None.
        """

    def curves(self, log: Log, window: Window = EVERYTHING) -> Mapping[str, BranchedCurves]:
        """Return the metrics of each trainer, as far as they are in a window; none if they are missing.

        Dashboards, plots and exports all read here, also while the run is written, so that they show the same points.
        """
        return {trainer: window.cut(branched) for trainer, branched in join_rows(self.metric_rows(log)).items()}

    def points(self, trainer: str, name: str, window: Window, after: int = 0) -> tuple[int, list[Stretch]]:
        """Return what is stored of a value on all branches, and a cursor: in a window, or all after a cursor.

        The cursor is 0, without points, if those before ``after`` were replaced: then ask for the window again.
        """
        branched = self.curves(_silent, Window([name], most=ALL)).get(trainer, BranchedCurves([], {}))
        shown, pieces = window.cut(branched) if not after else branched, list[Stretch]()
        begin = end = begin_cursor(branched.replaced)
        for whole, own in zip(branched.stretches(name), shown.stretches(name), strict=True):
            first, end = max(0, after - end), end + len(whole.curve.values)
            pieces.append(Stretch(own.branch, part(own.curve, slice(first, None))))
        if after and not begin <= after <= end:
            return 0, []
        return end, [piece for piece in pieces if len(piece.curve.values)]

    def media_rows(self, log: Log) -> Iterator[Row]:
        """Yield the rows of ``media_log`` in their order; none if they are missing."""
        return iter(())

    def media(self, trainer: str = "", name: str = "", log: Log | None = None) -> list[MediaEntry]:
        """Return what media of a trainer, by default of all, are there under a name, or all; :meth:`medium` has them.

        They are in order of branches and iterations.
        """
        entries = join_media(self.media_rows(log or _silent))
        return [entry for entry in entries if trainer in ("", entry.trainer) and name in ("", entry.name)]

    def medium(self, entry: MediaEntry) -> Media:
        """Return one of them; raise SigmaCheckpointError if it is missing or damaged."""
        return decode_media(entry, self.read(f"{FOLDER}{entry.key}"))

    @abstractmethod
    def wait(self) -> None:
        """Wait until all checkpoints are written or have failed."""

    def flush(self) -> None:
        """Wait until everything is written; raise SigmaCheckpointError if the newest checkpoint failed."""
        self.wait()


class Store(Settled, ABC):
    """A store of runs: it creates, opens and lists them."""

    @abstractmethod
    def create(
        self,
        parent: Path,
        name: str,
        log: Log,
        describe: Callable[[StoredRun], str],
        fill: Callable[[StoredRun], None],
        exact: bool = False,
    ) -> StoredRun:
        """Create a run of a new name, and fill it; on failure raise a SigmaError, and leave nothing.

        The new name begins with ``name``.  If that is ``exact``, the run is ``name`` in ``parent``, so that a program
        finds it again; SigmaConfigError if something has that place.
        ``describe`` returns the text of its configuration, and writes the files it refers to; ``fill`` writes all other
        files except records, and restores removed ones.
        """

    @abstractmethod
    def open(self, path: Path, log: Log, fill: Callable[[StoredRun], None]) -> StoredRun:
        """Return a run for reading, and for writing once it is locked and reopened; nothing is read yet.

        Raises SigmaCheckpointError if there is none.
        """

    @abstractmethod
    def runs(self, places: Sequence[Path]) -> Iterator[Path]:
        """Yield the runs at and below some places, oldest first."""

    @abstractmethod
    def is_locked(self, run: Path) -> bool:
        """Return whether a process writes to a run; False if that cannot be determined."""


def _silent(text: str) -> None:
    """Log nothing: reading the checkpoint logs it."""


# -- media -------------------------------------------------------------------------------------------------------------
ENTRY = ("trainer", "name", "iteration", "epoch", "seconds", "branch", "kind", "key", "size", "caption", "facts")


def join_media(rows: Iterable[Row]) -> list[MediaEntry]:
    """Return what media a run has, from its rows in their order; after a resume they replace those from there on.

    A row has the fields of :class:`MediaEntry`, ``session`` and ``start``; or it has ``removed``: a list of the name,
    the branch and the iteration of each value that had to make room for others.
    """
    trainers = dict[str, _MediaRows]()
    for row in rows:
        trainers.setdefault(row["trainer"], _MediaRows()).add(row)
    return [entry for own in trainers.values() for entry in own.entries()]


@define(eq=False, repr=False)
class _MediaRows:
    """The media of one trainer so far."""

    timeline: Timeline[list[MediaEntry]] = field(factory=Timeline)
    latest: list[MediaEntry] = field(factory=list)  # of the latest stretch
    end: tuple[Place | None, float] = (None, 0.0)  # where its last row was published, and at which iteration

    def add(self, row: Row) -> None:
        """Add a row."""
        if "removed" in row:
            gone = {(name, branch, iteration) for name, branch, iteration in row["removed"]}
            for own in (stretch for at in self.timeline.stretches for stretch, _ in at):
                own[:] = [entry for entry in own if (entry.name, entry.branch, entry.iteration) not in gone]
            return
        place, at = place_of(row), row["iteration"]
        if place != self.end[0] or at < self.end[1]:
            self.latest = []
            self.timeline.add(place, at, self.latest, at < self.end[1])
        self.end = place, at
        self.latest.append(MediaEntry(**{name: row[name] for name in ENTRY}))

    def entries(self) -> list[MediaEntry]:
        """Return them, of each name and iteration of a branch the newest."""
        entries, ends = list[MediaEntry](), limits(self.timeline.branches)
        for own, until in zip(self.timeline.stretches, ends, strict=True):
            values = (entry for stretch, end in own for entry in stretch if entry.iteration <= end)
            newest = {(entry.name, entry.iteration): entry for entry in values}
            for entry in sorted(newest.values(), key=lambda entry: entry.iteration):
                entries.append(evolve(entry, is_left=entry.iteration > until))
        return entries


# -- what describes a run ----------------------------------------------------------------------------------------------
class ConfigurationFormat(Settled):
    """Write runs that were made in Python as configurations (component kind ``configuration``).

    The kernel uses the default for the role ``run``: for ``config.toml`` of a run folder, and for ``trainer.save``.
    """

    @abstractmethod
    def describe(self, environment: Any, run: Path) -> str:
        """Return the text that describes an environment; save the arrays that it refers to in its run folder.

        A value that cannot be written is a SigmaWarning at the caller's line.
        """

    def describe_trainer(self, trainer: Any, folder: Path) -> str:
        """Return the text that describes one prepared trainer, without its hooks and its operator, for other processes.

        Rows that were given as arrays are saved in the folder, however many. Raises SigmaConfigError for what cannot be
        written.
        """
        raise SigmaConfigError(f"{type(self).__name__} describes no trainer for other processes. Train in this one.")

    def build(self, text: str, folder: Path, modules: Iterable[str] = ()) -> Any:
        """Return the environment that a text describes, without monitors; relative paths start in a folder.

        Own code that it names is imported only of the packages and modules in ``modules``.
        """
        raise SigmaConfigError(f"{type(self).__name__} builds no environment from a text. Train in one process.")

    @abstractmethod
    def save(self, environment: Any, trainer: Any, path: Path | str) -> Path:
        """Write configuration, parameters and state of a trainer to a directory, atomically; return its path.

        Another saved network there is replaced.  Raises SigmaConfigError if a setting cannot be written, and
        SigmaStateError if the directory holds anything else, or cannot be written.
        """
