"""What measures, watches and steers a run: metrics, hooks, operators, monitors, recipes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from attrs import define, field, frozen

from sigma_kernel.clock import Moment, TimeStep
from sigma_kernel.contracts.compute import Batches, Burst, Share
from sigma_kernel.criteria import Criterion
from sigma_kernel.graph.node import Node, Spec
from sigma_kernel.settings import gt, in_, optional, whole


class Metric(ABC):
    """A number about predictions, or several: totals over rows that can be merged, and what to make of them."""

    @abstractmethod
    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return sums over the rows of a batch, an array of any fixed shape."""

    def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the totals of two batches together."""
        merged: np.ndarray = a + b
        return merged

    def value(self, totals: np.ndarray, rows: int) -> Any:
        """Return the metric from the totals over so many rows: a number, or a list of numbers or of lists."""
        return float(totals) / rows


class Outlook(Protocol):
    """What a hook sees of its trainer before training."""

    def ends(self) -> tuple[Spec, Spec]:
        """Return what one sample of the first input is, and one row of the first output."""

    def measure(self, metrics: Mapping[str, Metric]) -> None:
        """Let metrics build their totals from predictions and targets of a batch; whatever they raise passes on."""


class HookContext(Protocol):
    """What a hook sees of its trainer; addresses start at the trainer."""

    @property
    def moment(self) -> Moment:
        """Return the present moment."""

    @property
    def memory(self) -> dict[str, Any]:
        """Return the hook's own memory: plain JSON values, saved with the run."""

    @property
    def folder(self) -> Path | None:
        """Return the run's folder, if it has one."""

    def read(self, address: str) -> Any:
        """Return a value that the hook declared in ``reads`` (arrays as host copies), or None if there is none yet."""

    def publish(self, address: str, value: Any) -> None:
        """Publish a value that the hook declared in ``writes``."""

    def command(self, command: str, **arguments: Any) -> None:
        """Ask for a change (``set``, ``stop``, ``save`` ...), applied at this boundary."""

    def evaluate(self, on: str, metrics: Mapping[str, Metric]) -> dict[str, Any]:
        """Return ``loss`` and the metrics over a whole split of the data."""

    def ends(self) -> tuple[Spec, Spec]:
        """Return what one sample of the first input is, and one row of the first output."""

    def excite(self, samples: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the first output for samples of the first input, before costs, and the slopes in the samples.

        Slopes are those of the sum over ``output * directions``; samples are such as they come from preprocessing.
        Further inputs are held at 0.
        """

    @property
    def iteration(self) -> Any:
        """Return the iteration that has ended, for a hook that ``repeats``.

        None where there is none: before the first iteration, at events, and in the background.
        """

    def keep(self) -> None:
        """Keep a copy of parameters, layer state and slots; saved with the run, replaced by the next one."""

    def bring_back(self) -> None:
        """Put back the parameters, layer state and slots that were kept last."""

    def log(self, text: str) -> None:
        """Say something to the people who watch."""


@define(eq=False, kw_only=True)
class Hook(ABC):
    """Code of a run that fires on a time scale.

    Fires whenever ``every`` is due and, if there is a criterion ``when``, the criterion holds.  ``reads``, ``writes``
    and ``requires`` (names or types of hooks that go first) decide the order among hooks that are due together; where
    they leave it open, the greater ``priority`` goes first, then the name.

    One in the ``background`` gets a snapshot of what it declared, and runs beside training; what it did acts at the
    next boundary.  One that takes longer than its ``budget``, in seconds, three times in a row is muted from then on,
    or moved to the background.
    """

    every: TimeStep
    when: Criterion | None = None
    priority: int = field(default=0, validator=whole)
    scope: str = field(default="global", validator=in_(("global", "local")))  # local: in each worker
    on_error: str = field(default="fail", validator=in_(("fail", "mute", "ignore")))
    background: bool = field(default=False, validator=in_((False, True)))
    budget: float | None = field(default=None, validator=optional(gt(0.0)))
    over_budget: str = field(default="mute", validator=in_(("mute", "background")))

    @property
    def guards(self) -> bool:
        """Return whether the hook is to be run at once, due or not, when the loss is not finite."""
        return False

    @property
    def ends(self) -> bool:
        """Return whether the hook's only purpose is to end training, so that the time left can be told."""
        return False

    @property
    def repeats(self) -> bool:
        """Return whether the hook repeats the iteration after which it is due: it then finds copies of all it needs."""
        return False

    def over(self, memory: Mapping[str, Any]) -> bool:
        """Return whether the hook has ended training, by what it remembers: who takes the run up again is told so."""
        return False

    @property
    def splits(self) -> Sequence[str]:
        """Return the splits of the data that the hook evaluates."""
        return ()

    @property
    def timed(self) -> bool:
        """Return whether what the hook does depends on the wall clock, beyond when it is due.

        Its doings are written to the journal, and are done again from there when the run is replayed.
        """
        return False

    @property
    def reads(self) -> Sequence[str]:
        """Return the addresses that the hook reads, patterns allowed."""
        return ()

    @property
    def writes(self) -> Sequence[str]:
        """Return the addresses that the hook publishes, patterns allowed."""
        return ()

    @property
    def settable(self) -> Mapping[str, float]:
        """Return numbers that people may set while the run goes on, by address, as they are at first."""
        return {}

    @property
    def retains(self) -> Mapping[str, Any]:
        """Return which checkpoints stay: the ``last`` so many, the ``best``, and which score they ``prefer``."""
        return {}

    @property
    def requires(self) -> Sequence[str]:
        """Return names or types of hooks that must have run before this one."""
        return ()

    def check(self, outlook: Outlook) -> None:
        """Raise a SigmaError for what can be told before training to go wrong in it; called when that is prepared."""
        return

    @abstractmethod
    def fire(self, context: HookContext) -> None:
        """Act."""


class Iterations(Protocol):
    """What computes iterations from a state on, whole or in shards; arrays are on the device, by name."""

    @property
    def arrays(self) -> Mapping[str, Any]:
        """Return the arrays of the state."""

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Return the metrics that are recorded at each training step."""

    def fused(self, batches: Batches) -> Burst:
        """Run whole iterations on minibatches."""

    def weights(
        self, arrays: Mapping[str, Any], block: Mapping[str, Any], rows: np.ndarray, shard: int, offset: int
    ) -> Mapping[str, np.ndarray]:
        """Return the mean weight of the rows of a batch, by cost; none where all rows count alike.

        ``shard`` is the size of one of its shards, ``offset`` the number of iterations since the state.
        """

    def share(
        self,
        arrays: Mapping[str, Any],
        block: Mapping[str, Any],
        rows: np.ndarray,
        start: int,
        offset: int,
        weights: Mapping[str, np.ndarray],
    ) -> Share:
        """Return the share of a shard: these ``rows`` of a batch, from ``start`` on."""

    def updated(
        self,
        arrays: Mapping[str, Any],
        gradients: Mapping[str, np.ndarray],
        state: Mapping[str, np.ndarray],
        offset: int,
    ) -> Mapping[str, Any]:
        """Return the arrays after the update with merged gradients, and with merged layer state."""


Compute = Callable[[Iterations, Batches], Burst]  # how an operator computes a burst


class Work(Protocol):
    """The training of a session, as an operator does it in the training thread."""

    @property
    def moment(self) -> Moment:
        """Return the present moment."""

    def boundary(self) -> bool:
        """Apply commands, and wait here while paused; return whether training continues."""

    def distance(self) -> int:
        """Return the number of iterations until something is due, at least 1."""

    def advance(self, n: int, compute: Compute | None = None) -> int:
        """Run at most ``n`` iterations as one burst; return how many were run.

        ``compute`` replaces the fused program.
        """

    def settle(self) -> None:
        """Run the hooks that are due, and see whether a goal is reached."""

    def split(self, workers: int) -> None:
        """Run hooks of local scope once for each of so many workers."""


class Operator(ABC):
    """Run a trainer: bursts between due points, workers, shards."""

    @abstractmethod
    def train(self, work: Work) -> None:
        """Train until ``work.boundary()`` returns False: distance, advance, settle, and again."""


class Merger(ABC):
    """Make one of what two shards of a batch gave, each already weighted by its share of the rows."""

    @abstractmethod
    def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return both together; the order in which pairs are merged is fixed by the operator."""


class View(Protocol):
    """What a monitor sees of an environment, from its own thread; addresses start at the root."""

    def get(self, address: str) -> Any:
        """Return a published value."""

    def find(self, pattern: str) -> list[tuple[str, Any]]:
        """Return all published values that match."""

    def status(self) -> str:
        """Return the lifecycle's state: created, prepared, compiling, running, paused, stopped or failed."""

    def messages(self, after: int) -> list[tuple[int, str]]:
        """Return numbered messages for people, newer than a number."""

    def send(self, command: str, **arguments: Any) -> None:
        """Send a command."""

    def wait(self, seconds: float) -> bool:
        """Sleep; return whether the run is over and the monitor should end."""


class Monitor(ABC):
    """Watch and steer an environment from a thread of its own; however slow, it never holds up training."""

    @property
    def talks(self) -> bool:
        """Return whether it writes to the terminal, so that ``--quiet`` leaves it out."""
        return False

    @property
    def steers(self) -> bool:
        """Return whether people can send commands through it, so that a run may wait for one."""
        return False

    @abstractmethod
    def watch(self, view: View) -> None:
        """Watch until ``view.wait`` says that the run is over."""


@frozen
class Recipe:
    """A ready-to-run configuration: the text of a TOML file."""

    name: str
    text: str
