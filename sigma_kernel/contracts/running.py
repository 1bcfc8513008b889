"""Contracts between an environment and its trainers."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from attrs import field, frozen

from sigma_kernel.clock import Moment
from sigma_kernel.contracts.commanding import Command
from sigma_kernel.contracts.compute import Array
from sigma_kernel.contracts.steering import Metric
from sigma_kernel.contracts.storing import Excerpt, Log, StoredRun
from sigma_kernel.contracts.watching import TrainerView
from sigma_kernel.graph.reprs import brief
from sigma_kernel.network.outline import Outline
from sigma_kernel.network.tracing import Resolve
from sigma_kernel.registry.registry import Registry

Goals = tuple[int | None, int | None]  # epochs and iterations to train; with neither, the total of the settings holds


class SentCommand(Protocol):
    """A command that was sent to a trainer."""

    def result(self) -> Any:
        """Wait until it was applied and its row of the journal is durable; return its result, or raise its error."""


@frozen(repr=False)
class TrainerReport:
    """The results of a trainer, for the summary of a run.

    Args:
        status: Its status: prepared, running, paused, stopped or failed.
        backend: The name of its backend.
        moment: The moment that it has reached.
        metrics: The last value of each metric, by address.
        edited: The numbers of rows with edits in force, by split.
        baselines: The metrics of predictions without a network, by the name of the baseline and by address.
        advice: What a user should know about the results, one sentence each.
        cause: How a hook ended training, if it says so: ``STATUS: REASON``, the status and the reason in the summary.
    """

    status: str
    backend: str
    moment: Moment
    metrics: Mapping[str, float] = field(factory=dict)
    edited: Mapping[str, Mapping[str, int]] = field(factory=dict)
    baselines: Mapping[str, Mapping[str, float]] = field(factory=dict)
    advice: Sequence[str] = ()
    cause: str = ""

    __repr__ = brief


class Resumable(ABC):
    """What goes on from a checkpoint."""

    @abstractmethod
    def resume(self, run: StoredRun, journal: Excerpt, edits: Sequence[str], log: Log, paused: bool) -> None:
        """Go on from the checkpoint that was restored: the rows after it are replayed as training reaches them."""

    def resume_for(
        self, who: str, run: StoredRun, journal: Excerpt, edits: Sequence[str], log: Log, paused: bool
    ) -> None:
        """Go on as :meth:`resume` does, for a person who is named in the journal, if the trainer names people there."""
        self.resume(run, journal, edits, log, paused)


class Lifecycle(Resumable):
    """The lifecycle of a prepared trainer, driven by an environment: its training thread, its stored run and its end.

    Only one thread at a time changes a trainer: the claimed one, between bursts, or else the caller.
    """

    # -- its state -----------------------------------------------------------------------------------------------------
    @property
    @abstractmethod
    def status(self) -> str:
        """Return prepared, running, paused, stopped or failed."""

    @property
    @abstractmethod
    def is_busy(self) -> bool:
        """Return whether a thread trains, or is about to."""

    @property
    @abstractmethod
    def is_compiling(self) -> bool:
        """Return whether programs are being compiled."""

    @property
    @abstractmethod
    def is_interrupted(self) -> bool:
        """Return whether training was stopped, and keeps the phase for a resume."""

    @property
    @abstractmethod
    def is_waiting(self) -> bool:
        """Return whether training has failed, without a command yet to continue or end it."""

    @property
    @abstractmethod
    def can_undo(self) -> bool:
        """Return whether there is a command to undo."""

    @abstractmethod
    def report(self) -> TrainerReport:
        """Return what training has reached."""

    def conclude(self) -> None:  # most trainers have nothing to add
        """Measure what only the report of a run that has ended holds, such as baselines; by default nothing."""

    @abstractmethod
    def digest_parameters(self, update: Callable[[bytes], object]) -> None:
        """Call ``update`` with the bytes of each parameter, in the order of their addresses."""

    # -- training ------------------------------------------------------------------------------------------------------
    @abstractmethod
    def check_free(self) -> None:
        """Raise SigmaStateError if the trainer is training, or was stopped during a replay."""

    @abstractmethod
    def check_end(self) -> None:
        """Raise SigmaConfigError if nothing would end training."""

    @abstractmethod
    def claim(self, thread: threading.Thread | None = None) -> None:
        """Let a thread, by default the calling one, answer all commands from now on."""

    @abstractmethod
    def train(self, goals: Goals) -> None:
        """Train in the claimed thread, for so many more epochs or iterations."""

    @abstractmethod
    def train_or_replay(self, wait: Callable[[Exception], bool]) -> None:
        """Train in the claimed thread; during a replay, repeat each training that the journal holds.

        After a failure, training continues if ``wait`` returns True: a command requested it.
        """

    @abstractmethod
    def answer(self) -> None:
        """Answer the commands that are queued while training waits after a failure, or wait a moment for one."""

    @abstractmethod
    def leave(self, failed: bool = False) -> None:
        """Release the claimed thread: answer the commands that are queued, then let any thread act."""

    # -- commands ------------------------------------------------------------------------------------------------------
    @abstractmethod
    def check(self, command: Command) -> None:
        """Raise a SigmaError if a command would be refused now."""

    @abstractmethod
    def send(self, command: Command) -> SentCommand:
        """Queue a command for the next boundary."""

    def send_from(self, who: str, command: Command) -> SentCommand:
        """Queue a command for the next boundary; the journal names its sender, if the trainer's can."""
        return self.send(command)

    @abstractmethod
    def save_end(self) -> SentCommand | None:
        """Save what training has reached; return None if it was stopped from outside, or the loss is not finite."""

    # these take no lock: signal handlers call them
    @abstractmethod
    def post_pause(self) -> None:
        """Pause at the next boundary."""

    @abstractmethod
    def post_stop(self, interrupted: bool = False) -> None:
        """End training at the next boundary; ``interrupted`` by a signal, it can be resumed from there."""

    @abstractmethod
    def post_save(self) -> None:
        """Save a checkpoint at the next boundary, and keep it."""

    # -- the stored run ------------------------------------------------------------------------------------------------
    @abstractmethod
    def keep_initial(self, run: StoredRun) -> None:
        """Keep initial values that come from outside in a new run."""

    @abstractmethod
    def attach(self, run: StoredRun) -> None:
        """Write journal, metrics and checkpoints to a run from now on."""

    @abstractmethod
    def restore(self, run: StoredRun, journal: Excerpt, edits: Sequence[str], log: Log) -> bool:
        """Restore the newest checkpoint that fits; return whether this part of the journal is enough to resume from it.

        Raises SigmaCheckpointError if the run cannot be resumed, SigmaConfigError for edits of its configuration that
        do not fit it.
        """

    @abstractmethod
    def replay(self, run: StoredRun, journal: Excerpt, log: Log) -> None:
        """Replay the journal during training, and compare; nothing is written."""

    @property
    @abstractmethod
    def is_replayed(self) -> bool:
        """Return whether the replay has reached the end of the journal without a difference."""

    @property
    @abstractmethod
    def difference(self) -> str:
        """Return the first difference that the replay has found, as a sentence; empty if there is none."""


