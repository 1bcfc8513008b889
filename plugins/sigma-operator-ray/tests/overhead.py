"""Measure what a step costs beside computing: workers on Ray add vectors, and do nothing else.

Run ``python plugins/sigma-operator-ray/tests/overhead.py [--nodes 1] [--workers 2] [--rounds 4] [--steps 120]``. It
starts a cluster of nodes on this machine, and prints a row of a table for some lengths, by channels and by calls alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np
from attrs import frozen

from sigma_kernel.contracts import (
    Channel,
    Commit,
    ComputeOrder,
    GroupEvent,
    JoinOrder,
    LeaveOrder,
    Position,
    ShardPart,
    StartOrder,
    WorkerComputed,
    WorkerReady,
)
from sigma_operator_ray import RayOperator
from sigma_operator_ray.transport import RayTransport

FIRST = 5  # sums of a round that do not count: channels are made meanwhile
STORE = 300 * 2**20  # bytes


@frozen
class SumBlueprint:
    """Workers that add vectors; the version of a position is their length in bytes."""

    @property
    def plugins(self) -> Mapping[str, str]:
        return {}

    def serve(self, worker: int, channel: Channel) -> None:
        channel.send([WorkerReady(worker)])
        while True:
            for order in channel.orders(0.1):
                if isinstance(order, LeaveOrder):
                    return
                if isinstance(order, ComputeOrder):
                    row = json.dumps(time_sums(worker, channel, order))
                    channel.send([WorkerComputed(worker, Commit(order.end, order.generation), row)])


def time_sums(worker: int, channel: Channel, order: ComputeOrder) -> list[float]:
    """Return the seconds of each sum, and at last those of the processor for one."""
    parts = {worker: ShardPart({"a": np.full(order.end.version // 4, worker, np.float32)}, b"note")}
    seconds, processor = list[float](), time.process_time()
    for iteration in range(order.end.iteration):
        began, position = time.perf_counter(), Position(0, iteration, order.end.version)
        while (total := channel.sum(order, position, parts, len(order.shards), 0.05)) is None:
            pass
        seconds.append(time.perf_counter() - began)
        assert total.vectors["a"][-1] == sum(order.shards)
    return [*seconds, (time.process_time() - processor) / order.end.iteration]


@contextmanager
def start_cluster(nodes: int) -> Iterator[str]:
    """Start a cluster, and yield its address."""
    from ray.cluster_utils import Cluster

    settings = {"worker_niceness": 0}
    head = {"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False, "_system_config": settings}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(nodes):
            cluster.add_node(num_cpus=2, object_store_memory=STORE)
        yield cluster.address
    finally:
        cluster.shutdown()


def start_workers(operator: RayOperator) -> RayTransport:
    """Return a transport with workers that are ready."""
    sys.path.insert(0, str(Path(__file__).parent))
    import overhead  # whose classes can be pickled

    transport = operator.connect()
    transport.start(overhead.SumBlueprint(), operator.workers)
    transport.send([StartOrder(worker) for worker in range(operator.workers)])
    take_events(transport, operator.workers, "WorkerReady")
    return transport


def take_events(transport: RayTransport, count: int, kind: str) -> list[GroupEvent]:
    """Return so many events of a kind, once they have come."""
    events = list[GroupEvent]()
    while len(events) < count:
        events += [event for event in transport.events(1.0) if type(event).__name__ == kind]
    return events


def add_vectors(transport: RayTransport, generation: int, workers: int, size: int, steps: int) -> list[list[float]]:
    """Return what each worker has timed."""
    members, commit = tuple(range(workers)), Commit(Position())
    shards = {worker: (worker,) for worker in members}
    transport.send([JoinOrder(worker, generation, commit, members, None) for worker in members])
    end = Position(0, steps, size)
    transport.send([ComputeOrder(worker, generation, commit, end, {}, shards) for worker in members])
    events = take_events(transport, workers, "WorkerComputed")
    return [json.loads(event.digest) for event in events if isinstance(event, WorkerComputed)]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("nodes", 1), ("workers", 2), ("rounds", 4), ("steps", 120)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--bytes", type=int, nargs="*", default=[4096, 4 << 20])
    chosen = parser.parse_args()
    rows = dict[tuple[int, str], list[list[float]]]()
    with start_cluster(chosen.nodes) as address:
        share = chosen.nodes / chosen.workers
        operators = {
            kind: RayOperator(
                address=address, cpus=share, workers=chosen.workers, shards=chosen.workers, channels=kind == "channels"
            )
            for kind in ("calls", "channels")
        }
        transports = {kind: start_workers(operator) for kind, operator in operators.items()}
        for generation in range(chosen.rounds * len(chosen.bytes)):
            size = chosen.bytes[generation % len(chosen.bytes)]
            for kind, transport in transports.items():
                timed = add_vectors(transport, generation, chosen.workers, size, chosen.steps)
                rows.setdefault((size, kind), []).extend(timed)
        for transport in transports.values():
            transport.close()
    print("| bytes | by | least | quarter | median | processor |\n|---:|---|---:|---:|---:|---:|")
    for (size, kind), timed in sorted(rows.items()):
        sums = sorted(seconds for row in timed for seconds in row[FIRST:-1])
        cells = [*(sums[int(len(sums) * part)] for part in (0.0, 0.25, 0.5)), median(row[-1] for row in timed)]
        print(f"| {size:,} | {kind} | " + " | ".join(f"{1e3 * cell:.2f}" for cell in cells) + " |")


if __name__ == "__main__":
    main()
