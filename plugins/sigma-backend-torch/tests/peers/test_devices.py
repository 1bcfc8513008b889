"""Devices: memory that is not there is an error of Sigma's own."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_backend_torch import TorchBackend
from sigma_backend_torch.devices import use_device
from sigma_kernel import SigmaMemoryError, functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.graph import Graph, symbol

HUGE = 2**46  # elements: more bytes than processors can address
TOLD = r"^backend 'torch': .*cpu.* has too little memory \(.*281474976710656.*\)\. Choose a smaller batch_size"


def huge() -> Graph:
    x = symbol((1,))
    return Graph((x,), (x + 1.0, f.stretch(x, (HUGE,)) * 2.0))


def test_an_array_that_the_device_has_no_memory_for_is_told_with_its_size() -> None:
    backend = TorchBackend()
    with pytest.raises(SigmaMemoryError, match=TOLD):
        backend.lower(huge(), {})(backend.to_device(np.ones(1, np.float32)))
    assert issubclass(SigmaMemoryError, MemoryError)


def test_a_burst_without_memory_is_told_and_its_state_is_kept() -> None:
    backend = TorchBackend()
    program = backend.compile(Step(huge(), ("x",), (), (), ("x",), ("huge",)), in_place=False)
    state = {"x": backend.to_device(np.ones(1, np.float32))}
    with pytest.raises(SigmaMemoryError, match=TOLD):
        program.run(state, {}, np.zeros((2, 1), np.int64), {}, 2)
    np.testing.assert_array_equal(backend.to_host(state["x"]), [1.0])


def test_other_errors_of_the_library_are_left_alone() -> None:
    with pytest.raises(RuntimeError, match="^something else$"), use_device(TorchBackend()._place()):
        raise RuntimeError("something else")
