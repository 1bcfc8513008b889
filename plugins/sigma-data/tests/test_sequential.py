from __future__ import annotations

from sigma_data import Sequential


def test_rows_come_as_they_are():
    assert Sequential().indices(3, 5, 2, 4).tolist() == [0, 1, 2, 3]
