from __future__ import annotations

import numpy as np

from sigma_data import Scale


def test_values_are_scaled_and_shifted():
    step = Scale(0.5, -1)
    assert step.fit([np.zeros(3)]) == {}
    assert step.apply(np.array([[0.0, 2.0, 4.0]]), {}).tolist() == [[-1, 0, 1]]


def test_integers_become_float64_and_floats_keep_their_dtype():
    assert Scale(1 / 255).apply(np.array([255], np.uint8), {}).dtype == np.float64
    assert Scale(2.0).apply(np.array([1.0]), {}).dtype == np.float64
