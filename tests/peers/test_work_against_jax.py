"""The floating-point operations of a graph are those that XLA counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.graph import Spec, trace
from sigma_step.work import operations

jax = pytest.importorskip("jax")

X, W = Spec((6, 5, 9, 8)), Spec((4, 5, 3, 2))
PAIRS: dict[str, tuple[Any, Any, tuple[Spec, ...]]] = {
    "a product": (lambda x, y: x @ y, lambda x, y: x @ y, (Spec((30, 40)), Spec((40, 50)))),
    "a product of batches": (lambda x, y: x @ y, lambda x, y: x @ y, (Spec((7, 30, 40)), Spec((7, 40, 50)))),
    "a convolution": (f.convolution, lambda x, w: jax.lax.conv(x, w, (1, 1), "VALID"), (X, W)),
    "a convolution with strides": (
        lambda x, w: f.convolution(x, w, stride=2), lambda x, w: jax.lax.conv(x, w, (2, 2), "VALID"), (X, W)),
    "elementwise": (lambda x, y: x * y + x, lambda x, y: x * y + x, (Spec((30, 40)), Spec((30, 40)))),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_operations_are_counted_alike(name):
    ours, theirs, specs = PAIRS[name]
    arrays = [np.zeros(spec.shape, np.float32) for spec in specs]
    counted = jax.jit(theirs).lower(*arrays).cost_analysis()["flops"]
    assert operations(trace(ours, *specs)) == pytest.approx(counted, rel=0.01)
