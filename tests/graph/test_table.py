"""The graph's public names suffice by themselves: every op is in the table that they give."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.graph import Spec, constant, trace

NAMES = {
    "OPS": "sorted(graph.OPS)",
    "trace": "graph.trace(lambda x: x * 2.0, graph.Spec((3,))).outputs[0].op",
    "symbol": "(graph.symbol((3,), 'float32', 'x') * 2.0).op",
    "constant": "(graph.constant(2.0) * graph.constant(3.0)).op",
    "select_ops": "len(graph.select_ops())",
}


@pytest.mark.parametrize("name", NAMES)
def test_ops_are_there_without_the_functions(name: str) -> None:
    alone, after = (
        subprocess.run(
            [sys.executable, "-c", f"{first}; print({NAMES[name]})"], capture_output=True, text=True, check=True
        )
        for first in ("from sigma_kernel import graph", "from sigma_kernel import functions, graph")
    )
    assert alone.stdout == after.stdout != "[]\n"


def test_entries_of_a_constant_array_are_an_array_for_numpy() -> None:
    held = np.arange(12.0).reshape(3, 4)
    values = constant(held, "float64").attrs["value"]
    assert np.array_equal(np.asarray(values), held)
    assert np.asarray(values, "float32").dtype == "float32"
    assert len(values) == 3


def test_rows_of_a_graph_have_scalars_as_constants_and_others_as_arrays() -> None:
    rows = trace(lambda x: f.exp(x) * 2.0 + np.ones(3, "float32"), Spec((3,))).rows()
    assert {"constant", "array"} <= {name for name, *_ in rows}
