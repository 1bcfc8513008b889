"""Constant arrays of a graph become inputs of its program."""

from __future__ import annotations

import numpy as np

from sigma_backend_numba.execute.constants import split_constants
from sigma_kernel import Spec, functions as f
from sigma_kernel.graph import trace


def test_a_graph_without_constant_arrays_stays_as_it_is() -> None:
    graph = trace(lambda x: f.tanh(x) * 2.0, Spec((2, 3)))
    assert split_constants(graph) == (graph, ())
    assert split_constants(graph)[0] is graph


def test_constant_arrays_become_the_last_inputs() -> None:
    held = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    program, (copied,) = split_constants(trace(lambda x: x + held, Spec((2, 3))))
    assert [node.shape for node in program.inputs] == [(2, 3), (2, 3)]
    assert all(node.op != "array" for node in program)
    np.testing.assert_array_equal(copied, held)
    assert not np.shares_memory(copied, held)
