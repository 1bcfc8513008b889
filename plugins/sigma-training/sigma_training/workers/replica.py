"""The local scope of a worker: a prepared trainer with two states, the committed one and the one beside it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_kernel.contracts.grouping import Channel, Commit, ComputeOrder, Position
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.errors import SigmaStateError
from sigma_step.steps import compute_fused
from sigma_training.group.sharding import ShardedStep
from sigma_training.session.snapshot import snapshot
from sigma_training.session.state import Present, count_burst, renew_layer_state, steps_of
from sigma_training.workers.exchange import ChannelExchange

PAGE, PAGES = 4096, 256  # bytes and number of the parts of an array that are compared


@frozen
class BurstRecords:
    """What a burst measured: rings by name, the number of iterations, and the values of the workers' local scopes."""

    ring: Mapping[str, np.ndarray]
    done: int
    published: Mapping[str, Any]


@frozen(eq=False)
class CopiedState:
    """A state of a run, and its copy on the host: for the digest, the operator, and workers that join."""

    run: Present
    saved: Checkpoint


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

    def adopt(self, saved: Checkpoint) -> None:
        """Hold a state, with the components that it was saved with."""
        self.session.restore(saved)
        self.committed, self.beside = CopiedState(self.session.present, saved), None

    def compute(
        self, order: ComputeOrder, worker: int, channel: Channel, is_dropped: Callable[[], bool]
    ) -> tuple[Commit, str, BurstRecords]:
        """Compute a burst beside the committed state; return its commit, the digest of its state, and its records."""
        run, saved, begin = self.committed.run, self.committed.saved, order.commit.position
        setup, n = run.setup, order.end.iteration - begin.iteration
        own = {name: setup.to_device(saved.arrays[name]) for name in run.state.arrays}  # the step writes to them
        state = renew_layer_state(evolve(run.state, arrays=own), setup)
        batches = setup.feed.next_batches(state.cursor, n)
        if len(batches.rows) != n:
            raise SigmaStateError(f"{n} iterations were ordered, and the data have {len(batches.rows)} here.")
        shards, exchange = sum(map(len, order.shards.values())), ChannelExchange(channel, order, worker, is_dropped)
        compute = compute_fused if shards == 1 else ShardedStep(shards, exchange)
        result = compute(steps_of(state, setup), batches)
        new, _ = count_burst(state, setup, batches, result)
        self.beside = CopiedState(run.with_state(new), saved := snapshot(new, setup))
        end = Position(order.end.epoch, begin.iteration + result.done, begin.version)
        records = BurstRecords(result.ring, result.done, result.published)
        return Commit(end, order.generation), digest_of(saved.arrays), records

    def promote(self) -> None:
        """Let the state beside the committed one replace it."""
        if self.beside is not None:
            self.committed, self.beside = self.beside, None

    def drop(self) -> None:
        """Drop the state beside the committed one."""
        self.beside = None


def digest_of(arrays: Mapping[str, np.ndarray]) -> str:
    """Return a checksum of arrays: of all of their bytes, or of 1 MB of an array that is larger, in pages."""
    value = 0
    for name in sorted(arrays):
        flat = np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8)
        step = max(PAGE, len(flat) // PAGES)
        for start in range(0, len(flat), step):
            value = zlib.crc32(flat[start : start + PAGE].data, value)
    return f"{value:08x}"
