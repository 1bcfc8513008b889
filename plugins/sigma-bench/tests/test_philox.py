"""The bits equal those of the paper, and those of the kernel's graphs."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_bench.philox import Philox
from sigma_kernel.graph import numpy_namespace, philox as reference


def test_the_first_known_answer_of_random123_is_reproduced() -> None:
    bits = Philox(np.zeros(2, np.uint32), 0, 4).bits(0, 4)
    assert [f"{word:08x}" for word in bits] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


def test_the_known_answer_for_the_digits_of_pi_is_reproduced() -> None:
    philox = Philox(np.array([0xA4093822, 0x299F31D0], np.uint32), 0x85A308D3, 4)
    philox.blocks[0], philox.scan = 0x243F6A88, 0x03707344
    bits = philox.bits(0x13198A2E, 4)
    assert [f"{word:08x}" for word in bits] == ["d16cfe09", "94fdcceb", "5001e420", "24126ea1"]


@pytest.mark.parametrize("size", [1, 4, 7, 60])
def test_the_bits_equal_those_of_graphs(size: int) -> None:
    key = np.array([0xDEADBEEF, 0x12345678], np.uint32)
    expected = reference.random_bits(numpy_namespace(), key, 9, 0, 0, shape=(size,), stream=3)
    philox = Philox(key, 3, 60)
    philox.bits(8, 60)  # earlier draws have no effect
    assert philox.bits(9, size).tolist() == expected.tolist()
