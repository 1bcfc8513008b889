from __future__ import annotations

import pytest

from sigma_data import Shuffle
from sigma_kernel.errors import SigmaConfigError


def test_the_order_is_random_and_the_same_in_every_epoch_and_run():
    order = Shuffle(7).indices(0, 0, 0, 100).tolist()
    assert sorted(order) == list(range(100)) != order
    assert Shuffle(7).indices(1, 5, 0, 100).tolist() == order
    assert Shuffle(8).indices(0, 0, 0, 100).tolist() != order


def test_each_block_has_its_own_order():
    assert Shuffle().indices(0, 0, 0, 100).tolist() != Shuffle().indices(0, 0, 1, 100).tolist()


def test_a_seed_has_64_bits():
    with pytest.raises(SigmaConfigError, match="seed"):
        Shuffle(2**64)
