"""View a run from its folder alone: it has finished, or its process does not answer.

Nothing in a run folder is executed. Fields missing from the files are empty; values are the last recorded ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cached_property, partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field

from sigma_kernel import Registry
from sigma_kernel.contracts import (
    FOR_REPLAYS,
    AddressEntry,
    Branch,
    Checkpoint,
    HookEntry,
    LayerEntry,
    MediaEntry,
    RowHistory,
    RowLosses,
    StateEntry,
    StoredRun,
    Stretch,
    WorkEntry,
)
from sigma_kernel.curves import BranchedCurves, Curve, Window, limits, part
from sigma_kernel.errors import SigmaAddressError, SigmaCheckpointError, SigmaConfigError, SigmaError, SigmaStateError
from sigma_kernel.periods import Period, Periods
from sigma_monitor_web.ended import EndedRun
from sigma_monitor_web.listing import STORE
from sigma_monitor_web.stored_work import describe_stored_work
from sigma_run import Trained, load, open_recalled
from sigma_run.config import read_configuration
from sigma_run.launcher import describe_run, say

SHOWN = ("section", "shape", "units", "rate", "targets")  # settings of layers
MOST_EARLIER = 2  # networks of earlier states that are held: those of a film follow one another
LAYERS = "network.layers."
MEDIA = "media/"  # of the named bytes of a run
MOMENTS = {"iteration": "iterations", "epoch": "epochs", "second": "seconds"}


@define(eq=False)
class Archive(EndedRun):
    """A view of a run folder; changed files are read again.

    Args:
        folder: The run folder.
        data: The location of its data, if they were moved.
        guard: A context manager around each reading of a file or network, such as a time limit.
    """

    data: Path | None = None
    guard: Callable[[], AbstractContextManager[None]] = nullcontext
    _held: dict[str, tuple[Any, Any]] = field(factory=dict, init=False)  # what was read: version, content
    _trained: dict[tuple[str, int | None], Trained] = field(factory=dict, init=False)  # by trainer and iteration
    _views: dict[str, ArchivedTrainer] = field(factory=dict, init=False)
    _gate: threading.RLock = field(factory=threading.RLock, init=False)

    @property
    def name(self) -> str:
        """Return the name of the run, or else of its folder."""
        return str(self.read_settings().get("run", {}).get("name", self.folder.name))

    def status(self) -> str:
        """Return how the run ended; ``interrupted`` if its process did not say."""
        said = "running" if STORE.is_locked(self.folder) else self._read_summary().get("status", "unfinished")
        return "interrupted" if said == "unfinished" else str(said)

    def why(self) -> str:
        """Return the reason of a failure from the summary; empty if training did not fail."""
        return str(self._read_summary().get("why", ""))

    # -- what the run holds --------------------------------------------------------------------------------------------
    @cached_property
    def stored_run(self) -> StoredRun:
        """Return the run in its store; raise SigmaCheckpointError if there was none when it was asked for first."""
        return STORE.open(self.folder, say, lambda run: None)

    def _read(self, name: str, parse: Callable[[StoredRun], Any]) -> Any:
        """Return what is stored under a name, parsed once for each of its versions; None if there is nothing."""
        version, (held_version, content) = self.stored_run.version(name), self._held.get(name, (None, None))
        if held_version == version:
            return content
        with self._gate, self.guard():
            content = None if version is None else parse(self.stored_run)
            self._held[name] = version, content
        return content

    def _read_summary(self) -> Mapping[str, Any]:
        return self._read("summary.json", partial(describe_run, self.folder)) or {}

    def read_settings(self) -> Mapping[str, Any]:
        """Return what the configuration says; nothing if it cannot be read."""
        return self._read("config.toml", lambda stored: read_configuration(stored, self.folder).values) or {}

    def read_states(self, trainer: str) -> list[StateEntry]:
        """Return the checkpoints of a trainer that are intact, oldest first; raise SigmaCheckpointError for links."""
        with self.guard():
            checkpoints = self.stored_run.checkpoints(trainer)
            epochs, named = checkpoints.epochs(), checkpoints.names()
        return [StateEntry(number, epochs[number], False, True, *named.get(number, ())) for number in sorted(epochs)]

    def read_ends(self) -> Mapping[str, Mapping[str, Curve]]:
        """Return the last point of each curve that led to the result, by trainer and name."""
        return self._read("metrics", _parse_ends) or {}

    def read_media_entries(self) -> list[MediaEntry]:
        """Return the media of all trainers."""
        return self._read("media", lambda stored: stored.media(log=say)) or []

    def read_rows(self) -> list[tuple[int, Mapping[str, Any]]]:
        """Return the numbered rows of the journal, but digests."""
        return self._read("journal", _parsed_rows) or []

    # -- values --------------------------------------------------------------------------------------------------------
    def _values(self) -> dict[str, float]:
        """Return the last value of every curve, and the moment of each trainer."""
        values: dict[str, float] = {}
        for trainer, ends in self.read_ends().items():
            if ends:
                last = max(ends.values(), key=lambda end: end.iterations.item())
                values |= {f"{trainer}.{name}": getattr(last, column).item() for name, column in MOMENTS.items()}
            values |= {f"{trainer}.{name}": end.values.item() for name, end in ends.items()}
        return values

    def get(self, address: str) -> Any:
        """Return the last value at an address, or a parameter of the trained network."""
        trainer, _, name = address.partition(".")
        if name.startswith(LAYERS) and trainer in self.trainers():
            arrays = self.load_network(trainer).checkpoint.arrays
            if name in arrays:
                return arrays[name]
        values = self._values()
        if address not in values:
            raise SigmaAddressError(f"{address}: has no recorded values. Choose one of: {', '.join(list(values)[:8])}.")
        return values[address]

    def entries(self, pattern: str = "**") -> list[AddressEntry]:
        """Return the addresses that match a pattern."""
        registry, values = Registry(), self._values()
        for trainer in self.trainers():
            registry.branch(trainer, "trainer")
        for address in values:
            registry.bind(address, partial(values.__getitem__, address))
        matches = registry.find(pattern)
        return [AddressEntry(name, "whole" if isinstance(value, int) else "number", value) for name, value in matches]

    def stretches(self, address: str, after: int = 0, most: int = 2000) -> tuple[int, list[Stretch]]:
        """Return the points of an address after a cursor, on all branches, and the next cursor."""
        return self.points(address, Window(most=most), after)

    def points(self, address: str, window: Window, after: int = 0) -> tuple[int, list[Stretch]]:
        """Return the points of an address that a chart shows, and a cursor."""
        trainer, _, name = address.partition(".")
        with self.guard():
            return self.stored_run.points(trainer, name, window, after)

    # -- trainers ------------------------------------------------------------------------------------------------------
    def trainers(self) -> list[str]:
        """Return the names of the trainers."""
        named = self.read_settings().get("trainers")
        return [*named] if isinstance(named, Mapping) and named else [*self.read_ends()] or ["trainer"]

    def trainer(self, name: str) -> ArchivedTrainer:
        """Return the view of one trainer."""
        if name not in self.trainers():
            return ArchivedTrainer(self, name)
        with self._gate:
            return self._views.setdefault(name, ArchivedTrainer(self, name))

    def load_network(self, trainer: str, at: int | None = None, recalled: Checkpoint | None = None) -> Trained:
        """Return the trained network, or that of a checkpoint, loaded once; raises a SigmaError if it is impossible."""
        with self._gate:
            if (trainer, at) not in self._trained:
                with self.guard():
                    trained = self._load_network(trainer, at, recalled)
                self._trained[trainer, at] = trained
                earlier = [key for key in self._trained if key[1] is not None]
                for oldest in earlier[:-MOST_EARLIER]:
                    del self._trained[oldest]
            return self._trained[trainer, at]

    def _load_network(self, trainer: str, at: int | None, recalled: Checkpoint | None) -> Trained:
        if self.data is not None:
            with suppress(SigmaConfigError):  # the data of the run are in no file
                return self._load(trainer, at, recalled, self.data)
        return self._load(trainer, at, recalled)

    def _load(self, trainer: str, at: int | None, recalled: Checkpoint | None, data: Path | None = None) -> Trained:
        if recalled is not None:
            return open_recalled(self.folder, trainer, recalled, data=data)
        return load(self.folder, trainer=trainer, checkpoint=at, data=data)

    def journal(self, after: int = 0) -> list[tuple[int, Mapping[str, Any]]]:
        """Return the rows of the journal after a number, except digests."""
        return [(number, row) for number, row in self.read_rows() if number > after]


@define(eq=False)
class ArchivedTrainer:
    """A view of a trainer in a run folder."""

    archive: Archive
    name: str
    at: int | None = None  # the iteration of the state that it shows, if not the newest or best one
    recalled: Checkpoint | None = None  # that state, if it was computed again
    _splits: dict[str, int] | None = field(default=None, init=False)  # after reading the data
    _data_gate: threading.RLock = field(factory=threading.RLock, init=False)  # reading data may take long

    def stretches(self, name: str, after: int = 0, most: int = 2000) -> tuple[int, list[Stretch]]:
        """Return the points of an address after a cursor, on all branches, and the next cursor."""
        return self.points(name, Window(most=most), after)

    def points(self, name: str, window: Window, after: int = 0) -> tuple[int, list[Stretch]]:
        """Return the points of an address that a chart shows, and a cursor."""
        return self.archive.points(f"{self.name}.{name}", window, after)

    def media(self) -> list[MediaEntry]:
        """Return the media of the trainer; raise SigmaCheckpointError if their list is not a regular file."""
        entries = self.archive.read_media_entries()
        return [entry for entry in entries if entry.trainer == self.name]

    def media_version(self) -> Any:
        """Return what changes with each of them."""
        return self.archive.stored_run.version("media")

    def read_media(self, key: str) -> bytes | None:
        """Return the bytes of one of them, which are of a known key."""
        with self.archive.guard():
            return self.archive.stored_run.read(f"{MEDIA}{key}")

    def branches(self) -> list[Branch]:
        """Return the branches in the journal."""
        branches = [Branch(0)]
        for _, row in self.archive.read_rows():
            if (
                row.get("trainer") == self.name
                and row.get("command") == "rewind"
                and isinstance(row.get("branch"), int)
            ):
                branches.append(Branch(row["branch"], row.get("parent"), row.get("to", 0)))
        return branches

    def periods(self) -> list[Period]:
        """Return when it trained, by the times in the journal."""
        periods = Periods()
        for _, row in self.archive.read_rows():
            if row.get("trainer") == self.name:
                periods.take(row)
        return periods.found

    def network(self) -> list[LayerEntry]:
        """Return the layers of the trained network; none if it cannot be loaded."""
        try:
            model = self._network()
        except SigmaError:
            return []
        shapes = {name: tuple(value.shape) for name, value in model.checkpoint.arrays.items()}
        head, outputs = LAYERS, _output_shapes(model)
        return [
            LayerEntry(
                placed.name,
                placed.kind,
                placed.sources,
                outputs.get(placed.name, model.shapes.get(getattr(placed.layer, "section", ""))),
                {f"{self.name}.{n}": s for n, s in shapes.items() if n.startswith(f"{head}{placed.name}.")},
                {name: getattr(placed.layer, name) for name in SHOWN if hasattr(placed.layer, name)},
                {name: f"{self.name}.{head}{address}" for name, address in placed.layer.share.items()},
            )
            for placed in model.network.layers
        ]

    def work(self) -> list[WorkEntry]:
        """Return what layers hold, and the optimisers; none if the trained network cannot be loaded."""
        try:
            return describe_stored_work(self._network())
        except SigmaError:
            return []

    def record(self, readings: Mapping[str, float], units: Mapping[str, str]) -> None:
        """Raise SigmaStateError: nothing trains."""
        raise self.archive.ended_error()

    def hooks(self) -> list[HookEntry]:
        """Return the hooks of the configuration, in its order."""
        settings = self.archive.read_settings()
        own = settings.get("trainers", {}).get(self.name, {}).get("hooks", settings.get("hooks", {}))
        tables = {name: table if isinstance(table, Mapping) else {"type": table} for name, table in own.items()}
        hooks = {name: [str(table.get(key, "")) for key in ("type", "every", "when")] for name, table in tables.items()}
        return [HookEntry(name, kind, at, when, (), False, False) for name, (kind, at, when) in hooks.items()]

    def states(self) -> list[StateEntry]:
        """Return the checkpoints that are intact, oldest first."""
        try:
            return self.archive.read_states(self.name)
        except SigmaCheckpointError:  # loading one raises it
            return []

    def state(self, iteration: int) -> ArchivedTrainer:
        """Return the trainer as a checkpoint has it."""
        if iteration not in [state.iteration for state in self.states()]:
            raise SigmaStateError(f"iteration {iteration}: no such state is kept. Choose another one.")
        return ArchivedTrainer(self.archive, self.name, iteration)

    def with_state(self, state: Checkpoint) -> ArchivedTrainer:
        """Return the trainer in a state that was computed again."""
        return ArchivedTrainer(self.archive, self.name, state.values["clock"]["iteration"], state)

    def parameters(self) -> dict[str, np.ndarray]:
        """Return what layers hold, by address."""
        arrays = self._network().checkpoint.arrays
        return {f"{self.name}.{name}": np.array(x) for name, x in arrays.items() if name.startswith(LAYERS)}

    def _network(self) -> Trained:
        return self.archive.load_network(self.name, self.at, self.recalled)

    def splits(self) -> dict[str, int]:
        """Return the number of rows of each split; the data are read now.

        Raises a SigmaError with the reason if they cannot be read.
        """
        with self._data_gate:
            if self._splits is None:
                self._splits = self._network().data.splits()
            return self._splits

    def rows(self, split: str, numbers: Sequence[int], prepared: bool = False) -> dict[str, np.ndarray]:
        """Return the sections of numbered rows of a split."""
        self.splits()
        return self._network().data.rows(split, numbers, prepared)

    def losses(self, split: str, most: int | None = None) -> RowLosses:
        """Return the losses of rows of a split, with the parameters of the trained network."""
        self.splits()
        return self._network().data.losses(split, most)

    def row_history(self, split: str) -> RowHistory:
        """Return what a hook had recorded of each row of a split, by the checkpoint."""
        return self._network().data.row_history(split)

    def edits(self) -> dict[str, dict[str, Any]]:
        """Return the edits of each split, once the data have been read."""
        return self._network().data.edits() if self._splits is not None else {}

    def classes(self) -> list[Any]:
        """Return the class names; none if the network cannot be loaded."""
        try:
            return list(self._network().classes)
        except SigmaError:
            return []

    def columns(self) -> dict[str, list[str]]:
        """Return the names of columns by section; none if the network cannot be loaded."""
        try:
            return {name: list(names) for name, names in self._network().columns.items()}
        except SigmaError:
            return {}

    def targets(self) -> dict[str, list[str]]:
        """Return the names of columns by output; none if the network cannot be loaded."""
        try:
            return {name: list(names) for name, names in self._network().targets.items()}
        except SigmaError:
            return {}

    def activations(self, samples: Any) -> dict[str, np.ndarray]:
        """Return the output of each layer of the trained network."""
        return self._network().activations(samples)

    def predict(self, samples: Any) -> dict[str, np.ndarray]:
        """Return the predictions of the trained network."""
        trained = self._network()
        outputs = trained.predict(samples)
        return outputs if isinstance(outputs, dict) else {trained.network.outputs[0].name: outputs}


def _output_shapes(model: Trained) -> dict[str, tuple[int, ...]]:
    """Return the shapes of one sample at each layer, as far as they follow from those of the inputs."""
    return {row.name: row.shape for row in model.trainer.summary().rows if row.shape is not None}


# -- reading -----------------------------------------------------------------------------------------------------------
def _parse_ends(stored: StoredRun) -> dict[str, dict[str, Curve]]:
    """Return the last point of each curve that led to the result: of the newest branch that has one."""
    whole = _read_around(stored, inf)
    ends: dict[str, dict[str, Curve]] = {trainer: {} for trainer in whole}
    for end in sorted({end for own in whole.values() for end in limits(own.branches)}, reverse=True):
        for trainer, own in (whole if end == inf else _read_around(stored, end)).items():
            ends[trainer] = {**_last_points(own, end), **ends.get(trainer, {})}
        if all(len(ends[trainer]) == len(own.lines) for trainer, own in whole.items()):
            break
    return ends


def _read_around(stored: StoredRun, iteration: float) -> Mapping[str, BranchedCurves]:
    return stored.curves(lambda text: None, Window(span=(iteration, iteration)))


def _last_points(stretch: BranchedCurves, end: float) -> dict[str, Curve]:
    """Return the last point of each curve on the branches that led to the result up to this iteration, if there is."""
    here = {at for at, limit in enumerate(limits(stretch.branches)) if limit == end}
    lines = {name: {at: own[at] for at in own if at in here} for name, own in stretch.lines.items()}
    curves = BranchedCurves(stretch.branches, lines).curves()
    return {name: part(curve, slice(-1, None)) for name, curve in curves.items() if len(curve.values)}


def _parsed_rows(stored: StoredRun) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the numbered rows of a journal, but those for replays, which take most of its bytes."""
    return [(n, row) for n, row in enumerate(stored.journal_rows(), 1) if row.get("event") not in FOR_REPLAYS]
