"""The local scope of a worker: a prepared trainer with two states, the committed one and the one beside it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_kernel.contracts import Batches, Burst, Metric
from sigma_kernel.contracts.grouping import Channel, Commit, ComputeOrder, Position
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.errors import SigmaStateError, error_text
from sigma_kernel.plugins.resolver import resolve_components
from sigma_step.steps import Steps
from sigma_training.group.asynchronous import Ages, AsynchronousStep
from sigma_training.group.averaging import choose_step
from sigma_training.group.shares import assign_shards
from sigma_training.passes import SplitPass, SplitPiece
from sigma_training.session.snapshot import snapshot
from sigma_training.session.state import Present, count_burst, renew_layer_state, steps_of
from sigma_training.workers.calls import CallResult, run_call
from sigma_training.workers.exchange import BurstDropped, ChannelExchange

MEASURED, CALLS = "pass", "calls"  # among the live values of a burst: a pass over a split, or hooks, and no iterations
PAGE, PAGES = 4096, 256  # bytes and number of the parts of an array that are compared


@frozen
class BurstRecords:
    """What a burst measured: rings by name, the number of iterations, the values of the workers' local scopes, ages."""

    ring: Mapping[str, np.ndarray]
    done: int
    published: Mapping[str, Any]
    ages: Ages = ()


@frozen(eq=False)
class CopiedState:
    """A state of a run, and its copy on the host: for the digest, the operator, and workers that join."""

    run: Present
    saved: Checkpoint


@frozen(eq=False)
class MeasuredParts:
    """What a worker measures of a pass over a split: the pieces of its shards by number, or why it cannot."""

    pieces: Mapping[int, Sequence[SplitPiece]] = field(factory=dict)
    error: str = ""


Records = BurstRecords | MeasuredParts | Mapping[str, CallResult] | None  # of a burst: what a worker reports


class Restorable(Protocol):
    """A prepared trainer."""

    @property
    def present(self) -> Present:
        """Return its setup and state."""

    def restore(self, saved: Checkpoint) -> None:
        """Restore a state, with the components that it was saved with."""


@define(eq=False)
class Replica:
    """A trainer that computes its shards of bursts, beside the state that is committed."""

    session: Restorable
    committed: CopiedState = field(init=False)
    beside: CopiedState | None = field(default=None, init=False)
    _metrics: dict[str, Mapping[str, Metric]] = field(factory=dict, init=False)  # that passes have asked for

    def adopt(self, saved: Checkpoint) -> None:
        """Hold a state, with the components that it was saved with."""
        self.session.restore(saved)
        self.committed, self.beside = CopiedState(self.session.present, saved), None

    def compute(
        self, order: ComputeOrder, worker: int, channel: Channel, is_dropped: Callable[[], bool]
    ) -> tuple[Commit, str, Records]:
        """Compute a burst beside the committed state; return its commit, the digest of its state, and its records.

        The first worker has those of iterations; each has those of its parts of a pass over a split, or of its hooks.
        """
        if MEASURED in order.live:
            return Commit(order.end, order.generation), "", self._measure(order, worker, is_dropped)
        if CALLS in order.live:
            return Commit(order.end, order.generation), "", self._run_calls(order, worker)
        run, saved, begin = self.committed.run, self.committed.saved, order.commit.position
        setup, n = run.setup, order.end.iteration - begin.iteration
        own = {name: setup.to_device(saved.arrays[name]) for name in run.state.arrays}  # the step writes to them
        state = renew_layer_state(evolve(run.state, arrays=own), setup)
        batches = setup.feed.next_batches(state.cursor, n)
        if len(batches.rows) != n:
            raise SigmaStateError(f"{n} iterations were ordered, and the data have {len(batches.rows)} here.")
        exchange = ChannelExchange(channel, order, worker, is_dropped)
        result, ages = train_burst(evolve(steps_of(state, setup), end=order.live["end"]), batches, order, exchange)
        new, _ = count_burst(state, setup, batches, result)
        self.beside = CopiedState(run.with_state(new), saved := snapshot(new, setup))
        late = bool(ages) and result.done < n  # sums behind the end are known, and are not those of the next burst
        end = Position(order.end.epoch, begin.iteration + result.done, begin.version + late)
        records = BurstRecords(result.ring, result.done, result.published, ages)
        first = worker == min(order.shards)
        return Commit(end, order.generation), digest_of(saved.arrays), records if first else None

    def _measure(self, order: ComputeOrder, worker: int, is_dropped: Callable[[], bool]) -> MeasuredParts:
        """Return what a pass measures in the parts of this worker's shards; errors are those of the operator, too."""
        run, pieces, count = self.committed.run, dict[int, list[SplitPiece]](), sum(map(len, order.shards.values()))
        try:
            what = self._resolve(order.live[MEASURED])
            for number in order.shards[worker]:
                pieces[number] = []
                for piece in run.setup.evaluator.measure(run.steps(), what, number, count):
                    if is_dropped():
                        raise BurstDropped("the pass is no longer wanted.")
                    pieces[number].append(piece)
        except BurstDropped:
            raise
        except Exception as error:
            return MeasuredParts(error=f"worker {worker}: {error_text(error)}")
        return MeasuredParts(pieces)

    def _resolve(self, what: SplitPass) -> SplitPass:
        """Return a pass with its metrics as objects: the same ones each time, for which programs are compiled once."""
        if what.metrics is None:
            return what
        if (key := repr(what.metrics)) not in self._metrics:
            resolve = self.committed.run.setup.model.resolve
            self._metrics[key] = resolve_components(resolve, "metrics", Metric, what.metrics)
        return evolve(what, metrics=self._metrics[key])

    def _run_calls(self, order: ComputeOrder, worker: int) -> Mapping[str, CallResult]:
        """Run the hooks of local scope that fall to this worker; return the results by scope."""
        held, calls, members = self.committed, order.live[CALLS], sorted(order.shards)
        own = assign_shards(len(calls), members)[worker]
        return {calls[i].scope: run_call(calls[i], held.run, held.saved.arrays) for i in own}

    def promote(self) -> None:
        """Let the state beside the committed one replace it."""
        if self.beside is not None:
            self.committed, self.beside = self.beside, None

    def drop(self) -> None:
        """Drop the state beside the committed one."""
        self.beside = None


def train_burst(steps: Steps, batches: Batches, order: ComputeOrder, exchange: ChannelExchange) -> tuple[Burst, Ages]:
    """Return a burst, and the ages of its gradients, if some may lack updates: a member that is alone has them all."""
    shards, live = sum(map(len, order.shards.values())), order.live
    if live["staleness"] and len(order.shards) > 1:
        return AsynchronousStep(shards, live["staleness"], exchange).run(steps, batches)
    return choose_step(shards, live["every"], exchange)(steps, batches), ()


def digest_of(arrays: Mapping[str, np.ndarray]) -> str:
    """Return a checksum of arrays: of all of their bytes, or of 1 MB of an array that is larger, in pages."""
    value = 0
    for name in sorted(arrays):
        flat = np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8)
        step = max(PAGE, len(flat) // PAGES)
        for start in range(0, len(flat), step):
            value = zlib.crc32(flat[start : start + PAGE].data, value)
    return f"{value:08x}"
