from __future__ import annotations

import numpy as np

from sigma_data import Wdbc

ROWS = Wdbc().all_rows()[0].block(0)


def test_the_splits_contain_all_tumours():
    assert np.bincount(ROWS["targets"]).tolist() == [212, 357]
    assert ROWS["inputs"].shape == (569, 30)
    assert Wdbc().classes == ("malignant", "benign")


def test_the_first_row_equals_the_original_data_sets():
    assert ROWS["targets"][0] == 0
    np.testing.assert_array_equal(ROWS["inputs"][0, :4], np.array([17.99, 10.38, 122.8, 1001.0], np.float32))


def test_features_have_the_documented_extremes():
    for column, low, high in ((0, 6.981, 28.11), (3, 143.5, 2501.0), (23, 185.2, 4254.0), (29, 0.055, 0.208)):
        values = ROWS["inputs"][:, column]
        np.testing.assert_allclose([values.min(), values.max()], [low, high], rtol=0.005)


def test_both_splits_have_both_classes_in_proportion():
    for part, share in zip(Wdbc().values(), (0.8, 0.2), strict=True):
        counts = np.bincount(part.block(0)["targets"])
        assert (np.abs(counts - share * np.array([212, 357])) < 1).all()
