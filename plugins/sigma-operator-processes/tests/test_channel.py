"""A worker's end, with the operator's end of its connection in the hands of the test."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from sigma_kernel.contracts import (
    Checkpoint,
    Commit,
    ComputeOrder,
    JoinOrder,
    PingOrder,
    Position,
    ShardPart,
    WorkerAlive,
)
from sigma_operator_processes.board import BoardSegments
from sigma_operator_processes.channel import ProcessesChannel
from sigma_operator_processes.link import Link, Packet, StateReply, StateRequest, encode

HERE = Commit(Position(0, 5), 2)
ELSEWHERE = Commit(Position(0, 4), 2)
Ends = tuple[ProcessesChannel, Link]


@pytest.fixture
def ends() -> Iterator[Ends]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel, link = ProcessesChannel(3, Link(theirs), linger=1e6), Link(ours)
        channel.open([])
        yield channel, link
        link.shut()
        with suppress(ConnectionError):  # once the thread has noticed it
            while True:
                channel.orders(10.0)


def receive(link: Link) -> Packet:
    packets = list[Packet]()
    while not packets:
        link.wait(10.0)
        packets = link.receive()
    [packet] = packets
    return packet


def join(generation: int, donor: int | None = None) -> JoinOrder:
    return JoinOrder(3, generation, HERE, (3,), donor)


def test_orders_arrive_and_events_leave(ends: Ends) -> None:
    channel, link = ends
    assert channel.orders(0.01) == []
    link.send(encode(PingOrder(3)))
    assert channel.orders(10.0) == [PingOrder(3)]
    channel.send([WorkerAlive(3)])
    assert receive(link).load() == WorkerAlive(3)


def test_a_worker_gives_the_state_that_it_provides_last_and_no_other(ends: Ends) -> None:
    channel, link = ends
    for commit, provided in ((HERE, None), (ELSEWHERE, ELSEWHERE), (HERE, ELSEWHERE), (HERE, HERE)):
        if provided is not None:
            channel.provide(provided, lambda at=provided: Checkpoint({}, {"at": at}))  # type: ignore[misc]
        link.send(encode(StateRequest(7, commit)))
        packet = receive(link)
        reply: StateReply = packet.load()
        assert (packet.route, reply.commit) == (7, commit)
        if commit == provided:
            assert reply.state is not None
            assert reply.state.values == {"at": commit}
        else:
            assert reply.state is None


@pytest.mark.parametrize("donor", [None, 0, 8])
def test_a_state_is_asked_for_until_it_is_there(ends: Ends, donor: int | None) -> None:
    channel, link = ends
    order = join(3, donor)
    assert channel.fetch(order, 0.01) is None
    assert channel.fetch(order, 0.01) is None
    packet = receive(link)  # it asks once
    assert packet.route == (-1 if donor is None else donor)
    assert packet.load() == StateRequest(3, HERE)
    link.send(encode(StateReply(ELSEWHERE, Checkpoint({}, {"at": "elsewhere"}))))  # of an earlier request
    link.send(encode(StateReply(HERE, None)))
    assert channel.fetch(order, 0.1) is None
    assert receive(link).load() == StateRequest(3, HERE)  # and once more after the answer that it is not there
    link.send(encode(StateReply(HERE, Checkpoint({"w": np.arange(100_000)}, {"at": "here"}))))
    state = channel.fetch(order, 10.0)
    assert state is not None
    assert (state.values, state.arrays["w"].sum()) == ({"at": "here"}, 4999950000)


def test_sums_are_those_of_the_newest_generation(ends: Ends) -> None:
    channel, link = ends

    def compute(generation: int) -> Any:
        order = ComputeOrder(3, generation, HERE, Position(0, 9), {}, {3: (0,)})
        return channel.sum(order, HERE.position, {0: ShardPart({"a": np.ones(3)}, b"x")}, 1, 0.01)

    assert compute(4) is None
    for generation in (4, 4, 2):  # repeated, late
        segments = BoardSegments.create(1)
        link.send(encode(join(generation), attached=segments.copy()))
        segments.close()
        while not channel.orders(1.0):
            continue
        total = compute(4)
        assert total.vectors["a"].tolist() == [1, 1, 1]
        assert total.notes == [b"x"]
    assert compute(5) is compute(3) is None


def test_a_fetch_ends_with_the_operator(ends: Ends) -> None:
    channel, link = ends
    link.shut()
    with pytest.raises(ConnectionError):
        channel.orders(10.0)
    began = time.monotonic()
    assert channel.fetch(join(1), 30.0) is None
    assert time.monotonic() - began < 10
    channel.send([WorkerAlive(3)])  # nobody hears it
