"""Model what training costs by the number of workers: memory, traffic and speed, from one step that is measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from attrs import define, evolve, field, frozen

from sigma_kernel.contracts import Program, Step
from sigma_step.graphs import gradient_step, update_step
from sigma_step.model import LAYERS
from sigma_step.steps import Steps
from sigma_training.group.merging import LocalExchange
from sigma_training.group.sharding import ShardedStep
from sigma_training.session.session import Session
from sigma_training.session.state import renew_layer_state, steps_of

T = TypeVar("T")
SECONDS = 0.5  # that steps are measured for at least


@frozen
class StepCosts:
    """What a step costs one worker: bytes, and seconds as they were measured.

    Args:
        batch: Rows of a batch.
        shards: Its parts.
        shard_seconds: Seconds of the gradients of a shard.
        update_seconds: Seconds of all that every worker does for itself: the update, the weights of a batch.
        state: Bytes of parameters, slots and layer state.
        gradients: Bytes of the gradients of a shard.
        program: Bytes that the programs of gradients and update need beside what they are given and return.
        data: Bytes of the block of data that a batch is from.
        lanes: Whether each shard has its own part of the block, so that a worker reads those of its shards alone.
    """

    batch: int
    shards: int
    shard_seconds: float
    update_seconds: float
    state: int
    gradients: int
    program: int
    data: int
    lanes: bool = False


@frozen
class WorkerPlan:
    """What is expected of a number of workers: bytes of memory for each, bytes that each sends, seconds of a step."""

    workers: int
    shards: int  # of the worker that has the most
    memory: int
    traffic: float
    seconds: float
    rows: float  # a second


def plan_workers(costs: StepCosts, bandwidth: float, latency: float) -> list[WorkerPlan]:
    """Return what is expected of 1, 2, 4 ... workers, and of as many as there are shards.

    ``bandwidth`` are the bytes a second that a worker sends, ``latency`` the seconds of a message. Of memory, a worker
    needs what :func:`count_memory` returns; it sends what :func:`count_sent` returns.
    """
    counts = sorted({*(1 << n for n in range(costs.shards.bit_length())), costs.shards})
    return [_plan(costs, workers, bandwidth, latency) for workers in counts]


def count_sent(gradients: int, shards: int, workers: int) -> float:
    """Return the bytes that a worker sends for a sum over all shards: ``(s + 1) G (W - 1) / W``.

    It sends the slices of its ``s`` shards, of ``G`` bytes each, to the others who add these, and its own slice of the
    sum to all.
    """
    return (-(-shards // workers) + 1) * gradients * (workers - 1) / workers


def count_memory(costs: StepCosts, workers: int) -> int:
    """Return the bytes that a worker needs: ``4 S + max(S, s G) + (s + (N - s) / W + 3) G + P + D``.

    It has two states of ``S`` bytes, each on the device and on the host; gradients of its ``s`` shards, of ``G`` bytes
    each, or later the state with which it joined; copies of these gradients to be added, slices of those of the others,
    the sum, and two temporaries; ``P`` bytes of programs and ``D`` of data, of which lanes leave it ``s / N``. A single
    worker adds without copies.
    """
    own, state, gradients = -(-costs.shards // workers), costs.state, costs.gradients
    vectors = 3 + (own + (costs.shards - own) / workers if workers > 1 else 0)
    data = costs.data * own / costs.shards if costs.lanes else costs.data
    return round(4 * state + max(state, own * gradients) + vectors * gradients + costs.program + data)


def _plan(costs: StepCosts, workers: int, bandwidth: float, latency: float) -> WorkerPlan:
    own = -(-costs.shards // workers)
    traffic = count_sent(costs.gradients, costs.shards, workers)
    waits = traffic / bandwidth + (2 * latency if workers > 1 else 0.0)
    seconds = own * costs.shard_seconds + costs.update_seconds + waits
    return WorkerPlan(workers, own, count_memory(costs, workers), traffic, seconds, costs.batch / seconds)


@define(eq=False)
class TimedExchange(LocalExchange):
    """All shards are computed here, and their time is counted."""

    seconds: float = field(default=0.0, init=False)

    def compute(self, share: Callable[[int], T], numbers: Sequence[int]) -> list[T]:
        """Return the shares of these shards."""
        began = time.perf_counter()
        shares = LocalExchange.compute(self, share, numbers)
        self.seconds += time.perf_counter() - began
        return shares


def count_gradients(session: Session) -> int:
    """Return the bytes of the gradients of a shard: those of all parameters that are trained."""
    arrays, owners = session.state.arrays, session.setup.model.owners
    return sum(session.setup.to_host(arrays[LAYERS + address]).nbytes for address in owners)


def measure_step(session: Session) -> StepCosts:
    """Measure steps of a prepared trainer on copies of its state; the run stays as it is."""
    setup, state = session.setup, renew_layer_state(session.state, session.setup)
    batches, shards = setup.feed.next_batches(state.cursor, 1), setup.operator.shards
    arrays = {name: session.setup.to_host(value) for name, value in state.arrays.items()}

    def run(exchange: TimedExchange) -> float:
        copies = {name: setup.to_device(value) for name, value in arrays.items()}  # a step writes to them
        steps: Steps = evolve(steps_of(state, setup), arrays=copies)
        began = time.perf_counter()
        ShardedStep(shards, exchange)(steps, batches)
        return time.perf_counter() - began

    run(TimedExchange())  # compiles
    exchange, seconds = TimedExchange(), list[float]()
    while sum(seconds) < SECONDS:
        seconds.append(run(exchange))
    programs, size = setup.programs.select_tier(state.moment.iteration), -(-batches.rows.shape[1] // shards)
    gradients, sizes = count_gradients(session), {name: value.nbytes for name, value in arrays.items()}
    compiled = [programs.get(gradient_step, size), programs.get(update_step)]
    blocks = [lane.block for lane in batches.lanes] or [batches.block]
    return StepCosts(
        batch=batches.rows.shape[1],
        shards=shards,
        shard_seconds=exchange.seconds / len(seconds) / shards,
        update_seconds=(sum(seconds) - exchange.seconds) / len(seconds),
        state=sum(sizes.values()),
        gradients=gradients,
        program=sum(_count_beside(step, program, sizes, gradients) for step, program in compiled),
        data=sum(setup.to_host(value).nbytes for block in blocks for value in block.values()),
        lanes=bool(batches.lanes),
    )


def _count_beside(step: Step, program: Program, sizes: Mapping[str, int], gradients: int) -> int:
    """Return the bytes that a program needs beside the state that it reads, and gradients: its own result, or given."""
    return max(int(program.peak_bytes) - gradients - sum(sizes.get(name, 0) for name in step.state), 0)
