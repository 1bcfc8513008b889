"""The meanings on jax.numpy, torch and the strict array API agree with NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import WORD, Namespace, numpy_namespace
from sigma_kernel.graph.node import Spec, trace
from sigma_kernel.graph.ops import cast
from sigma_testing.cases import samples
from sigma_testing.edges import edges

NUMPY = numpy_namespace()
HALVES = ("bfloat16", "float16")
NAMES = ("float32", "float64", "int32", "int64", "bool", "uint32")
EVERY = [sample for rows in samples().values() for sample in rows]
TOLERANCE = {"float32": 2e-6, "float64": 5e-15}


def by_numpy(ns: Namespace, x: Any, dtype: str) -> Any:
    """Round in NumPy, as the standard has no numbers of 16 bits."""
    return ns.xp.asarray(NUMPY.narrow(NUMPY, np.asarray(x), dtype))


def strict() -> Namespace:
    xp = pytest.importorskip("array_api_strict")
    return Namespace("strict", xp, {name: getattr(xp, name) for name in NAMES}, xp.int64, narrow=by_numpy)


def torch() -> Namespace:
    xp = pytest.importorskip("array_api_compat.torch")
    dtypes = {name: getattr(xp, name) for name in (*NAMES, *HALVES)} | {
        "uint32": xp.int64
    }  # torch has no arithmetic for it
    return Namespace(
        "torch", xp, dtypes, xp.int64, word=lambda x: x & WORD, erf=lambda xp, x: xp.special.erf(x),
        scatter_add=lambda xp, x, places, updates: x.index_add(0, places, updates),
    )  # fmt: skip


def jax(names: tuple[str, ...] = NAMES) -> Namespace:
    xp = pytest.importorskip("jax.numpy")
    special = pytest.importorskip("jax.scipy.special")
    return Namespace(
        "jax", xp, {name: getattr(xp, "bool_" if name == "bool" else name) for name in (*names, *HALVES)}, xp.uint32,
        erf=lambda xp, x: special.erf(x), scatter_add=lambda xp, x, places, updates: x.at[places].add(updates),
    )  # fmt: skip


@pytest.fixture(params=[strict, torch, jax], ids=lambda make: make.__name__)
def ns(request: pytest.FixtureRequest) -> Iterator[Namespace]:
    if request.param is not jax:
        yield request.param()
        return
    wide = pytest.importorskip("jax").enable_x64
    with wide(True):
        yield jax()


def agree(ns: Namespace, sample: Any, precision: str) -> None:
    graph, arrays = sample.graph(precision), sample.operands(precision)
    expected = interpret(graph, numpy_namespace())(*arrays)
    results = interpret(graph, ns)(*(ns.array(x, x.dtype.name) for x in arrays))
    for node, result, wanted in zip(graph.outputs, results, expected, strict=True):
        assert result.dtype == ns.dtype(node.dtype)
        found = np.asarray(result)
        if wanted.dtype.kind == "f":
            near = TOLERANCE[precision]
            np.testing.assert_allclose(found, wanted, rtol=near, atol=near * max(1.0, np.abs(wanted).max(initial=0)))
        else:
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("sample", EVERY, ids=str)
def test_every_sample_agrees_with_numpy_in_float64(ns, sample):
    agree(ns, sample, "float64")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_edge_values_agree_with_numpy(ns):
    for sample in edges():
        graph, arrays = sample.graph(), sample.operands("float64")
        if (ns.name, sample.op) == ("torch", "mod") and arrays[1].dtype.kind != "f":
            continue  # integer division by 0 raises there
        wanted, found = (interpret(graph, x)(*(x.array(y, y.dtype.name) for y in arrays))[0] for x in (NUMPY, ns))
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-13, atol=1e-15, err_msg=str(sample))


@pytest.mark.parametrize("make", [strict, torch], ids=lambda make: make.__name__)
@pytest.mark.parametrize("sample", EVERY, ids=str)
def test_every_sample_agrees_with_numpy_in_float32(make, sample):
    agree(make(), sample, "float32")


@pytest.mark.parametrize("sample", [s for op in ("random_bits", "dropout") for s in samples()[op]], ids=str)
def test_jax_draws_the_same_bits_without_64_bit_integers(sample):
    agree(jax(("float32", "int32", "uint32", "bool")), sample, "float32")


def test_dtypes_that_jax_lacks_without_64_bits_are_refused():
    graph = trace(lambda x: cast(x, dtype="float64"), Spec((2,)))
    narrow = jax(("float32", "int32", "uint32", "bool"))
    with pytest.raises(SigmaGraphError, match="jax: does not support float64"):
        interpret(graph, narrow)(narrow.array([1, 2], "float32"))


def test_meanings_can_be_compiled_by_jax():
    compiler = pytest.importorskip("jax")
    sample, ns = samples()["dropout"][1], jax(("float32", "int32", "uint32", "bool"))
    arrays = [ns.array(x, x.dtype.name) for x in sample.operands("float32")]
    run = interpret(sample.graph("float32"), ns)
    np.testing.assert_array_equal(compiler.jit(run)(*arrays)[0], run(*arrays)[0])
