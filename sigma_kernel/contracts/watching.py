"""Contracts of monitors: their views of an environment, and steering."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from attrs import define, field, frozen

from sigma_kernel.clock import Moment
from sigma_kernel.contracts.media import MediaEntry
from sigma_kernel.contracts.steering import RowHistory, RowLosses
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.curves import Branch as Branch, BranchedCurves, Stretch as Stretch, Window
from sigma_kernel.graph.reprs import brief
from sigma_kernel.periods import Period
from sigma_kernel.settings import Settled


@frozen
class AddressEntry:
    """An address, with the kind of its value.

    Args:
        address: The address, from the root.
        type: ``number``, ``whole`` (number), ``flag``, ``text``, ``array``, or ``any``.
        value: The value; None if there is none yet, and for arrays and others that are not plain.
        settable: Whether it can be set.
        low: The least value; ``above``, if the value must be greater than that.
        high: The greatest value; ``below``, if the value must be less than that.
        unit: Its unit, such as ``seconds``; empty for a pure number.
        doc: Its description.
        tags: The tags of the levels above it, such as the kinds of layers.
        shape: The shape of an array; None if it is not known.
    """

    address: str
    type: str = "any"
    value: Any = None
    settable: bool = False
    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None
    unit: str = ""
    doc: str = ""
    tags: tuple[str, ...] = ()
    shape: tuple[int, ...] | None = None

    __repr__ = brief


@frozen
class LayerEntry:
    """A layer: its sources, the shape of its output for one sample, its parameters' shapes and its settings.

    ``parameters`` are by their full addresses, ``settings`` by name; ``component`` is the name of its kind. ``shared``
    holds the addresses of parameters of other layers that it uses, by its own names for them.
    """

    name: str
    component: str
    sources: tuple[str, ...]
    shape: tuple[int, ...] | None
    parameters: Mapping[str, tuple[int, ...]]
    settings: Mapping[str, Any]
    shared: Mapping[str, str] = field(factory=dict)

    __repr__ = brief


@frozen
class WorkEntry:
    """What a layer or an optimiser takes of a training step: an estimate from the graph of the step.

    Args:
        name: The layer, or the head of the addresses of the optimiser.
        operations: Floating-point operations, gradients included; None if they are not known.
        sizes: Bytes of its ``parameters`` and state, of their ``slots``, and of what is ``kept`` for gradients.
        component: The kind of an optimiser; empty for a layer.
        updates: The layers whose parameters an optimiser updates.
        minimises: The costs that an optimiser minimises.
    """

    name: str
    operations: int | None
    sizes: Mapping[str, int]
    component: str = ""
    updates: tuple[str, ...] = ()
    minimises: tuple[str, ...] = ()

    __repr__ = brief


@frozen
class HookEntry:
    """A hook, in the callback order, and the reason for its position."""

    name: str
    component: str
    every: str
    when: str
    reasons: tuple[str, ...]
    muted: bool
    background: bool

    __repr__ = brief


@frozen
class StateEntry:
    """A state that ``rewind`` can restore: ``kept`` in memory, ``saved`` as a checkpoint, or both.

    A person may have given it a ``name`` and a ``note``.
    """

    iteration: int
    epoch: int
    kept: bool
    saved: bool
    name: str = ""
    note: str = ""


@define(eq=False)
class Ticket:
    """A command that was sent: queued, applied at a moment of each trainer, or refused."""

    number: int
    command: str
    arguments: Mapping[str, Any]
    answer: Future[Mapping[str, Moment]] = field(factory=Future, repr=False)

    __repr__ = brief

    @property
    def state(self) -> str:
        """Return ``queued``, ``applied`` or ``refused``."""
        if not self.answer.done():
            return "queued"
        return "applied" if self.answer.exception() is None else "refused"

    @property
    def moments(self) -> dict[str, Moment]:
        """Return the moment at which each trainer applied it, by name."""
        return dict(self.answer.result()) if self.state == "applied" else {}

    @property
    def why(self) -> str:
        """Return why it was refused."""
        return str(self.answer.exception()) if self.state == "refused" else ""

    def result(self, timeout: float | None = None) -> dict[str, Moment]:
        """Wait for the moments, at most ``timeout`` seconds; raises why the command was refused, or TimeoutError."""
        return dict(self.answer.result(timeout))


class TrainerView(Protocol):
    """A monitor's view of one trainer; addresses start at the trainer unless stated otherwise.

    Raises SigmaStateError before the trainer is prepared, except for recorded values; the same view shows the trainer
    afterwards.
    """

    def stretches(self, name: str, after: int = 0, most: int = 2000) -> tuple[int, list[Stretch]]:
        """Return what was measured at an address since a cursor, and the next cursor, as :meth:`View.stretches`."""

    def points(self, name: str, window: Window, after: int = 0) -> tuple[int, list[Stretch]]:
        """Return the points of an address that a chart shows, as :meth:`View.points`."""

    def branches(self) -> list[Branch]:
        """Return the branches of its history, the present one last."""

    def periods(self) -> list[Period]:
        """Return when it trained without a pause, in order; none of runs of earlier versions, which held no times."""

    def media(self) -> list[MediaEntry]:
        """Return what media hooks have published, on all branches, in order of branches and iterations."""

    def media_version(self) -> Any:
        """Return what changes with each of them; None if there are none."""

    def read_media(self, key: str) -> bytes | None:
        """Return the bytes of one of them by the key of its entry; None if they are no longer there."""

    def network(self) -> list[LayerEntry]:
        """Return its layers; their addresses start at the root."""

    def work(self) -> list[WorkEntry]:
        """Return what each layer and each optimiser takes of a training step; empty if that is not known."""

    def record(self, readings: Mapping[str, float], units: Mapping[str, str]) -> None:
        """Record what a monitor has measured of the machine, at addresses below ``system.``, with their units.

        It waits for the next boundary.  Readings are stored with the curves.  They are no part of the state, hooks
        cannot read them, and no replay compares them.  Nothing is recorded unless the trainer trains.
        """

    def hooks(self) -> list[HookEntry]:
        """Return its hooks in callback order."""

    def states(self) -> list[StateEntry]:
        """Return the states that it can be rewound to, oldest first."""

    def state(self, iteration: int) -> TrainerView:
        """Return the trainer as it was in one of its states: what its parameters of then are, and compute.

        Rows, their edits and settings are those of now. Raises SigmaStateError if it has no such state any more, or
        another network since.
        """

    def with_state(self, state: Checkpoint) -> TrainerView:
        """Return the trainer as it was in a state that was computed again, as :meth:`state` does."""

    def parameters(self) -> dict[str, np.ndarray]:
        """Return copies of its parameters and of the state of its layers, by address."""

    def splits(self) -> dict[str, int]:
        """Return the number of rows of each split of its data."""

    def classes(self) -> list[Any]:
        """Return the class names of its data by index; empty if it has none."""

    def columns(self) -> dict[str, list[str]]:
        """Return the names of the columns of each section of inputs that has any."""

    def targets(self) -> dict[str, list[str]]:
        """Return the names of predicted columns by output; outputs without names are left out."""

    def rows(self, split: str, numbers: Sequence[int], prepared: bool = False) -> dict[str, np.ndarray]:
        """Return the sections of numbered rows of a split, as they are in the data, or preprocessed.

        Rows are numbered from 0, before they are shuffled. Classes are indices; labels that were changed are those of
        :meth:`edits`.
        """

    def losses(self, split: str, most: int | None = None) -> RowLosses:
        """Return the loss of each row of a split as it is edited now, or of the ``most`` rows with the greatest losses.

        Parameters are copied between two bursts; these and the next two are computed in the calling thread.
        """

    def row_history(self, split: str) -> RowHistory:
        """Return what a hook has recorded of each row of a split; raise SigmaStateError if none has."""

    def predict(self, samples: Any) -> dict[str, np.ndarray]:
        """Return the predictions of each output for samples, as ``Trainer.predict`` takes them."""

    def activations(self, samples: Any) -> dict[str, np.ndarray]:
        """Return the output of each layer before the costs for samples, by its name, one row per sample."""

    def edits(self) -> dict[str, dict[str, Any]]:
        """Return the rows ``excluded`` by commands, a list, and new ``labels`` by row, for each split that is edited.

        They act from the next epoch on; how many are in force is at ``data.<split>.*``.
        """


class View(Protocol):
    """A monitor's view of an environment, from its own threads; addresses start at the root.

    Only arrays wait for training: they are copied between two bursts. Numbered entries are read from the last number
    seen; the number of an entry never changes, and old entries are dropped.
    """

    @property
    def name(self) -> str:
        """Return the name of the environment."""

    @property
    def folder(self) -> Path | None:
        """Return the run folder, or None."""

    def status(self) -> str:
        """Return the state of the run.

        It is created, prepared, compiling, running or paused; at the end finished, stopped, interrupted or failed.
        """

    def why(self) -> str:
        """Return why training failed, as a sentence; empty if it did not, or if that is not known."""

    def wait(self, seconds: float) -> bool:
        """Sleep; return True once the run has ended and the monitor should return."""

    def log(self, text: str) -> None:
        """Log a message to the monitors, this one included."""

    # -- values --------------------------------------------------------------------------------------------------------
    def get(self, address: str) -> Any:
        """Return a published value."""

    def find(self, pattern: str) -> list[tuple[str, Any]]:
        """Return all published values whose addresses match a pattern, arrays included."""

    def entries(self, pattern: str = "**") -> list[AddressEntry]:
        """Return the addresses that match a pattern, each with its kind, and its value if that is plain."""

    def stretches(self, address: str, after: int = 0, most: int = 2000) -> tuple[int, list[Stretch]]:
        """Return what was measured at an address since a cursor, and the next cursor; the first cursor is 0.

        Beyond ``most`` values, neighbours are merged into one point with their minimum and maximum.  A number that can
        be set has a point where it is first in force, and one at each change.
        """

    def points(self, address: str, window: Window, after: int = 0) -> tuple[int, list[Stretch]]:
        """Return the points of an address that a chart shows, on all branches, and a cursor: the same for all charts.

        They are those in a window; or, after a cursor that is not 0, every point since then. Those of values that were
        measured are read from the stored run, so that a chart shows the same while training and when it has ended.
        """

    def trainers(self) -> list[str]:
        """Return the names of the trainers."""

    def trainer(self, name: str) -> TrainerView:
        """Return the view of one trainer; raise SigmaConfigError for an unknown name."""

    # -- commands ------------------------------------------------------------------------------------------------------
    def send(self, command: str, **arguments: Any) -> Ticket:
        """Send a command; return at once. Commands of one view are applied in the order in which they were sent.

        The argument ``trainer`` is the trainer that it concerns, ``who`` the name of the sender in the journal.
        """

    def tickets(self, after: int = 0) -> list[Ticket]:
        """Return the tickets of all views after a number."""

    def journal(self, after: int = 0) -> list[tuple[int, Mapping[str, Any]]]:
        """Return the rows of the journal after a number, but digests, with their numbers, as plain JSON values."""

    def messages(self, after: int) -> list[tuple[int, str]]:
        """Return the log messages after a number, with their numbers."""


class Chart(Settled):
    """Draw what runs measured (component kind ``chart``).

    ``svg`` draws for notebooks and run folders, and ``figure`` for ``History.plot``; others draw on demand.
    """

    @abstractmethod
    def draw(self, title: str, runs: Mapping[str, BranchedCurves], over: str = "iteration") -> Any:
        """Return a drawing of the curves of runs, by name, over ``iteration``, ``epoch`` or ``second``.

        A single run needs no name. Nothing may have been measured, and a value may be measured in some runs alone.
        """


class Monitor(Settled):
    """Watch and steer an environment from a separate thread; a slow monitor never delays training."""

    talks = False  # it writes to the terminal; ``--quiet`` then leaves it out
    steers = False  # users can send commands through it, so that a paused run may wait for one

    @abstractmethod
    def watch(self, view: View) -> None:
        """Watch until ``view.wait`` returns True."""

    def is_attended(self) -> bool:
        """Return whether a client that can steer is connected: ``sigma run`` then stays after a failure."""
        return False

    def linger(self, view: View) -> None:
        """Keep serving a finished run until its last viewer leaves; ``sigma run`` and ``sigma resume`` call it."""
        return


@frozen
class Panel:
    """A panel of the dashboard, as an ES module of one file.

    Its default export is a function of ``{html, hooks, ask, follow, trainer}`` that returns the content: ``html`` is
    the tagged template of the page, ``hooks`` those of its components, ``ask(what, arguments)`` a request of the
    protocol, ``trainer`` the name of the selected trainer. ``follow(addresses, hear)`` calls ``hear`` with the curves
    by address and number of the branch, ``{iterations, epochs, seconds, values, lows, highs}`` of equal length, until
    its returned function is called.

    Args:
        title: The title of the panel.
        script: The text of the module.
        view: The view that shows it.
    """

    title: str
    script: str = field(repr=False)
    view: str = "train"
