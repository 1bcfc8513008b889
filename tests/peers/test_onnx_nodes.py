"""ONNX's own backend node tests, on the reference and on the compiled backend.

Each of them passes or is out of scope for a reason: docs/numbers.md has the counts, which are those found here.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")

from sigma_kernel.contracts import Backend
from sigma_kernel.graph import Graph
from sigma_testing import by_name
from tests.peers.onnx_nodes.arithmetic import ELEMENTWISE
from tests.peers.onnx_nodes.attending import ATTENTION
from tests.peers.onnx_nodes.layered import LAYERS
from tests.peers.onnx_nodes.losses import LOSSES
from tests.peers.onnx_nodes.reading import NONE, OutOfScopeError, Read, Table, read
from tests.peers.onnx_nodes.tensors import TENSORS
from tests.peers.onnx_nodes.windowed import WINDOWS

TABLE = Table(ELEMENTWISE.rows | TENSORS.rows | WINDOWS.rows | LOSSES.rows | ATTENTION.rows | LAYERS.rows)
PAGE = Path(__file__).parents[2] / "docs" / "numbers.md"
AT_ONCE = 32  # tests in one program, as compilation is slow


@cache
def cases() -> list:
    """Return all node tests; they are made by running the examples of ONNX's documentation."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of the examples
        from onnx.backend.test.case.node import collect_testcases

        return list(collect_testcases(None))


@cache
def sorted_out() -> tuple[list[Read], Counter[tuple[str, str]]]:
    """Return the tests that can be expressed, and the number of the others by reason and subject."""
    found, outside = list[Read](), Counter[tuple[str, str]]()
    for case in cases():
        try:
            found.append(read(case, TABLE))
        except OutOfScopeError as error:
            outside[error.args] += 1
    return found, outside


def results(backend: Backend, some: list[Read]) -> list[list[np.ndarray]]:
    """Return the outputs of several tests, compiled as one program."""
    whole = Graph(tuple(x for t in some for x in t.graph.inputs), tuple(x for t in some for x in t.graph.outputs))
    with np.errstate(all="ignore"):
        arrays = [backend.to_device(x) for t in some for x in t.arrays]
        computed = map(backend.to_host, backend.lower(whole, {})(*arrays) if whole.outputs else [])
        return [[t.fixed[i] if i in t.fixed else next(computed) for i in range(len(t.expected))] for t in some]


def difference(test: Read, found: list[np.ndarray]) -> str:
    """Return how results differ from those that ONNX expects, or an empty text."""
    for array, wanted in zip(map(np.asarray, found), test.expected, strict=True):
        if (array.dtype, array.shape) != (wanted.dtype, wanted.shape):
            return f"{test.name}: {array.dtype}{array.shape} instead of {wanted.dtype}{wanted.shape}"
        if not np.allclose(array, wanted, test.rtol, test.atol, equal_nan=True):
            return f"{test.name}: {array} instead of {wanted}"
    return ""


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.filterwarnings("ignore:numba. .* runs in Python")
def test_every_node_test_in_scope_passes(backend):
    tests, _ = sorted_out()
    made, wrong = by_name("backend", backend)(), []
    for some in (tests[i : i + AT_ONCE] for i in range(0, len(tests), AT_ONCE)):
        wrong += [difference(test, found) for test, found in zip(some, results(made, some), strict=True)]
    assert [text for text in wrong if text] == []


def test_the_documentation_counts_what_passes_and_what_is_out_of_scope():
    tests, outside = sorted_out()
    reasons = Counter({reason: 0 for reason, _ in outside})
    for (reason, _), count in outside.items():
        reasons[reason] += count
    rows = [(reason, str(count), subjects(outside, reason)) for reason, count in reasons.most_common()]
    text = PAGE.read_text()
    assert f"{len(tests)} of {len(cases())}" in text, f"{len(tests)} of {len(cases())}"
    written = re.findall(r"^\| (.+?) \| (\d+) \| (.*?) \|$", text.split("## ONNX")[1], re.MULTILINE)
    assert [tuple(row) for row in written] == rows, "\n".join(f"| {' | '.join(row)} |" for row in rows)


def subjects(outside: Counter[tuple[str, str]], reason: str) -> str:
    """Return the operators or dtypes to which a reason applies."""
    return ", ".join(sorted({what for why, what in outside if why == reason}, key=str.lower))


def test_a_wrong_result_is_seen():
    tests, _ = sorted_out()
    test = next(test for test in tests if test.name == "test_matmul_2d")
    (found,) = results(by_name("backend", "numpy")(), [test])
    assert difference(test, found) == ""
    assert difference(test, [found[0] + 0.01]).startswith("test_matmul_2d: ")
    assert difference(test, [found[0].astype(np.float64)]) == "test_matmul_2d: float64(3, 3) instead of float32(3, 3)"


def test_an_operator_without_a_translation_is_out_of_scope_by_name():
    with pytest.raises(OutOfScopeError, match="Unique") as error:
        TABLE.find("Unique")
    assert error.value.args == (NONE, "Unique")
