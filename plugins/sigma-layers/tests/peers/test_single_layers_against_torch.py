"""Single layers against PyTorch over a table of settings and shapes.

Each is compared in float64 and in float32 (outputs, gradients in inputs and in parameters, new state), and after 100
steps of gradient descent on its parameters and its inputs.
"""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from .single_layer import compare, compare_steps
from .single_layer_cases import CASES

every_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@every_case
def test_values_and_gradients_agree(case):
    for precision in ("float64", "float32"):
        compare(case, precision)


@every_case
def test_a_hundred_steps_agree(case):
    compare_steps(case)
