from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from sigma_data import Minibatch


@given(st.integers(0, 2**64 - 1), st.integers(0, 1000), st.integers(0, 50), st.integers(0, 200))
def test_every_row_occurs_once_and_the_order_is_a_function_of_its_arguments(seed, epoch, block, rows):
    order = Minibatch().indices(seed, epoch, block, rows)
    assert sorted(order.tolist()) == list(range(rows))
    np.testing.assert_array_equal(order, Minibatch().indices(seed, epoch, block, rows))


def test_seed_epoch_and_block_each_change_the_order():
    arguments = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    orders = [Minibatch().indices(*each, 100).tolist() for each in arguments]
    assert len({tuple(order) for order in orders}) == 4


def test_every_row_is_first_equally_often():
    firsts = [Minibatch().indices(3, epoch, 0, 4)[0] for epoch in range(2000)]
    counts = np.bincount(firsts, minlength=4)
    assert ((counts - 500) ** 2 / 500).sum() < 16.27  # chi-square with 3 degrees of freedom; false alarms: 1 in 1,000
