"""Devices: memory that is not there is an error of Sigma's own."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from sigma_backend_jax import JaxBackend
from sigma_backend_jax.devices import use_device
from sigma_kernel import SigmaMemoryError, functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.graph import Graph, symbol

HUGE = 2**46  # elements: more bytes than processors can address
TOLD = r"^backend 'jax': .*cpu.* has too little memory \(.*281474976710656.*\)\. Choose a smaller batch_size"


def huge() -> Graph:
    x = symbol((1,))
    return Graph((x,), (f.stretch(x, (HUGE,)) * 2.0,))


def test_an_array_that_the_device_has_no_memory_for_is_told_with_its_size() -> None:
    backend = JaxBackend()
    with pytest.raises(SigmaMemoryError, match=TOLD):
        backend.lower(huge(), {})(backend.to_device(np.ones(1, np.float32)))
    assert issubclass(SigmaMemoryError, MemoryError)


def test_a_burst_without_memory_is_told() -> None:
    backend = JaxBackend()
    x = symbol((1,))
    program = backend.compile(Step(Graph((x,), (x + 1.0,)), ("x",), (), (), ("x",), ()))

    def full(*given: Any) -> Any:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 281474976710656 bytes.")

    program._burst = full
    with pytest.raises(SigmaMemoryError, match=TOLD):
        program.run({"x": backend.to_device(np.ones(1, np.float32))}, {}, np.zeros((2, 1), np.int64), {}, 2)


def test_other_errors_of_the_library_are_left_alone() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match="^something else$"), use_device(JaxBackend()._place()):
        raise jax.errors.JaxRuntimeError("something else")
