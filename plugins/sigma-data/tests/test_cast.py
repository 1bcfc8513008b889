from __future__ import annotations

import numpy as np
import pytest

from sigma_data import Cast
from sigma_kernel import SigmaConfigError, SigmaDataError


def test_cast_changes_the_dtype_and_keeps_the_values():
    step = Cast("int32")
    assert step.fit([np.zeros(3)]) == {}
    changed = step.apply(np.array([1.0, -2.0]), {})
    assert changed.dtype == np.int32
    assert changed.tolist() == [1, -2]
    assert Cast("bool").apply(np.array([0, 1]), {}).tolist() == [False, True]


def test_floats_are_rounded_silently():
    assert Cast("float32").apply(np.array([0.1]), {}).tolist() == [float(np.float32(0.1))]


@pytest.mark.parametrize(("dtype", "value"), [("int32", 0.5), ("int32", 2.0**40), ("bool", 2), ("int64", float("nan"))])
def test_a_value_that_the_type_cannot_hold_names_its_row(dtype, value):
    with pytest.raises(SigmaDataError, match=f"cast: section 'inputs', row 1: .* does not fit {dtype}"):
        Cast(dtype).apply(np.array([[1.0], [value]]), {})


def test_an_unsupported_dtype_is_reported():
    with pytest.raises(SigmaConfigError, match="dtype"):
        Cast("complex64")
