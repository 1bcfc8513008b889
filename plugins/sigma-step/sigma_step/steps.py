"""Compile the steps of a model, and run iterations: fused into bursts, or in shards of a batch.

A shard is some rows of a batch.  Its gradients are computed separately, merged with those of the other shards, and
applied in one update.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_kernel.arrays import protect, read_only
from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Backend, Batches, Burst, Compute, Iterations, Metric, Program, Share, Step
from sigma_kernel.contracts.compute import Arrays, Records
from sigma_kernel.errors import expect, introduce_errors
from sigma_step.graphs import gradient_step, observation_step, training_step, update_step, weight_step
from sigma_step.live import Live, Span
from sigma_step.model import BATCH, LAYERS, METRICS, PART, VECTORS, WEIGHTS, Model
from sigma_step.totals import InParts, add_exactly, is_additive

Compiled = tuple[Step, Program]
_NOTHING = np.zeros((1, 0), np.int32)


# -- programs ----------------------------------------------------------------------------------------------------------
@define(eq=False)
class Programs:
    """The compiled steps of a model, compiled on first use; safe to use from several threads."""

    model: Model
    backend: Backend
    steps: dict[Any, Step] = field(factory=dict)  # by kind; the same model on another backend may share them
    compiling: bool = field(default=False, init=False)
    _made: dict[Any, Compiled] = field(factory=dict)
    _lock: threading.RLock = field(factory=threading.RLock)
    _tiers: Sequence[tuple[int, Programs]] = field()  # by the iteration from which they run, the last one first
    _report: Callable[..., object] | None = field(default=None, init=False)  # called with the key of each new program

    @_tiers.default
    def _(self) -> Sequence[tuple[int, Programs]]:
        tiers = sorted(self.backend.tiers.items(), key=itemgetter(0), reverse=True)
        others = ((start, backend) for start, backend in tiers if backend is not self.backend)
        return [(start, Programs(self.model, backend, self.steps)) for start, backend in others]

    def silent_copy(self) -> Programs:
        """Return the same programs for somebody for whom training does not wait: what he compiles is not reported."""
        return evolve(self, tiers=[(start, programs.silent_copy()) for start, programs in self._tiers])

    # -- tiers ---------------------------------------------------------------------------------------------------------
    def select_tier(self, iteration: int) -> Programs:
        """Return the programs of the tier that computes after so many iterations."""
        for start, programs in self._tiers:
            if start <= iteration:
                return programs
        return self

    def next_tier(self, iteration: int) -> int | None:
        """Return the iteration from which the next tier computes, if there is one."""
        return min([start for start, _ in self._tiers if start > iteration], default=None) if self._tiers else None

    @property
    def is_compiling(self) -> bool:
        """Return whether somebody waits for a program that is being compiled."""
        return self.compiling or any(programs.compiling for _, programs in self._tiers)

    def compile_ahead(self, iteration: int, submit: Callable[..., object]) -> None:
        """Submit for the next tier, from now on, what the present one runs.

        ``submit`` is called with a function that compiles a program, and its arguments. An error of it is raised again
        when the program is needed.
        """
        if (start := self.next_tier(iteration)) is not None:
            self.select_tier(iteration).report(partial(submit, self.select_tier(start).silent_copy().get))

    def report(self, call: Callable[..., object]) -> None:
        """Call a function with the kind and arguments of each program, now and when it is compiled."""
        with self._lock:
            self._report = call
            for key in self._made:
                call(*key)

    # -- compilation ---------------------------------------------------------------------------------------------------
    def get(self, kind: Callable[..., Step], *about: Any) -> Compiled:
        """Return a step and its program: of a kind, such as ``training_step``, with its arguments."""
        key = (kind, *about)
        if key not in self._made:  # no lock for a cached one: another thread may be compiling
            self.compiling = True
            try:
                with self._lock:
                    if key not in self._made:
                        self._made[key] = self._compile(kind, *about)
                        if self._report is not None:
                            self._report(*key)
            finally:
                self.compiling = False
        return self._made[key]

    def compile(self, size: int, shards: int) -> None:
        """Compile what training on batches of a size runs: whole ones, or cut into at most so many shards."""
        if shards == 1:
            self.get(training_step, size)
            return
        parts = min(shards, size)
        weighted = [self.weighs(rows) for rows in {-(-size // parts), size // parts}]  # which compiles both
        if any(weighted):
            self.get(weight_step, size)

    def weighs(self, shard: int) -> bool:
        """Return whether a shard of this size, or the update, needs the weight of the whole batch."""
        unequal = any(name.startswith(WEIGHTS) for name in self.get(gradient_step, shard)[0].steer)
        return any(name.startswith(BATCH) for name in self.get(update_step)[0].state) or unequal

    def _compile(self, kind: Callable[..., Step], *about: Any) -> Compiled:
        key = (kind, *about)
        with pause_collector():
            if key not in self.steps:
                self.steps[key] = kind(self.model, *about)
            with introduce_errors("backend", self.backend):
                return self.steps[key], self.backend.compile(self.steps[key])


@contextmanager
def pause_collector() -> Iterator[None]:
    """Let Python not search for cycles of objects meanwhile: graphs are many objects that stay, and have none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


