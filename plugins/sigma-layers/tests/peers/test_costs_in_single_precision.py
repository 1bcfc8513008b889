"""Costs and recurrent layers in float32 against PyTorch in float64, from the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from . import cost_cases, recurrent_cases
from .comparison import Trained, in_torch

CASES = {**cost_cases.CASES, **recurrent_cases.CASES}
BOUND = 2e-6  # of the greatest gradient, and of the loss: some 16 roundings


@pytest.mark.parametrize("case", CASES)
def test_rounding_is_all_that_tells_single_precision_from_double(case):
    architecture, data, function = CASES[case]
    trained = Trained(architecture, data, "float32")
    loss, _, gradients = trained.computed()
    expected, by_torch = in_torch(function, {name: x.astype(np.float64) for name, x in trained.values.items()})
    assert loss.dtype == np.float32
    assert loss == pytest.approx(expected, rel=BOUND)
    greatest = max(np.abs(wanted).max() for wanted in by_torch.values())
    for name, wanted in by_torch.items():
        assert gradients[name].dtype == np.float32
        np.testing.assert_allclose(gradients[name], wanted, rtol=0, atol=BOUND * greatest, err_msg=name)
