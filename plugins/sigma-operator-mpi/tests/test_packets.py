"""Messages as bytes, and lines with numbers, without MPI."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from sigma_operator_mpi.output import number_lines
from sigma_operator_mpi.packets import BLOCK, Mail, decode, encode


@pytest.mark.parametrize("arrays", [0, 1, 3, 100])
def test_messages_arrive_as_they_were(arrays: int) -> None:
    draw = np.random.default_rng(arrays)
    sent = {f"a{i}": draw.standard_normal(draw.integers(0, 300)).astype(np.float32) for i in range(arrays)}
    sent |= {"matrix": draw.standard_normal((7, 3)).T, "none": np.zeros((0, 4), np.int8), "flags": np.ones(5, bool)}
    packet = encode(Mail(arrays, sent))
    assert len(packet) % BLOCK == 0
    mail = decode(packet)
    assert mail.engagement == arrays
    assert mail.body.keys() == sent.keys()
    for name, value in sent.items():
        arrived = mail.body[name]
        assert (arrived.dtype, arrived.shape, arrived.tobytes()) == (value.dtype, value.shape, value.tobytes())
        assert arrived.flags.writeable or not arrived.size


def test_what_workers_print_has_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    errors, output = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", errors)
    monkeypatch.setattr(sys, "stdout", output)
    with number_lines(4):
        print("good", end=" ")
        print("day")
        print("a\nb", file=sys.stderr)
        print("no end", end="")
    print("after")
    assert sorted(errors.getvalue().splitlines()) == [
        "[worker 4] a",
        "[worker 4] b",
        "[worker 4] good day",
        "[worker 4] no end",
    ]
    assert output.getvalue() == "after\n"


def test_a_terminal_that_is_gone_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with number_lines(4):
        print("good day")
