"""Folds of a series are those of scikit-learn's TimeSeriesSplit over its times."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import TimeSeriesSplit

from sigma_data import NumberEncoder, Series


@pytest.mark.parametrize(("times", "folds"), [*product((11, 24, 60), (2, 3, 5, 7))])
def test_the_times_of_each_fold(tmp_path, times, folds):
    dates = pd.date_range("2024-01-01", periods=times)
    frame = pd.DataFrame({"date": [*dates, *dates], "shop": ["a"] * times + ["b"] * times, "load": [*range(times)] * 2})
    frame.sample(frac=1, random_state=0).to_csv(tmp_path / "load.csv", index=False)
    columns = {"load": NumberEncoder(scale="none"), "date": "exclude"}
    for number, (training, validation) in enumerate(TimeSeriesSplit(folds).split(np.arange(times))):
        series = Series(
            tmp_path / "load.csv", "load", "date", 1, group="shop", columns=columns, split={"training": 1.0},
            fold={"number": number, "of": folds},
        )  # fmt: skip
        for part, expected in (("validation", validation), ("training", training[1:])):  # the first has no past
            blocks = [series[part].block(block)["targets"] for block in range(series[part].blocks)]
            assert sorted(np.concatenate(blocks).ravel()) == sorted([*expected, *expected])
