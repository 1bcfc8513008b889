"""Orders of rows that are drawn in compiled code are those of the kernel."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.execute.orders import FEW, permutation
from sigma_kernel import graph
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import philox


@pytest.mark.parametrize("rows", [0, 1, FEW - 1, FEW, FEW + 1, 12_000, 65_537])
@pytest.mark.parametrize(("seed", "stream", "epoch"), [(0, 0, 0), (7, 3, 1), (2**64 - 1, 2**32 - 1, 2**31)])
def test_the_order_is_that_of_the_kernel(seed: int, stream: int, epoch: int, rows: int) -> None:
    wanted = graph.permutation(seed, stream, epoch, rows)
    np.testing.assert_array_equal(NumbaBackend().permutation(seed, stream, epoch, rows), wanted)


def test_rows_with_equal_upper_words_are_sorted_by_the_lower_ones() -> None:
    rows = 300_000
    words = np.empty(2 * rows, np.uint32)
    philox.fill(words, np.empty(philox.scratch_bytes(words.size), np.uint8), (5, 0), 0, (0, 2, graph.ORDER))
    upper, lower = words.reshape(rows, 2).T
    order = permutation(5, 0, 2, rows)
    same = np.flatnonzero(upper[order][1:] == upper[order][:-1])
    assert len(same) > 5
    assert (lower[order][same] < lower[order][same + 1]).all()
    np.testing.assert_array_equal(order, np.lexsort((lower, upper)))


def test_several_threads_draw_at_once() -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda epoch: permutation(1, 0, epoch, 5_000), range(16)))
    for epoch, order in enumerate(found):
        np.testing.assert_array_equal(order, graph.permutation(1, 0, epoch, 5_000))


def test_a_seed_beyond_64_bits_is_refused() -> None:
    with pytest.raises(SigmaGraphError, match="seed: .* does not fit"):
        permutation(2**64, 0, 0, FEW)
