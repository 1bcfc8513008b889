"""Check an op ``atan`` in a kernel whose table has been given one; ``python new_op.py WHAT``.

WHAT is "values", "facts", "documents" or the name of a backend. Values are those of the C library's ``atan``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from sigma_kernel import catalogue, functions as f
from sigma_kernel.graph import OPS, Spec, gradient, interpret, numpy_namespace, symbol, trace
from sigma_kernel.graph.node import Graph
from sigma_step.work import operations
from sigma_testing import BackendSuite, backend, cases, edges, generate

X = np.array([-2.5, -0.0, 0.25, 3.0])


def values() -> None:
    """Compare values and slopes with the C library and the closed form."""
    np.testing.assert_allclose(f.atan(X), [math.atan(x) for x in X], rtol=1e-15)
    x = symbol(X.shape, "float64")
    (slope,) = gradient(f.sum(f.atan(x)), [x])
    (found,) = interpret(Graph((x,), (slope,)), numpy_namespace())(X)
    np.testing.assert_allclose(found, 1 / (1 + X * X), rtol=1e-15)


def facts() -> None:
    """Read operations, samples and the reference's error by the row."""
    from sigma_hooks.reference import Noise, Reference

    graph = trace(f.atan, Spec(X.shape, "float64"))
    assert operations(graph) == X.size
    assert {"atan"} == {sample.op for sample in cases.samples()["atan"]}
    (moved,) = Reference(seed=1, error=1e-3).lower(graph, {})(X)
    np.testing.assert_allclose(abs(moved - np.arctan(X)), 1e-3 * abs(np.arctan(X)), rtol=1e-9)
    assert Noise(np.random.default_rng(0), 1e-3).like(X, "atan").max() == 1e-3
    assert OPS["atan"].entries == "apart"
    assert OPS["atan"].signed


def documents() -> None:
    """Find it in the tables of the documentation, and in the generated list."""
    from extensions import functions
    from figures import capabilities

    assert "| `atan` | elementwise, primitive | a rule |" in functions.table_of_ops()
    assert "`atan` of the array API standard" in functions.text()
    assert "atan" in capabilities.FAMILIES["functions"].split()
    assert "atan as atan" in generate.reexports()


def computed(name: str) -> None:
    """Run the tests of the suite about ops with the samples of this one alone."""
    backend.samples = lambda: {"atan": cases.samples()["atan"]}
    for each in ("edges", "denormals"):
        setattr(backend, each, partial(_own, getattr(edges, each)))
    assert backend.samples()["atan"]
    assert [*backend.edges()]
    assert [*backend.denormals("float32")]
    suite = type("Suite", (BackendSuite,), {"make": lambda self: catalogue().load("backend", name)()})()
    suite.test_every_op_agrees_with_its_meaning()
    suite.test_edge_inputs_agree_with_the_meaning()
    suite.test_denormals_are_kept_or_flushed_to_zero()


def _own(given: Callable[..., Iterable[object]], *arguments: str) -> list[object]:
    return [row for row in given(*arguments) if "atan" in str(row[0] if isinstance(row, tuple) else row)]


if __name__ == "__main__":
    checks = {check.__name__: check for check in (values, facts, documents)}
    checks.get(sys.argv[1], partial(computed, sys.argv[1]))()
