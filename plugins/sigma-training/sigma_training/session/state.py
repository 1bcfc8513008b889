"""The setup of a run, which computes it, and its state: everything that its future depends on, as plain data.

Both, with the progress of training and what the last burst has left, are one value: ``Present``.  None of them is ever
modified: functions return new ones.  So a command that fails leaves no trace, and undo, rewind and
resume restore former values.  There are two exceptions, which the training thread writes to in place: the memory of
hooks, and the published values of the present state, which other threads copy before they iterate over them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import attrs
import numpy as np
from attrs import evolve, field, frozen

from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Arrays, Batches, Burst, Compute, Operator
from sigma_kernel.plugins.components import display_name
from sigma_step.live import Live
from sigma_step.measuring import Measured, Sums, add_to_sums, latest, read_measurements
from sigma_step.model import OPTIMISERS, Model
from sigma_step.rules import live_values
from sigma_step.steps import Iteration, Programs, Steps
from sigma_step.weights import apply_weights
from sigma_training.components import Learned, Settings
from sigma_training.data.dataset import FITTED
from sigma_training.data.feed import Cursor, Feed
from sigma_training.evaluator import Evaluator
from sigma_training.group.averaging import whole_rounds
from sigma_training.hooks.directions import find_direction, published_directions
from sigma_training.hooks.order import HookOrder, Memory, other_trainers, reads
from sigma_training.names import LAST
from sigma_training.session.changes import Changes, Factory, Parts
from sigma_training.session.progress import TrainingProgress

TIMED = (  # what a user reads of a run whose bits depend on time
    "the run is not reproducible: in the mode 'asynchronous', bits depend on how fast workers are. Its journal has the"
    " ages of all gradients, by which `sigma replay` repeats the run, and `sigma resume` what was not saved."
)
MOST = 64  # iterations that are computed again in one burst: signals are noticed in between


@frozen(eq=False, kw_only=True, repr=False)
class Setup:
    """Everything that computes a run.  A command that changes a component replaces the whole setup."""

    name: str  # of the trainer
    factory: Factory
    parts: Parts
    programs: Programs
    feed: Feed
    evaluator: Evaluator
    epochs: float | None = None  # in total
    settings: Settings  # in which names are resolved
    others: Mapping[str, Any] = field(factory=dict)  # all trainers of the environment, by name
    order: HookOrder = field(default=attrs.Factory(lambda it: HookOrder(it.parts.hooks), takes_self=True), init=False)
    # the live values as configured
    live: Live = field(default=attrs.Factory(lambda made: live_values(made.model), takes_self=True), init=False)

    @property
    def model(self) -> Model:
        """Return the model."""
        return self.programs.model

    @property
    def operator(self) -> Operator:
        """Return what drives training, and into how many shards it cuts every batch."""
        return cast("Operator", self.settings.operator)

    @property
    def is_reproducible(self) -> bool:
        """Return whether bits do not depend on time; else the journal alone repeats them."""
        return self.operator.mode != "asynchronous"

    @cached_property
    def directions(self) -> Mapping[str, str]:
        """Return which values of metrics are better, by the address, or pattern, at which they are published."""
        return published_directions(self.order.hooks.values(), self.model)

    def direction(self, address: str) -> str:
        """Return which values at an address are better, also at that of another trainer that is prepared."""
        other, _, inner = address.partition(".")
        if other != self.name and other in self.others and self.others[other].is_prepared:
            return str(self.others[other].session.setup.direction(inner))
        return find_direction(address, self.directions)

    def to_device(self, value: np.ndarray) -> Any:
        """Return a copy of a host array on the device."""
        return self.programs.backend.to_device(value)

    def to_host(self, value: Any) -> np.ndarray:
        """Return a copy of a device array on the host."""
        return self.programs.backend.to_host(value)

    def group(self, address: str) -> list[str]:
        """Return the live values that an address sets: one, or one per parameter (``optimiser.<setting>``)."""
        if address in self.live.base:
            return [address]
        head, _, setting = address.rpartition(".")
        return [f"{head}.{parameter}.{setting}" for parameter in self.model.tuned_parameters(head)]

    def frozen_by(self, address: str) -> list[str]:
        """Return the parameters that an address freezes: one, or all of an optimiser (``optimiser.frozen``)."""
        return [p for p, head in self.model.owners.items() if address in (f"{head}.frozen", f"{head}.{p}.frozen")]

    def backend_name(self, changes: Changes, iteration: int) -> str:
        """Return the display name of the backend that computes after so many iterations."""
        backend = self.programs.select_tier(iteration).backend
        if backend is self.parts.backend:
            return self.factory.backend_name(changes)
        return display_name(backend).removesuffix("_backend")

    def counts(self, split: str) -> dict[str, int]:
        """Return how many rows of a split there are, are left out, and have another label."""
        return self.evaluator.data(split).counts

    @property
    def published_addresses(self) -> list[str]:
        """Return the addresses and patterns that hooks publish."""
        return [address for hook in self.order.hooks.values() for address in hook.writes]

    @cached_property
    def listening(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Return the addresses of other trainers that a hook may read, as name and rest, by hook."""
        every = {name: other_trainers(reads(hook), self.published_addresses) for name, hook in self.order.hooks.items()}
        return {name: addresses for name, addresses in every.items() if addresses}

    def evaluate(self, steps: Steps, on: str, metrics: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
        """Return the loss and metrics over a split, by the state of other steps; ``changes`` are of the evaluator."""
        evaluator = evolve(self.evaluator, **changes)
        try:
            return evaluator.evaluate(evolve(steps, programs=self.programs), on, metrics)
        finally:
            evaluator.close()

    def close(self) -> None:
        """Stop all background work."""
        self.feed.close()
        self.evaluator.close()


@frozen(eq=False, kw_only=True, repr=False)
class RunState:
    """The state of a run.  ``arrays`` are on the device, by name."""

    arrays: Mapping[str, Any]
    kept: Mapping[str, np.ndarray] = field(factory=dict)  # on the host, by KEPT or UNDO and their names
    moment: Moment = Moment()
    cursor: Cursor
    live: Live
    memory: Memory
    published: Mapping[str, Any] = field(factory=dict)
    sums: Sums = field(factory=dict)  # of what training measured, over the epoch so far
    changes: Changes = field(factory=dict)  # how the components differ from those of the settings
    data: Mapping[str, Any] = field(factory=dict)  # of the changes that act at the next epoch, those in force
    undo: Sequence[Mapping[str, Any]] = ()  # entries to undo the last commands

    @property
    def set_aside(self) -> bool:
        """Return whether a hook has brought back an earlier state since training ended."""
        return any(name.startswith(LAST) for name in self.kept)

    def workers(self, setup: Setup) -> int:
        """Return the number of workers that compute shards, as it was set last."""
        number: int = self.changes.get("workers", getattr(setup.operator, "workers", 1))
        return min(number, setup.operator.shards)

    def every(self, setup: Setup) -> int:
        """Return after how many iterations replicas are averaged, as it was set last; 0 if there are none."""
        averages = setup.operator.mode == "averaging"
        return int(self.changes.get("every", setup.operator.every)) if averages else 0

    def staleness(self, setup: Setup) -> int:
        """Return how many updates a gradient lacks at most, as it was set last; 0 if none."""
        is_late = setup.operator.mode == "asynchronous"
        return int(self.changes.get("staleness", setup.operator.staleness)) if is_late else 0

    def operator_settings(self, setup: Setup) -> dict[str, int]:
        """Return the settings of the operator that can be set live, by name, as they were set last."""
        return {"workers": self.workers(setup), "every": self.every(setup), "staleness": self.staleness(setup)}

    def after_burst(
        self, arrays: Mapping[str, Any], cursor: Cursor, moment: Moment, published: Mapping[str, Any], sums: Sums
    ) -> RunState:
        """Return this state with what a burst changes: as ``evolve`` does, in half the time."""
        return RunState(
            arrays=arrays, kept=self.kept, moment=moment, cursor=cursor, live=self.live, memory=self.memory,
            published=published, sums=sums, changes=self.changes, data=self.data, undo=self.undo,
        )  # fmt: skip

    def without_arrays(self) -> RunState:
        """Return this state with the names of its arrays alone."""
        names: dict[str, Any] = dict.fromkeys(self.arrays)
        return self.after_burst(names, self.cursor, self.moment, self.published, self.sums)

    def without_last(self) -> RunState:
        """Return this state, from which training goes on, without the one in which it ended."""
        return evolve(self, kept={name: value for name, value in self.kept.items() if not name.startswith(LAST)})


@frozen(eq=False)
class LastBurst:
    """What the last burst has left for the hooks that are due after it; no snapshot holds it."""

    observed: Mapping[str, np.ndarray] = field(factory=dict)
    iteration: Iteration | None = None  # the last one, if a hook is due that repeats it
    finite: bool = True  # its loss


@frozen(eq=False, repr=False)
class Present:
    """A run at one moment: who reads it once sees parts that belong together."""

    setup: Setup
    state: RunState
    progress: TrainingProgress = TrainingProgress()
    last: LastBurst = LastBurst()

    def with_state(self, state: RunState) -> Present:
        """Return the run in another state."""
        return Present(self.setup, state, self.progress, self.last)

    def with_progress(self, progress: TrainingProgress) -> Present:
        """Return the run with another progress."""
        return Present(self.setup, self.state, progress, self.last)

    def steps(self, weights: str = "") -> Steps:
        """Return the steps that compute iterations from the state, or evaluate the weights of a modifier."""
        arrays = apply_weights(self.state.arrays, weights, self.setup.to_host) if weights else self.state.arrays
        return steps_of(self.state, self.setup, arrays)

    def copy_steps(self, weights: str = "") -> Steps:
        """Return the steps with copies on the host of all arrays but those of optimisers."""
        steps, copy = self.steps(weights), self.setup.to_host
        return evolve(steps, arrays={n: copy(x) for n, x in steps.arrays.items() if not n.startswith(OPTIMISERS)})


def plain_values(published: Mapping[str, Any]) -> dict[str, Any]:
    """Return the published values that a snapshot saves: numbers, strings, booleans."""
    return {name: value for name, value in published.items() if isinstance(value, int | float | str | bool)}


def renew_layer_state(state: RunState, setup: Setup) -> RunState:
    """Return a state whose layer state begins anew if an epoch does."""
    if setup.feed.iteration_in_epoch(state.cursor):
        return state
    fresh = {name: setup.to_device(value) for name, value in setup.model.fresh_state().items()}
    return evolve(state, arrays={**state.arrays, **fresh}) if fresh else state


def count_burst(
    state: RunState, setup: Setup, batches: Batches, result: Burst, seconds: float = 0.0
) -> tuple[RunState, Measured]:
    """Return the state after a burst that took so many seconds, and what that measured."""
    size, feed = batches.rows.shape[1], setup.feed
    cursor = feed.advance(state.cursor, batches, result.done)
    values = read_measurements(result.ring, setup.model.metrics, size)
    sums = add_to_sums(state.sums if feed.iteration_in_epoch(state.cursor) else {}, values)
    moment = state.moment.advance(result.done, result.done * size, seconds, cursor.epoch - state.cursor.epoch)
    published = {**state.published, **result.published, **latest(values, sums, setup.model.costs)}
    return state.after_burst(result.state, cursor, moment, published, sums), values


def steps_of(state: RunState, setup: Setup, arrays: Arrays | None = None) -> Steps:
    """Return the steps that compute iterations from a state, or from other arrays in its place."""
    own, feed = state.arrays if arrays is None else arrays, setup.feed
    done = feed.iteration_in_epoch(state.cursor)
    programs = setup.programs.select_tier(state.moment.iteration)
    return Steps(programs, own, state.live, state.moment, done, feed.iterations_per_epoch)


def learned_from(state: RunState, setup: Setup) -> Learned:
    """Return what was learned from the data, to read others alike."""
    fitted = {name: setup.to_host(x) for name, x in state.arrays.items() if name.startswith(FITTED)}
    evaluator = setup.evaluator
    return Learned.from_checkpoint({"learned": evaluator.learned, "classes": evaluator.classes}, fitted)


def next_rounds(state: RunState, setup: Setup, n: int) -> Batches:
    """Return the next ``n`` minibatches or fewer, of one block; if replicas are averaged, those of whole rounds."""
    done = setup.feed.iteration_in_epoch(state.cursor)
    return setup.feed.next_batches(state.cursor, whole_rounds(n, done, state.every(setup)))


def repeat_iterations(state: RunState, setup: Setup, n: int, compute: Compute) -> RunState:
    """Return the state after ``n`` iterations that have run, or after the last whole round of them; nothing changes."""
    while n > 0:
        state = renew_layer_state(state, setup)
        batches = next_rounds(state, setup, min(n, MOST))
        if len(batches.rows) > n:
            break
        result = compute(steps_of(state, setup), batches)
        state, _ = count_burst(state, setup, batches, result)
        n -= result.done
    return state
