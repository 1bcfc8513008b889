from __future__ import annotations

from sigma_data import Sequential


def test_the_sequential_iterator_keeps_the_order():
    assert Sequential().indices(3, 5, 2, 4).tolist() == [0, 1, 2, 3]
