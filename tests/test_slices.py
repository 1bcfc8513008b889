"""Sums by an exchange of slices, with packets that arrive in any order."""

from __future__ import annotations

import random
import threading
import time
import weakref

import numpy as np
import pytest

from sigma_kernel.contracts import Position, ShardPart, ShardSum, merge_in_tree
from sigma_kernel.slices import SMALL, Mailbox, Packet, PartsPacket, SliceSum, SumKey, cut_slice

HERE = SumKey(3, Position(0, 7))


def draw_parts(count: int, length: int, seed: int = 0) -> dict[int, ShardPart]:
    draw = np.random.default_rng(seed)
    return {
        shard: ShardPart({"a": draw.standard_normal(length, np.float32), "b": draw.standard_normal(3)}, bytes([shard]))
        for shard in range(count)
    }


def exchange(parts: dict[int, ShardPart], owners: list[int], members: int, seed: int) -> list[ShardSum]:
    """Return the sums that members see; packets are delivered in a random order."""
    packets, order = list[tuple[int, Packet]](), random.Random(seed)
    sums = [SliceSum(HERE, k, members, len(parts), lambda *given: packets.append(given)) for k in range(members)]
    for member, own in enumerate(sums):
        own.begin({shard: part for shard, part in parts.items() if owners[shard] == member})
    while packets:
        rank, packet = packets.pop(order.randrange(len(packets)))
        sums[rank].receive(packet)
    assert all(own.is_complete for own in sums)
    return [own.result() for own in sums]


@pytest.mark.parametrize("length", [0, 1, 5, 1000, SMALL // 16, 200_003])
@pytest.mark.parametrize("members", [1, 2, 3, 5])
def test_sums_have_the_bits_of_the_tree_in_any_order_of_packets(length: int, members: int) -> None:
    for seed in range(4):
        parts = draw_parts(5, length, seed)
        owners = [random.Random(seed).randrange(members) for _ in parts]  # some members may have no shards
        for total in exchange(parts, owners, members, seed):
            for name in ("a", "b"):
                right = merge_in_tree([part.vectors[name] for part in parts.values()], np.add)
                assert total.vectors[name].tobytes() == right.tobytes()
            assert list(total.notes) == [part.note for part in parts.values()]


def test_large_vectors_are_sent_by_slices() -> None:
    sizes = list[int]()

    def send(rank: int, packet: Packet) -> None:
        assert isinstance(packet, PartsPacket)
        sizes.append(sum(len(vectors["a"]) for vectors in packet.vectors.values()))

    SliceSum(HERE, 0, 4, 4, send).begin({0: draw_parts(1, 100_000)[0]})
    assert sizes == [25_000] * 3


def test_a_sum_forgets_parts_once_they_are_added() -> None:
    parts = [{shard: part} for shard, part in draw_parts(2, 100_000).items()]
    slices = [{"a": np.ones(50_000, np.float32), "b": np.ones(2)} for _ in range(2)]
    lent = [weakref.ref(own[name]) for own in slices for name in own]
    total = SliceSum(HERE, 1, 2, 2, lambda rank, packet: None)
    total.begin({0: parts[0][0]})
    total.receive(PartsPacket(HERE, {1: slices.pop()}, {1: b""}, False))
    assert len([reference for reference in lent if reference() is not None]) == 2  # those that are not received
    assert not total.is_complete  # a slice is missing


def test_slices_of_members_cover_each_vector_once() -> None:
    for length in (0, 1, 2, 7, 100):
        for members in (1, 2, 3, 8):
            cuts = [range(length)[cut_slice(length, rank, members)] for rank in range(members)]
            assert [i for cut in cuts for i in cut] == [*range(length)]


def packet(generation: int, iteration: int) -> PartsPacket:
    return PartsPacket(SumKey(generation, Position(0, iteration)), {}, {}, True)


def test_packets_count_for_their_iteration_and_generation_alone() -> None:
    box = Mailbox()
    box.begin_generation(2)
    for generation in (1, 2, 3):
        for iteration in (4, 5):
            box.put(packet(generation, iteration))
    box.begin_sum(SumKey(2, Position(0, 5)))
    now = time.monotonic()
    assert box.take(SumKey(2, Position(0, 4)), now) == []
    assert len(box.take(SumKey(2, Position(0, 5)), now)) == 1
    assert box.take(SumKey(2, Position(0, 5)), now) == []
    box.begin_generation(3)
    assert box.take(SumKey(1, Position(0, 4)), now + 99) == []  # it has ended: nobody waits
    assert len(box.take(SumKey(3, Position(0, 4)), now)) == 1  # it came before the generation began here


def test_the_end_of_a_generation_ends_the_wait_for_its_packets() -> None:
    box, began = Mailbox(), time.monotonic()
    threading.Timer(0.1, box.begin_generation, [9]).start()
    assert box.take(SumKey(8, Position()), began + 30) == []
    assert time.monotonic() - began < 10
