"""The fast bits against the reference, which is checked against published vectors."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_backend_numpy import philox
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.philox import random_bits


def fast(row: int, shape: tuple[int, ...], key: tuple[int, int], stream: int, iteration: int, scan: int) -> np.ndarray:
    size, width = int(np.prod(shape)), int(np.prod(shape[1:]))
    out, scratch = np.empty(size, np.uint32), np.empty(philox.scratch_bytes(size), np.uint8)
    philox.fill(out, scratch, key, row * width, (stream, iteration, scan))
    return out.reshape(shape)


@pytest.mark.parametrize(
    ("row", "shape"),
    [
        (0, (8, 4)), (0, ()), (0, (0, 3)), (5, (1,)), (5, (2,)), (5, (7, 3)), (2**31 + 1, (3, 5)), (2**32 - 3, (3, 4)),
        (1, (5, 4 * philox.BLOCKS)), (3, (4 * philox.BLOCKS + 3, 1)), (7, (4097, 13)),
    ],
)  # fmt: skip
def test_the_bits_are_those_of_the_reference(row, shape):
    key, words = (0xA4093822, 0xFFFFFFFF), (0xFFFFFFFF, 0x13198A2E, 0x85A308D3)
    stream, iteration, scan = words
    reference = random_bits(
        numpy_namespace(), np.array(key, np.uint32), np.uint32(iteration), np.uint32(row), np.uint32(scan),
        shape=shape, stream=stream,
    )  # fmt: skip
    np.testing.assert_array_equal(fast(row, shape, key, *words), reference)


def test_every_word_of_key_and_counter_matters():
    base = [(1, 2), 3, 4, 5]
    drawn = fast(0, (1000,), *base)
    for changed in ([(2, 2), 3, 4, 5], [(1, 3), 3, 4, 5], [(1, 2), 4, 4, 5], [(1, 2), 3, 5, 5], [(1, 2), 3, 4, 6]):
        assert (fast(0, (1000,), *changed) != drawn).mean() > 0.9
