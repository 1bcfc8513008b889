"""A worker's end of the transport, without a cluster: sums, and lines that are printed."""

from __future__ import annotations

import io

import numpy as np

from sigma_kernel.contracts import Commit, ComputeOrder, JoinOrder, Position, ShardPart
from sigma_operator_ray.actor import PrintedLines
from sigma_operator_ray.channel import JoinMessage, PrintedLine, RayChannel


def test_a_sum_is_none_for_a_generation_that_the_worker_is_not_in() -> None:
    channel, commit = RayChannel(0), Commit(Position())
    order = ComputeOrder(0, 2, commit, Position(0, 1), {}, {0: (0,)})
    part = {0: ShardPart({"a": np.ones(4, np.float32)})}
    assert channel.sum(order, Position(), part, 1, 0.0) is None
    channel.take([JoinMessage(JoinOrder(0, 2, commit, (0,), None), {}, [])])
    assert channel.sum(order, Position(), part, 1, 0.0) is not None
    channel.take([JoinMessage(JoinOrder(0, 3, commit, (0,), None), {}, [])])
    assert channel.sum(order, Position(), part, 1, 0.0) is None
    channel.take([JoinMessage(JoinOrder(0, 2, commit, (0,), None), {}, [])])  # late
    assert channel.sum(order, Position(), part, 1, 0.0) is None


def test_lines_are_sent_once_they_end_and_those_of_ray_are_not() -> None:
    channel, stream = RayChannel(4), io.StringIO()
    lines = PrintedLines(stream, channel)
    print(":actor_name:worker 4\ngood", end=" ", file=lines)
    print("day", file=lines)
    print("no end", end="", file=lines)
    lines.end()
    lines.end()
    channel.tell(None)
    assert channel.poll() == [PrintedLine(4, "good day"), PrintedLine(4, "no end")]
    assert channel.poll() is None
    assert stream.getvalue() == ":actor_name:worker 4\ngood day\nno end\n"