class Trainer(ABC):
    """Train a network on data (component kind ``trainer``), for users and for an environment.

    Each trainer defines its settings: ``create`` refuses unknown ones.
    """

    __slots__ = ()
    name: str

    @classmethod
    @abstractmethod
    def create(cls, name: str, host: Host, settings: Mapping[str, Any]) -> Self:
        """Return a trainer of an environment; raise SigmaConfigError for unknown settings."""

    @property
    @abstractmethod
    def is_prepared(self) -> bool:
        """Return whether the trainer is prepared, which fixes its settings."""

    @abstractmethod
    def prepare(self) -> None:
        """Infer shapes, draw the initial state and register every address; once only."""

    @abstractmethod
    def begin_from(self, run: StoredRun) -> None:
        """Read data as an earlier training did, and take its initial values, unless the trainer is prepared."""

    @property
    @abstractmethod
    def lifecycle(self) -> Lifecycle:
        """Return the lifecycle; the trainer is prepared on first use."""

    @property
    @abstractmethod
    def view(self) -> TrainerView:
        """Return what monitors see of the trainer."""

    @abstractmethod
    def close(self) -> None:
        """End training if it is in progress, and stop all background work."""

    # -- what users call -----------------------------------------------------------------------------------------------
    @property
    @abstractmethod
    def history(self) -> Any:
        """Return the history so far."""

    @abstractmethod
    def summary(self) -> Outline:
        """Return a table of the layers."""

    @abstractmethod
    def fit(self, epochs: int | None = None, iterations: int | None = None, progress: bool | None = None) -> Any:
        """Train for this many more epochs or iterations, in the calling thread; return the history."""

    @abstractmethod
    def evaluate(
        self, on: Any = "validation", metrics: Mapping[str, Metric | str] | None = None, edited: bool = False,
        weights: str = "",
    ) -> dict[str, float]:  # fmt: skip
        """Return the loss and the metrics by name over a split of the data, or over other data."""

    @abstractmethod
    def predict(self, samples: Any, weights: str = "") -> Any:
        """Return predictions for samples, one row each; with several outputs a dictionary by output."""

    @abstractmethod
    def classify(self, samples: Any, weights: str = "") -> Any:
        """Return the most probable class of each sample."""

    @abstractmethod
    def parameters(self) -> dict[str, Array]:
        """Return a copy of every parameter by its address."""

    @abstractmethod
    def save(self, path: Path | str) -> Path:
        """Save the network to a directory; return its path."""

    if TYPE_CHECKING:  # settings and methods of its own

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...


class Host(Protocol):
    """The services of an environment for its trainers."""

    @property
    def resolve(self) -> Resolve:
        """Return what resolves names and tables to components."""

    @property
    def registry(self) -> Registry:
        """Return the addresses; those of a trainer are under its name."""

    @property
    def trainers(self) -> Mapping[str, Trainer]:
        """Return all trainers by name."""

    def log(self, text: str) -> None:
        """Log a message."""

    def publish_row(self, row: Mapping[str, Any]) -> None:
        """Show a row of the journal to monitors."""

    def fit_trainer(self, trainer: Trainer, goals: Goals, progress: bool | None) -> None:
        """Train one trainer in the calling thread, in the run of the environment."""

    def save_trainer(self, trainer: Trainer, path: Path | str) -> Path:
        """Write configuration, parameters and state of a trainer to a directory; return its path."""
