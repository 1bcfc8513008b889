"""Links between the workers of a node, without a cluster: channels are lists, and calls are made at once."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import define, field

from sigma_kernel.contracts import Commit, ComputeOrder, JoinOrder, Position, ShardPart, ShardSum, merge_in_tree
from sigma_kernel.slices import PartsPacket, SumKey
from sigma_operator_ray import channel as channel_module, links as links_module
from sigma_operator_ray.channel import JoinMessage, PrintedLine, RayChannel
from sigma_operator_ray.engine import PENDING

COMMIT = Commit(Position())
FLOATS = 70_000  # in a vector, of which slices are exchanged


@define(eq=False)
class ListChannel:
    """A channel whose memory is a list."""

    capacity: int
    values: list[Any] = field(factory=list)

    def write(self, data: Any) -> bool:
        if self.values:
            return False
        self.values.append(pickle.dumps(data, protocol=5))
        return True

    def read(self) -> Any:
        return pickle.loads(self.values.pop()) if self.values else PENDING


@define(eq=False)
class Workers:
    """Two workers in a process, and the calls between them."""

    calls: list[str] = field(factory=list)
    actors: list[RayChannel] = field(factory=lambda: [RayChannel(0), RayChannel(1)])

    def call(self, actor: RayChannel, method: str, *values: Any) -> Any:
        self.calls.append(method)
        if method == "locate":
            return actor.links.locate()
        return actor.links.add_channel(*values) if method == "connect" else actor.receive(*values)

    def add(self, generation: int, iteration: int, floats: int) -> list[ShardSum]:
        """Return the sum of an iteration, as each worker has it."""
        parts = [ShardPart({"a": draw(iteration, shard, floats)}, bytes([shard])) for shard in range(2)]
        sums: dict[int, ShardSum] = {}

        def add(worker: int) -> None:
            order = ComputeOrder(worker, generation, COMMIT, Position(0, 99), {}, {0: (0,), 1: (1,)})
            position, deadline = Position(0, iteration), time.monotonic() + 20.0
            while worker not in sums and time.monotonic() < deadline:
                if (total := self.actors[worker].sum(order, position, {worker: parts[worker]}, 2, 0.05)) is not None:
                    sums[worker] = total

        threads = [threading.Thread(target=add, args=[worker]) for worker in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [sums[0], sums[1]]

    def join(self, generation: int) -> None:
        for actor, peer in (self.actors, self.actors[::-1]):
            order = JoinOrder(actor.worker, generation, COMMIT, (0, 1), None)
            actor.take([JoinMessage(order, {peer.worker: peer}, [])])


def draw(iteration: int, shard: int, floats: int) -> np.ndarray:
    return np.random.default_rng([iteration, shard]).standard_normal(floats, np.float32)


def serialise(value: Any) -> tuple[Any, int]:
    return value, len(pickle.dumps(value, protocol=5))


def use(monkeypatch: pytest.MonkeyPatch, open_channel: Callable[..., Any], node: Callable[[], str]) -> Workers:
    workers = Workers()
    monkeypatch.setattr(channel_module, "call", workers.call)
    monkeypatch.setattr(channel_module, "find_cut", lambda sent: [])
    for name, value in (
        ("call", workers.call), ("get_result", lambda result: result), ("serialise", serialise),
        ("open_channel", open_channel), ("get_node", node), ("is_actor_gone", lambda error: False),
    ):  # fmt: skip
        monkeypatch.setattr(links_module, name, value)
    return workers


def open_list(reader: RayChannel, node: str, capacity: int) -> ListChannel:
    return ListChannel(capacity)


def expect(workers: Workers, generation: int, iteration: int, floats: int) -> int:
    """Add once, check the bits, and return how many packets calls have carried."""
    before = workers.calls.count("receive")
    for total in workers.add(generation, iteration, floats):
        expected = merge_in_tree([draw(iteration, shard, floats) for shard in range(2)], np.add)
        assert total.vectors["a"].tobytes() == expected.tobytes()
        assert total.notes == [b"\0", b"\1"]
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "sigma-link"])
    return workers.calls.count("receive") - before


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20.0
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_packets_take_channels_once_there_are_some_of_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = use(monkeypatch, open_list, lambda: "here")
    workers.join(0)
    assert expect(workers, 0, 0, 100) == 2  # whole vectors
    assert [expect(workers, 0, iteration, 100) for iteration in (1, 2, 3)] == [0, 0, 0]
    assert expect(workers, 0, 4, 10 * FLOATS) > 0  # more than the channel holds
    assert [expect(workers, 0, iteration, 10 * FLOATS) for iteration in (5, 6)] == [0, 0]
    assert expect(workers, 0, 7, 100) == 0
    workers.join(1)
    assert expect(workers, 1, 8, 10 * FLOATS) == 0  # channels outlive generations


def test_what_an_ended_generation_has_left_in_a_channel_counts_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = use(monkeypatch, open_list, lambda: "here")
    workers.join(0)
    expect(workers, 0, 0, FLOATS)
    order = ComputeOrder(0, 0, COMMIT, Position(0, 99), {}, {0: (0,), 1: (1,)})
    wrong = {0: ShardPart({"a": np.full(FLOATS, 7, np.float32)}, b"wrong")}
    assert workers.actors[0].sum(order, Position(0, 1), wrong, 2, 0.01) is None  # written, and never read
    assert workers.actors[0].sum(order, Position(0, 2), wrong, 2, 0.01) is None  # there is no room for it
    workers.join(1)
    assert expect(workers, 1, 1, FLOATS) == 0


def test_a_sum_is_complete_once_its_own_packets_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = use(monkeypatch, open_list, lambda: "here")
    workers.join(0)
    expect(workers, 0, 0, 100)
    order = ComputeOrder(0, 0, COMMIT, Position(0, 99), {}, {0: (0,), 1: (1,)})
    part, (ours, peer) = {0: ShardPart({"a": np.ones(100, np.float32)}, b"")}, workers.actors
    assert ours.sum(order, Position(0, 1), part, 2, 0.01) is None  # its packet occupies the channel
    ours.receive(PartsPacket(SumKey(0, Position(0, 2)), {1: {"a": np.ones(100, np.float32)}}, {1: b""}, True))
    assert ours.sum(order, Position(0, 2), part, 2, 0.01) is None
    peer.links.read(peer.mailbox.put)
    assert ours.sum(order, Position(0, 2), part, 2, 0.01) is not None


def test_without_channels_calls_carry_packets_and_a_line_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(reader: RayChannel, node: str, capacity: int) -> ListChannel:
        raise OSError("no memory is left")

    workers = use(monkeypatch, fail, lambda: "here")
    workers.join(0)
    assert [expect(workers, 0, iteration, FLOATS) for iteration in range(3)] == [4, 4, 4]
    workers.actors[0].tell(None)
    assert workers.actors[0].poll() == [
        PrintedLine(
            0, "Vectors are sent by calls of actors, as Ray's channels cannot be used: OSError: no memory is left"
        )
    ]


def test_workers_of_two_nodes_exchange_packets_by_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = use(monkeypatch, lambda *given: pytest.fail("a channel is made"), lambda: f"{time.monotonic()}")
    workers.join(0)
    assert [expect(workers, 0, iteration, FLOATS) for iteration in range(3)] == [4, 4, 4]
    assert workers.calls.count("locate") == 2
    workers.actors[0].tell(None)
    assert workers.actors[0].poll() is None


def test_channels_of_a_worker_have_bounds_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links_module, "ROOM", links_module.LEAST - 1)
    workers = use(monkeypatch, open_list, lambda: "here")
    workers.join(0)
    assert [expect(workers, 0, iteration, 100) for iteration in range(2)] == [2, 2]
    assert workers.calls.count("locate") == 0
