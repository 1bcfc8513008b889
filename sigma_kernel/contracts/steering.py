"""Contracts of steering: metrics, hooks (callbacks), operators, recipes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from attrs import define, field, frozen

from sigma_kernel.clock import Moment, TimeStep
from sigma_kernel.contracts.compute import Arrays, Backend, Batches, Burst, Records, Share
from sigma_kernel.criteria import Criterion as Criterion
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph.node import Node, Spec
from sigma_kernel.graph.reprs import brief
from sigma_kernel.settings import Settled, gt, in_, optional, whole

MODES = ("synchronous", "averaging", "asynchronous")  # how shards are trained: see Operator
Value = float | Sequence["Value"]  # of a metric
Part = TypeVar("Part")


class Metric(Settled):
    """A metric of predictions: totals over rows, which merge across batches, and the value computed from them.

    Unless ``merge`` is overridden, totals are added without any error and rounded once, to float64, so that they do not
    depend on batches, shards and order. For that, totals of floats end in sums over the rows: ``f.sum`` or ``f.mean``,
    which may be added, stacked, reshaped, and multiplied by numbers. What comes before is computed for each row alone.
    Totals of integers are sums of any form.

    A metric that needs all rows at once, such as one of ranks, ``keeps_rows``: its totals are an array with one row for
    each row of the batch, and merging concatenates them. They are held in memory until the value is computed.

    ``better`` says whether "higher" or "lower" values are better, or "neither", as of a confusion matrix. Hooks that
    wait for an improvement, or rank checkpoints, read it; if it is not declared, their settings must.

    ``lengths`` is a section of the data with the number of steps of each row that count, or "". If a metric has one, a
    batch of it follows the targets: ``totals(prediction, targets, lengths)``.
    """

    keeps_rows: ClassVar[bool] = False
    better: ClassVar[str] = ""  # "higher", "lower" or "neither"
    lengths = ""  # no class variable, so that a subclass may make it a field

    @property
    def section(self) -> str:
        """Return the section of the data that predictions are compared with; "" for that of the output's cost."""
        return ""

    @abstractmethod
    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return sums over the rows of a batch, an array of any fixed shape, or a value per row."""

    def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Merge the totals of two batches: add them in float64, or join kept rows."""
        merged: np.ndarray = np.concatenate([a, b]) if self.keeps_rows else np.asarray(a, np.float64) + b
        return merged

    def merge_all(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """Merge the totals of one batch or several, in their order."""
        return np.concatenate(parts) if self.keeps_rows else reduce(self.merge, parts)

    def value(self, totals: np.ndarray, rows: int) -> Value:
        """Compute the metric from the totals over ``rows`` rows: a number, or a (nested) list of numbers."""
        return float(totals) / rows


@frozen(eq=False)
class RowLosses:
    """The losses of rows of a split, each as if the row were alone in its batch: weights of rows and classes cancel.

    ``rows`` are their numbers, ``(n,)``; ``losses`` the sums of all costs, float64 ``(n,)``; ``predicted`` and
    ``targets`` are those of the first output: class indices if its cost chooses among classes, else values, ``(n,
    ...)``; None for a network without layers.
    """

    rows: np.ndarray
    losses: np.ndarray
    predicted: np.ndarray | None = None
    targets: np.ndarray | None = None

    __repr__ = brief

    @property
    def correct(self) -> np.ndarray:
        """Return whether the class of each row is predicted, int8 ``(n,)``: 1, 0, or -1 for other predictions."""
        for values in (self.predicted, self.targets):
            if values is None or values.ndim != 1 or values.dtype.kind not in "iub":
                return np.full(len(self.rows), -1, np.int8)
        return np.asarray(self.predicted == self.targets, np.int8)

    def worst(self, most: int) -> RowLosses:
        """Return at most so many rows, the greatest losses first, lower numbers first among equal ones."""
        greatest = np.where(np.isnan(self.losses), np.inf, self.losses)
        order = np.lexsort((self.rows, -greatest))[:most]
        kept = (None if values is None else values[order] for values in (self.predicted, self.targets))
        return RowLosses(self.rows[order], self.losses[order], *kept)


@frozen(eq=False)
class RowHistory:
    """What became of each row of a split over the epochs, as a hook has recorded it at each of its firings.

    ``losses`` are those of all ``rows`` at the kept ``epochs``, float32 ``(n, epochs)``; NaN where a row was excluded.
    All else is of every firing, also of those whose losses were thinned out: the ``mean`` loss, float64 ``(n,)``;
    whether a row was ``correct`` when it was last measured, int8 ``(n,)``: 1, 0, or -1 if its class is not predicted;
    how often it was ``forgotten``: wrong right after it was correct (forgetting events: Toneva et al., An Empirical
    Study of Example Forgetting during Deep Neural Network Learning, 2019); and the epoch since which it has been
    correct, when it was ``learned``, or -1.
    """

    ORDERS: ClassVar[Sequence[str]] = ("mislabelled", "forgotten", "late", "never")

    rows: np.ndarray
    epochs: np.ndarray
    losses: np.ndarray
    mean: np.ndarray
    correct: np.ndarray
    forgotten: np.ndarray
    learned: np.ndarray

    __repr__ = brief

    def order(self, by: str) -> np.ndarray:
        """Return the places of rows in an order, those with greater mean losses first among equal ones.

        ``mislabelled`` has all rows, the greatest mean losses first: labels that contradict the others are fitted last,
        if at all (Huang et al., O2U-Net: A Simple Noisy Label Detection Approach for Deep Neural Networks, 2019); a
        mean that is not a number is the greatest. ``forgotten`` has the rows that were forgotten, the most often first;
        ``late`` those that are correct now, learned last first; ``never`` those that never were, by their mean loss.
        Raises SigmaConfigError for another order, and for an order of correct rows if no classes are predicted.
        """
        if by not in self.ORDERS:
            raise SigmaConfigError(f"order: must be one of {', '.join(self.ORDERS)} (got {by!r:.40}).")
        if by != "mislabelled" and not (self.correct >= 0).any():
            raise SigmaConfigError(f"order: {by!r} needs a network that predicts classes. Use 'mislabelled'.")
        mean = np.where(np.isnan(self.mean), np.inf, self.mean)
        never = (self.correct == 0) & (self.forgotten == 0)
        key = {"forgotten": self.forgotten, "late": self.learned}.get(by, mean)
        kept = {"forgotten": self.forgotten > 0, "late": self.correct == 1, "never": never}.get(by, self.rows >= 0)
        places = np.flatnonzero(kept)
        return places[np.lexsort((self.rows[places], -mean[places], -key[places]))]


class Outlook(Protocol):
    """A hook's view of its trainer before training."""

    def ends(self, layer: str = "", section: str = "") -> tuple[Spec, Spec]:
        """Return what one sample of an input section is, and one row of a layer's output, by default the first."""

    def measure(self, metrics: Mapping[str, Metric]) -> None:
        """Build the totals of metrics from the predictions and targets of a batch; raises what they raise."""

    def direction(self, address: str) -> str:
        """Return which values of a metric, a loss or a cost are better; see :meth:`HookContext.direction`."""


class HookContext(Protocol):
    """A hook's view of its trainer during training; addresses are relative to the trainer."""

    @property
    def moment(self) -> Moment:
        """Return the present moment."""

    @property
    def memory(self) -> dict[str, Any]:
        """Return the hook's own memory: plain JSON values, saved with the run."""

    @property
    def folder(self) -> Path | None:
        """Return the run folder, or None; a hook of local scope has none, as it may run on another machine."""

    def write(self, name: str, data: bytes) -> Path | None:
        """Write a file of the run atomically, and return its path; None if the run is not stored.

        ``/`` in the name is a folder, which is made. Raises SigmaStateError if the disk is full or a link is in place
        of a folder. What a hook of local scope writes is there once all workers have fired, and it gets None.
        """

    def read(self, address: str) -> Any:
        """Return a value declared in ``reads`` (arrays as host copies), or None if it is not published yet.

        For a pattern, return all values that match by their addresses: ``{}`` if nothing does yet.
        """

    def direction(self, address: str) -> str:
        """Return which values at an address are better, by its metric: "higher", "lower" or "neither".

        It is "undeclared" if the metric does not declare it, and "" if no metric is published there; of losses and
        costs, it is "lower". A value that is derived from another, such as its mean, has the direction of that value.
        """

    def publish(self, address: str, value: Any) -> None:
        """Publish a value declared in ``writes``: a number, a text, an array, lists and tables of these, or media.

        :class:`Media` (a picture, a text, a sound, a table, a histogram) are kept with their moments for people to look
        at, within a budget; no hook or criterion reads them. They may have the address of another value.
        """

    def command(self, command: str, **arguments: Any) -> None:
        """Send a command (``set``, ``stop``, ``save`` ...), applied at this boundary."""

    def evaluate(self, on: str, metrics: Mapping[str, Metric]) -> dict[str, Value]:
        """Return ``loss`` and the metrics over a whole split of the data; of several costs, each as ``cost.<name>``.

        If there are several outputs, a metric's name begins with that of its output: ``digit.accuracy``, or
        ``*.accuracy`` for all of them, each by its name.
        """

    def losses(self, on: str, most: int | None = None) -> RowLosses:
        """Return the loss of each row of a split, in the order of the rows, or of the ``most`` with the greatest."""

    def ends(self, layer: str = "", section: str = "") -> tuple[Spec, Spec]:
        """Return what one sample of an input section is, and one row of a layer's output, by default the first."""

    def excite(
        self,
        samples: np.ndarray,
        directions: np.ndarray,
        *,
        layer: str = "",
        section: str = "",
        given: Mapping[str, Any] = MappingProxyType({}),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a layer's output for samples of an input section, and a gradient in the samples.

        By default these are the first output, before its cost, and the first input. The gradient is that of the sum
        over ``output * directions``. Samples are preprocessed; other inputs are fixed to ``given``, or 0.
        """

    def generate(self, text: str, length: int = 200, temperature: float = 1.0, seed: int = 0) -> str:
        """Return the continuation of a text, as ``Trainer.generate`` does."""

    @property
    def iteration(self) -> Repeatable | None:
        """Return the iteration that has just ended, for a hook that ``repeats``.

        None before the first iteration, at events, and in the background.
        """

    def keep(self) -> None:
        """Keep a copy of parameters, layer state and slots; it is saved with the run and replaces the last copy."""

    def bring_back(self) -> None:
        """Restore the parameters, layer state and slots kept last.

        At the end of training these are the result; a later ``fit`` or a resume continues from where training ended.
        """

    def log(self, text: str) -> None:
        """Log a message to the monitors."""


@define(eq=False, kw_only=True)
class Hook(Settled):
    """A callback that fires on a time scale.

    The callback order of hooks that are due together follows from ``reads``, ``writes`` and ``requires`` (names or
    types of hooks that fire earlier), then from ``priority``, highest first, then from the name.

    Args:
        every: When it is due: after every so many iterations, epochs, samples or seconds, or at an event such as
            ``stop``.
        when: Criterion that must hold as well for it to fire; none by default.
        priority: Order among hooks that are due together and do not depend on each other; the highest fires first.
        scope: Whether it fires once (``global``) or once in each worker (``local``): there, on a snapshot of what it
            declares, with the gradients, activations and rows of the worker. Its commands act once all have fired.
        on_error: The effect of its errors: fail the run, mute the hook, or only log a message.
        background: Whether it fires in another thread, on a snapshot of its declared values; its published values and
            commands take effect at the next boundary.
        budget: Seconds it may take; no limit by default. ``over_budget`` applies after exceeding it three times in a
            row.
        over_budget: Whether the hook is then muted, or moved to the background.
    """

    every: TimeStep
    when: Criterion | None = None
    priority: int = field(default=0, validator=whole)
    scope: str = field(default="global", validator=in_(("global", "local")))  # local: in each worker
    on_error: str = field(default="fail", validator=in_(("fail", "mute", "ignore")))
    background: bool = field(default=False, validator=in_((False, True)))
    budget: float | None = field(default=None, validator=optional(gt(0.0)))
    over_budget: str = field(default="mute", validator=in_(("mute", "background")))

    # Declarations, which are not settings. They are not class variables, so that a subclass may make them fields.
    guards = False  # it fires at once, due or not, when the loss is not finite
    ends = False  # training can end by it; without a number of epochs, one hook has to declare that
    stops = False  # each of its firings ends training, which allows an estimate of the time left
    repeats = False  # it repeats the iteration after which it is due; copies of the iteration's inputs are then kept
    weights = ""  # the modifier whose weights it evaluates, such as an average; by default the parameters
    outward = False  # it acts on the world outside, and on nothing of the run: a replay does not run it
    timed = False  # its actions depend on the wall clock, beyond when it is due; a replay takes them from the journal

    def has_ended(self, memory: Mapping[str, Any]) -> bool:
        """Return whether the hook has ended training, judging by its memory; reported when the run is resumed.

        If it has, a ``fit`` for more epochs or iterations clears its memory.
        """
        return False

    @property
    def splits(self) -> Sequence[str]:
        """Return the splits of the data that the hook evaluates."""
        return ()

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
        """Return the initial values of numbers that can be set during the run, by address."""
        return {}

    @property
    def retains(self) -> Mapping[str, Any]:
        """Return which checkpoints to keep: how many of the ``last``, the ``best``, and the score to ``prefer``.

        Instead of the latter, it may name the ``value`` that is the score, whose metric says which ones are better.
        """
        return {}

    @property
    def metrics_by_address(self) -> Mapping[str, Metric]:
        """Return the metrics whose values it publishes, by the addresses, or patterns of these."""
        return {}

    @property
    def requires(self) -> Sequence[str]:
        """Return names or types of hooks that must fire before this one."""
        return ()

    def check(self, outlook: Outlook) -> None:
        """Raise a SigmaError for mistakes that can be found before training; called during preparation."""
        return

    @abstractmethod
    def fire(self, context: HookContext) -> None:
        """Fire: read, publish, send commands."""

    def at_end(self, context: HookContext) -> None:
        """Act once training has ended other than by a failure, before hooks that are due at ``stop``."""
        return

    def at_failure(self, context: HookContext, why: str) -> None:
        """Act once training has failed; what this changes is not kept. It is not called in a replay."""
        return


class Iterations(Protocol):
    """Compute iterations from a given state, whole or in shards; arrays are on the device, by name."""

    @property
    def iteration_in_epoch(self) -> int:
        """Return the number of iterations of the present epoch before the state."""

    @property
    def arrays(self) -> Arrays:
        """Return the arrays of the state."""

    @property
    def written_names(self) -> Sequence[str]:
        """Return the names of the arrays that sharded iterations change."""

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Return the metrics recorded at each training step."""

    def run_fused(self, batches: Batches) -> Burst:
        """Run whole iterations on minibatches."""

    def weights(self, arrays: Arrays, block: Arrays, rows: np.ndarray, shard: int, offset: int) -> Records:
        """Return what rows of a batch weigh, to be passed to all its shards; empty if all weigh the same.

        ``shard`` is the number of rows per shard, ``offset`` the number of iterations since the state.
        """

    def share(
        self, arrays: Arrays, block: Arrays, rows: np.ndarray, start: int, total: int, offset: int, weights: Records
    ) -> Share:
        """Compute one shard: these ``rows`` of a batch of ``total`` rows, from its position ``start`` on."""

    def split_gradients(self, gradients: Records) -> Records:
        """Return the gradient of each parameter, by its address: views of the vectors of gradients."""

    def apply_update(self, arrays: Arrays, gradients: Records, state: Records, offset: int) -> Arrays:
        """Return the arrays after the update with vectors of merged gradients, and with merged layer state."""

    def to_host(self, arrays: Arrays) -> Records:
        """Return copies of arrays on the host."""

    def place(self, arrays: Records) -> Arrays:
        """Return copies of arrays on the device."""


Compute = Callable[[Iterations, Batches], Burst]  # how an operator computes a burst


class Repeatable(Protocol):
    """An iteration that has just ended, with copies of its initial state and its batch."""

    @property
    def backend(self) -> Backend:
        """Return the backend that ran it."""

    @property
    def outcome(self) -> Records:
        """Return the new state, ``training.loss`` and totals of metrics, by name."""

    def repeat(self, backend: Backend) -> Records:
        """Return the outcome of the same iteration on a backend; nothing else changes."""


class Work(Protocol):
    """The training of a session, driven by an operator in the training thread."""

    @property
    def moment(self) -> Moment:
        """Return the present moment."""

    def boundary(self) -> bool:
        """Apply commands, and wait here while paused; return whether training continues."""

    def distance(self) -> int:
        """Return the number of iterations until something is due, at least 1."""

    def advance(self, n: int, compute: Compute | None = None, again: Compute | None = None) -> int:
        """Run at most ``n`` iterations as one burst; return how many were run.

        ``compute`` replaces the fused program; ``again``, by default the same, computes iterations once more.
        """

    def settle(self) -> None:
        """Fire the hooks that are due, and check whether a goal is reached."""

    def shard(self, shards: int, merger: Merger | None, pool: Executor | None) -> Compute:
        """Return what computes bursts in shards of every batch, by as many threads of a pool as there are workers.

        Gradients are merged by ``merger``, or summed. With one shard, this is the fused program.
        """

    def train(self, seconds: float, compute: Compute | None = None, again: Compute | None = None) -> None:
        """Train until the end, in bursts of at most so many seconds: boundary, distance, advance, settle."""

    def train_in_group(self, operator: Any) -> None:
        """Train until the end by the workers of a :class:`GroupOperator`."""


class Operator(Settled):
    """Drive a trainer: bursts between due points, workers, shards."""

    shards: int = 1  # parts of every batch, alike but for one row; optimisers in an ``order`` need whole batches
    mode: str = MODES[0]  # gradients are added up in each iteration, replicas averaged, or gradients may come late
    every: int = 1  # iterations between two means of replicas, where each shard trains one
    staleness: int = 1  # updates that a gradient lacks at most, where it may come late

    @abstractmethod
    def train(self, work: Work) -> None:
        """Train until ``work.boundary()`` returns False; repeat distance, advance, settle."""


def check_mode(mode: str, shards: int) -> None:
    """Raise SigmaConfigError for a mean of one replica, and for gradients that come late from nobody else."""
    if mode == "asynchronous" and shards == 1:
        raise SigmaConfigError(
            "mode = 'asynchronous': shards = 1 leave nothing to wait for, as one worker computes all. Set shards = 2 or"
            " more, or leave out the mode."
        )
    if mode == "averaging" and shards == 1:
        raise SigmaConfigError(
            "mode = 'averaging': shards = 1 train one replica, of which there is no mean. Set shards = 2 or more, which"
            " fixes the bits of the run, or leave out the mode."
        )


def check_workers(workers: int, shards: int, at_least: int = 1) -> None:
    """Raise SigmaConfigError for a number of workers that cannot share the shards, or is below ``at_least``."""
    if workers > shards:
        raise SigmaConfigError(
            f"workers = {workers}: more than shards = {shards}, the parts of a batch. Set shards = {workers} or more,"
            f" which fixes the bits of the run, or workers = {shards}."
        )
    if workers < at_least:
        raise SigmaConfigError(f"workers = {workers}: fewer than at_least = {at_least}. Raise one, or lower the other.")


def merge_in_tree(parts: Sequence[Part], merge: Callable[[Part, Part], Part]) -> Part:
    """Return the parts of all shards merged pairwise, neighbour by neighbour, until one is left.

    The order depends on the number of shards alone, and so do the bits of their sum.
    """
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [merge(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


class Merger(Settled):
    """Merge the gradients of the shards of a batch into that of the batch, for one parameter at a time."""

    @abstractmethod
    def merge(self, parts: Sequence[np.ndarray], weights: Sequence[float], address: str) -> np.ndarray:
        """Return the gradient of the parameter at an address, a new array of the shape and dtype of each part.

        ``parts`` are the gradients of all shards in their order, each times its weight: its share of the rows, of which
        ``weights`` has one a shard. Their sum is the gradient of the batch.
        """


class TextGenerator(Settled):
    """Continue texts by a network trained on them; the default for ``Trainer.generate``."""

    @abstractmethod
    def continuation(
        self, steps: Any, evaluator: Any, text: str, length: int = 200, temperature: float = 1.0, seed: int = 0
    ) -> Iterator[str]:
        """Return the pieces that continue a text, ``length`` in all or fewer if it ends, each computed on demand.

        ``steps`` has the compiled programs of a network and the arrays that they run with, ``evaluator`` what the
        network has ``learned`` of its data and the preprocessing. The same ``seed`` continues a text in the same way;
        at ``temperature`` 0, every piece is the most probable one. Raises SigmaConfigError for wrong settings,
        SigmaDataError for a text that the network cannot read, SigmaNetworkError for a network that cannot continue
        texts.
        """


@frozen
class Recipe:
    """A ready-to-run configuration: the text of a TOML file."""

    name: str
    text: str
