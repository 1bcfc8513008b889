"""Every family of layers and costs against PyTorch over settings and shapes that hypothesis draws.

``SIGMA_EXAMPLES`` is the number of examples of each family in NumPy; a tenth of them run on numba too, which compiles
each. ``tox -e long`` draws many.
"""

from __future__ import annotations

import os
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

pytest.importorskip("torch")

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.compiler import machine_code

from . import generated_costs, generated_layers
from .single_layer import compare, compare_steps

EXAMPLES = int(os.environ.get("SIGMA_EXAMPLES", "20"))
FAMILIES = {**generated_layers.FAMILIES, **generated_costs.FAMILIES}
NUMBA = NumbaBackend(threads=1)
pytestmark = pytest.mark.filterwarnings("ignore:.*seem to be")  # few channels may be the last axis by mistake


def many(count):
    return settings(max_examples=max(count, 1), suppress_health_check=[*HealthCheck])


every_family = pytest.mark.parametrize("family", FAMILIES)


@every_family
@many(EXAMPLES)
@given(data=st.data())
def test_values_and_gradients_agree(family, data):
    case = data.draw(FAMILIES[family])
    for precision in ("float64", "float32"):
        compare(case, precision)


@every_family
@many(EXAMPLES // 10)
@given(data=st.data())
def test_values_and_gradients_agree_on_numba(family, data):
    with patch.object(machine_code, "SPEED", 0):  # LLVM would take longer than everything else
        compare(data.draw(FAMILIES[family]), data.draw(st.sampled_from(["float64", "float32"])), NUMBA)


@every_family
@many(EXAMPLES // 10)
@given(data=st.data())
def test_a_hundred_steps_agree(family, data):
    compare_steps(data.draw(FAMILIES[family]))