# -- iterations --------------------------------------------------------------------------------------------------------
@frozen(eq=False)
class Steps:
    """Compute iterations from a state: its arrays, and the live values in force."""

    programs: Programs
    arrays: Arrays
    live: Live
    moment: Moment
    done: int = 0  # iterations of the present epoch
    per_epoch: int = 1
    end: int | None = None  # the iteration at which training ends, if that is known

    @property
    def iteration_in_epoch(self) -> int:
        """Return the number of iterations of the present epoch before the state."""
        return self.done

    @property
    def written_names(self) -> Sequence[str]:
        """Return the names of the arrays that sharded iterations change: those of updates, and layer state."""
        layers = [LAYERS + address for address in self.programs.model.layer_state()]
        return (*self.programs.get(update_step)[0].writes, *layers)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Return the metrics that are recorded at each training step."""
        return {name: InParts(m) if is_additive(m) else m for name, m in self.programs.model.metrics.items()}

    def steer(self, step: Step, n: int = 1, offset: int = 0) -> dict[str, Any]:
        """Return the live values of ``n`` iterations of a step, ``offset`` iterations from now."""
        now = self.moment
        span = Span(now.iteration + offset, n, now.epoch, self.done + offset, self.per_epoch, self.end)
        return self.live.values_at(step, span)

    def to_device(self) -> Steps:
        """Return the same steps with their arrays, which are on the host, copied to the device."""
        return evolve(self, arrays=self.place(self.arrays))

    def to_host(self, arrays: Arrays) -> Records:
        """Return copies of arrays on the host."""
        return {name: self.programs.backend.to_host(value) for name, value in arrays.items()}

    def place(self, arrays: Records) -> Arrays:
        """Return copies of arrays on the device."""
        return {name: self.programs.backend.to_device(value) for name, value in arrays.items()}

    def run_fused(self, batches: Batches) -> Burst:
        """Run whole iterations on minibatches."""
        n, size = batches.rows.shape
        step, program = self.programs.get(training_step, size)
        steer = self.steer(step, n)
        with introduce_errors("backend", self.programs.backend):
            burst = program.run(self.arrays, batches.block, batches.rows, steer, n)
            expect(isinstance(burst, Burst), "run() must return a Burst", burst)
        return burst

    # -- shards --------------------------------------------------------------------------------------------------------
    def weights(self, arrays: Arrays, block: Arrays, rows: np.ndarray, shard: int, offset: int) -> Records:
        """Return the mean weight of the rows of a batch, by cost, and the weight of all, by optimiser that reads it.

        ``shard`` is the size of one of its shards. The result is empty if nothing needs weights.
        """
        if not self.programs.weighs(shard):
            return {}
        step, program = self.programs.get(weight_step, len(rows))
        ring = program.run(arrays, block, rows[None], self.steer(step, offset=offset), 1).ring
        return {name: x[0] / len(rows) if name.startswith(WEIGHTS) else x[0] for name, x in ring.items()}

    def share(
        self, arrays: Arrays, block: Arrays, rows: np.ndarray, start: int, total: int, offset: int, weights: Records
    ) -> Share:
        """Return the share of a shard: these ``rows`` of a batch of ``total`` rows, starting at row ``start``."""
        step, program = self.programs.get(gradient_step, len(rows))
        steer = self._steer_shard(step, rows, start, total, offset, weights)
        ring = program.run(arrays, block, rows[None], steer, 1).ring
        records = {name: values[0] for name, values in ring.items()}
        gradients = {name.removeprefix(VECTORS): records.pop(name) for name in ring if name.startswith(VECTORS)}
        state = {name: records.pop(name) for name in ring if name in arrays}
        batch = {name: each for name, each in weights.items() if name.startswith(BATCH)}  # the same in every shard
        return Share(records, gradients, {**state, **batch})

    def observe_shard(
        self, block: Arrays, rows: np.ndarray, start: int, total: int, weights: Records, wanted: Sequence[str]
    ) -> Records:
        """Return gradients and activations of a shard in the next iteration, by address.

        Gradients are times the shard's part of ``total`` rows.
        """
        step, program = self.programs.get(observation_step, len(rows), tuple(wanted), True)
        steer = self._steer_shard(step, rows, start, total, 0, weights)
        ring = program.run(self.arrays, block, rows[None], steer, 1).ring
        return {name: values[0] for name, values in ring.items()}

    def _steer_shard(
        self, step: Step, rows: np.ndarray, start: int, total: int, offset: int, weights: Records
    ) -> dict[str, Any]:
        """Return the live values of a shard: its place in the batch, its part of the rows, and what these weigh."""
        shares = {n: x * x.dtype.type(len(rows)) for n, x in weights.items() if not n.startswith(BATCH)}
        part = np.asarray(len(rows) / total, self.programs.model.precision)
        steer = {**self.steer(step, offset=offset), **shares, "shard.row": np.uint32(start), PART: part}
        return {name: steer[name] for name in step.steer}

    def split_gradients(self, gradients: Records) -> Records:
        """Return the gradient of each parameter, by its address: views of the vectors."""
        return self.programs.model.vectors.split(gradients)

    def apply_update(self, arrays: Arrays, gradients: Records, state: Records, offset: int) -> Arrays:
        """Return the arrays after the update with merged gradients, and with merged layer state."""
        step, program = self.programs.get(update_step)
        place = self.programs.backend.to_device
        layers = {name: place(value) for name, value in state.items()}
        given = {VECTORS + dtype: self.programs.backend.share(vector) for dtype, vector in gradients.items()}
        new = program.run({**arrays, **layers, **given}, {}, _NOTHING, self.steer(step, offset=offset), 1).state
        return {**{name: new[name] for name in arrays}, **{n: x for n, x in layers.items() if n in arrays}}


def compute_fused(steps: Iterations, batches: Batches) -> Burst:
    """Compute a burst with the fused program."""
    return steps.run_fused(batches)


# -- one iteration to repeat -------------------------------------------------------------------------------------------
@frozen(eq=False)
class Iteration:
    """An iteration: how it was computed, from which arrays (host copies) and rows, and its outcome."""

    compute: Compute
    steps: Steps
    batches: Batches  # one minibatch, all rows of its block
    outcome: dict[str, np.ndarray] = field(factory=dict)

    @property
    def backend(self) -> Backend:
        """Return the backend that ran it."""
        return self.steps.programs.backend

    @classmethod
    def begin(cls, compute: Compute, steps: Steps, batches: Batches) -> Iteration:
        """Return the iteration that is about to run."""
        backend, rows = steps.programs.backend, batches.rows[0]
        sections = steps.programs.model.sections
        block = {name: backend.to_host(backend.take(batches.block[name], rows)) for name in sections}
        before = {name: backend.to_host(value) for name, value in steps.arrays.items()}
        batch = Batches(protect(block), read_only(np.arange(len(rows), dtype=np.int32)[None]))
        return cls(compute, evolve(steps, arrays=protect(before)), batch)

    def with_outcome(self, result: Burst) -> Iteration:
        """Return the iteration with its outcome."""
        return evolve(self, outcome=protect(_outcome(result, self.steps)))

    def repeat(self, backend: Backend) -> dict[str, np.ndarray]:
        """Return the outcome of the same iteration on a backend, by the operator's own burst, without side effects."""

        def copy_to_device(held: Mapping[str, np.ndarray]) -> dict[str, Any]:
            return {name: backend.to_device(value) for name, value in held.items()}

        own = self.steps.programs
        steps = evolve(
            self.steps, programs=Programs(own.model, backend, own.steps), arrays=copy_to_device(self.steps.arrays)
        )
        return _outcome(self.compute(steps, evolve(self.batches, block=copy_to_device(self.batches.block))), steps)


def _outcome(result: Burst, steps: Steps) -> dict[str, np.ndarray]:
    """Return the outcome of an iteration: new state, ``training.loss`` and totals of metrics, by name."""
    arrays = {name: steps.programs.backend.to_host(value) for name, value in result.state.items()}
    for name, values in result.ring.items():
        own = name.removeprefix(METRICS)
        arrays[f"training.{own}"] = add_exactly(values[0]) if isinstance(steps.metrics.get(own), InParts) else values[0]
    return arrays
