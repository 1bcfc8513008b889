"""Messages, arrays and descriptors over a socket."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sigma_kernel.contracts import Checkpoint, Commit, PingOrder, Position
from sigma_operator_processes import link as links
from sigma_operator_processes.link import LARGE, Link, StateReply, encode
from sigma_operator_processes.segments import create_segment, grow_segment

Pair = tuple[Link, Link]


@pytest.fixture
def pair() -> Iterator[Pair]:
    a, b = socket.socketpair()
    with a, b:
        yield Link(a), Link(b)


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def test_messages_arrive_in_order_with_their_routes(pair: Pair) -> None:
    a, b = pair
    for number in range(100):
        a.send(encode(PingOrder(number), route=number - 1))
    packets = b.receive()
    assert [packet.load() for packet in packets] == [PingOrder(number) for number in range(100)]
    assert [packet.route for packet in packets] == [number - 1 for number in range(100)]
    assert b.receive() == []
    assert not b.closed


def test_large_arrays_cross_in_shared_memory_and_are_writable(pair: Pair) -> None:
    a, b = pair
    arrays = {
        "small": np.arange(3),
        "large": np.random.default_rng(0).normal(size=(300, 7, 50)),
        "columns": np.asfortranarray(np.random.default_rng(1).normal(size=(300, 100))),
        "odd": np.arange(LARGE + 1, dtype=np.uint8),
        "strided": np.arange(100_000, dtype=np.int32)[::2],
    }
    before = descriptors()
    packet = encode(StateReply(Commit(Position()), Checkpoint(arrays, {"a": [1, None]})))
    assert len(packet.sizes) == 3  # one that is not contiguous is copied anyway
    a.send(packet)
    [arrived] = b.receive()
    reply = arrived.load()
    assert reply.state.values == {"a": [1, None]}
    for name, array in arrays.items():
        assert reply.state.arrays[name].tobytes() == array.tobytes(), name
        reply.state.arrays[name][...] = 0
    del reply
    assert descriptors() == before


def test_copies_of_a_packet_share_no_changes(pair: Pair) -> None:
    a, b = pair
    packet = encode(np.ones(LARGE))
    a.send(packet.copy())
    a.send(packet.copy())
    first, second = [arrived.load() for arrived in b.receive()]
    first[:] = 2
    assert second.max() == 1
    packet.close()


def test_descriptors_arrive_with_their_message(pair: Pair) -> None:
    a, b = pair
    before = descriptors()
    for number in range(20):
        a.send(encode(PingOrder(1000 + number)))
        segment = create_segment()
        os.pwrite(segment, b"%d" % number, 0)
        a.send(encode(np.full(LARGE, number, np.int8), attached=[segment]))
    plain, attached = [], []
    for packet in b.receive():
        plain.append(packet.load())
        for descriptor in packet.extra_descriptors:
            attached.append(int(os.pread(descriptor, 9, 0)))
            os.close(descriptor)
    assert plain[0::2] == [PingOrder(1000 + number) for number in range(20)]
    assert [array[5] for array in plain[1::2]] == attached == [*range(20)]
    plain.clear()
    assert descriptors() == before


def test_what_has_no_room_is_sent_later_and_whole(pair: Pair) -> None:
    a, b = pair
    texts = [bytes([number]) * 1_000_000 for number in range(5)]
    for text in texts:
        a.send(encode(text))
    assert a.is_behind
    packets = []
    deadline = time.monotonic() + 20
    while len(packets) < 5 and time.monotonic() < deadline:
        packets += b.receive()
        a.flush()
    assert [packet.load() for packet in packets] == texts
    assert not a.is_behind


def test_waiting_ends_when_something_arrives_or_there_is_room(pair: Pair) -> None:
    a, b = pair
    began = time.monotonic()
    b.wait(0.05)
    assert time.monotonic() - began >= 0.05
    a.send(encode(1))
    b.wait(30.0)
    assert [packet.load() for packet in b.receive()] == [1]
    a.send(encode(bytes(1_000_000)))
    while a.is_behind:
        b.receive()
        a.wait(30.0)
    assert time.monotonic() - began < 20


def test_descriptors_of_a_packet_that_is_cut_are_closed(pair: Pair) -> None:
    a, b = pair
    before = descriptors()
    a.send(encode(bytes(1_000_000), attached=[create_segment()]))
    b.receive()
    assert descriptors() == before + 1
    a.socket.close()
    assert b.receive() == []
    assert b.closed
    assert descriptors() == before - 1  # the socket is closed too


def test_messages_to_somebody_who_does_not_read_are_dropped(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "MOST_WAITING", 3)
    a, b = pair
    before = descriptors()
    for number in range(10):
        a.send(encode(bytes(1_000_000), attached=[create_segment()]))
        assert number < 5 or descriptors() - before < 8
    a.close()
    b.close()
    assert a.receive() == []


def test_the_end_of_the_other_end_is_seen_after_its_messages(pair: Pair) -> None:
    a, b = pair
    a.send(encode("last"))
    a.socket.close()
    b.send(encode("nobody hears it"))
    b.send(encode("nor this"))
    packets = b.receive()
    assert [packet.load() for packet in packets] == ["last"]
    assert b.closed
    assert b.receive() == []


def test_a_segment_that_cannot_grow_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "segment").write_bytes(b"")
    descriptor = os.open(tmp_path / "segment", os.O_RDONLY)
    with pytest.raises(OSError, match=r"\[Errno"):
        grow_segment(descriptor, 10)
    os.close(descriptor)


def test_elsewhere_a_file_without_a_name_is_shared(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    a, b = pair
    a.send(encode(np.arange(LARGE)))
    [packet] = b.receive()
    assert packet.load().tolist() == [*range(LARGE)]
    descriptor = create_segment()
    grow_segment(descriptor, 10_000)
    assert os.fstat(descriptor).st_size == 10_000
    assert os.fstat(descriptor).st_nlink == 0
    os.close(descriptor)
