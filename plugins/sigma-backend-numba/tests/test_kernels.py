"""Ops of plugins: kernels that Numba compiles, and meanings that run in Python in the middle of a program."""

from __future__ import annotations

import logging
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.cache import files, lookup
from sigma_backend_numba.compiler import machine_code
from sigma_backend_numba.lower import canonical, kernels
from sigma_backend_numba.lower.fingerprint import identity
from sigma_kernel import functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import (
    MEANINGS,
    OPS,
    Graph,
    Node,
    Op,
    dtypes,
    gradient,
    interpret,
    numpy_namespace,
    op,
    shapes,
    symbol,
)


def rows_kept(x: tuple[int, ...], *others: tuple[int, ...], **attrs: Any) -> tuple[int, ...]:
    """Keep the shape of the first operand; the op may do anything to a row."""
    return x


def float_kept(*found: str, **attrs: Any) -> str:
    return dtypes.floating(*found)


bend = op("acme-ops:bend", shapes.same, float_kept, lambda g, z, x: g * bent(x), lambda x: x / (f.abs(x) + 1.0))
bent = op("acme-ops:bent", shapes.same, float_kept, None, lambda x: 1.0 / f.square(f.abs(x) + 1.0))
gamma = op("acme-ops:gamma", shapes.same, float_kept)
unit = op(
    "acme-ops:unit", rows_kept, float_kept, None,
    lambda x, scale, *, epsilon: x / f.sqrt(f.sum(x * x, -1, keepdims=True) + epsilon) * scale,
)  # fmt: skip
meant = op("acme-ops:meant", shapes.same, float_kept, lambda g, z, x: g * meant(x))
nothing = op("acme-ops:nothing", shapes.same, float_kept)


def bend_number(x):
    return x / (abs(x) + np.float32(1))


def bent_number(x):
    return 1 / (abs(x) + 1) ** 2


def gamma_number(x):
    return math.gamma(x)  # Numba has its own implementation, which stays external


def unit_row(x, scale, out, epsilon):
    total = 0.0
    for i in range(x.size):
        total += x[i] * x[i]
    for i in range(x.size):
        out[i] = x[i] / math.sqrt(total + epsilon) * scale[i % scale.size]


KERNELS = {
    "acme-ops:bend": bend_number, "acme-ops:bent": bent_number, "acme-ops:gamma": gamma_number,
    "acme-ops:unit": unit_row,
}  # fmt: skip
MEANT = {
    "acme-ops:meant": lambda ns, x: ns.xp.exp(-x * x),
    "acme-ops:gamma": lambda ns, x: np.vectorize(math.gamma)(x).astype(x.dtype),
}


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], None]:
    """Return a function that registers kernels for ops; meanings are registered in any case."""

    def offer(found: dict[str, Any]) -> None:
        for module in (kernels, canonical):
            monkeypatch.setattr(module, "LOWERINGS", found)
        monkeypatch.setattr(kernels, "_warned", set())

    for name, does in MEANT.items():
        monkeypatch.setitem(MEANINGS, name, does)
    offer(dict(KERNELS))
    return offer


def symbols(precision: str) -> tuple[Node, Node]:
    return symbol((64, 37), precision), symbol((37,), precision)


def arrays(precision: str) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(1)
    return draw.normal(size=(64, 37)).astype(precision), draw.random(37).astype(precision)


def many(x: Node, s: Node) -> tuple[Node, ...]:
    """Return values of all kinds: next to others, next to products, of views, of scalars, in the body of a scan."""
    (total,), (each,) = f.scan(lambda c, row, s: ([c + unit(row, s, epsilon=1.0)], [meant(c)]), [s], [x], [s])
    return (
        bend(x * 2.0) + 1.0, unit(x, s, epsilon=0.5), gamma(f.abs(x) + 1.5), meant(x),
        unit(bend(x @ f.permute(x, (1, 0))) @ x, f.constant(2.0, x.dtype), epsilon=0.1) * meant(s),
        unit(f.permute(f.permute(x, (1, 0)) * 2.0, (1, 0)), meant(s), epsilon=1e-3), bend(f.sum(x)), total, each,
        *gradient(f.sum(f.sin(bend(x) * unit(x, s, epsilon=0.5) + meant(x))), [x, s]),
    )  # fmt: skip


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 3e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("known", [KERNELS, {}], ids=["with kernels", "without"])
def test_ops_with_and_without_kernels_agree_with_the_reference(offer, known, precision, tolerance):
    offer(known)
    inputs = symbols(precision)
    graph = Graph(inputs, many(*inputs))
    found = NumbaBackend(threads=2).lower(graph, {})(*arrays(precision))
    wanted = interpret(graph, numpy_namespace())(*arrays(precision))
    for number, (a, b) in enumerate(zip(found, wanted, strict=True)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, tolerance, tolerance * 10, err_msg=f"output {number}")


def test_a_kernel_computes_its_op(offer):
    offer({"acme-ops:bend": lambda x: x + 100, "acme-ops:unit": constant_row})
    x, s = symbols("float32")
    call = NumbaBackend().lower(Graph((x, s), (bend(x), unit(x, s, epsilon=7.0))), {})
    first, second = call(*arrays("float32"))
    np.testing.assert_allclose(first, arrays("float32")[0] + 100)
    np.testing.assert_array_equal(second, np.full((64, 37), 7.0))


def constant_row(x, scale, out, epsilon):
    out[:] = epsilon


def step() -> Step:
    """Return a training step with kernels and with ops in Python."""
    weights, bias = symbol((37, 5)), symbol((5,))
    x, y, rate = symbol((16, 37)), symbol((16, 5)), symbol(())
    value = unit(bend(x @ weights), meant(bias), epsilon=0.1)
    loss = f.mean(f.square(value - y))
    slopes = gradient(loss, [weights, bias])
    graph = Graph((weights, bias, x, y, rate), (weights - rate * slopes[0], bias - rate * slopes[1], loss))
    return Step(graph, ("w", "b"), ("x", "y"), ("rate",), ("w", "b"), ("loss",))


def trained(parts: tuple[int, ...], threads: int) -> dict[str, bytes]:
    draw, backend = np.random.default_rng(0), NumbaBackend(threads=threads)
    state = {"w": draw.normal(size=(37, 5)).astype("f4"), "b": np.zeros(5, "f4")}
    block = {"x": draw.normal(size=(64, 37)).astype("f4"), "y": draw.normal(size=(64, 5)).astype("f4")}
    rows, done, program = draw.integers(0, 64, (12, 16)).astype("i4"), 0, backend.compile(step())
    state = {name: backend.to_device(x) for name, x in state.items()}
    for n in parts:
        state = program.run(state, block, rows[done : done + n], {"rate": np.float32(0.1)}, n).state
        done += n
    return {name: x.tobytes() for name, x in state.items()}


def test_a_burst_equals_single_steps_bit_for_bit_on_any_number_of_threads(offer):
    wanted = trained((12,), 1)
    assert trained((1,) * 12, 1) == wanted
    assert trained((5, 7), 2) == wanted
    offer({})
    assert trained((12,), 1) == trained((1,) * 12, 2)


# -- what is recompiled ------------------------------------------------------------------------------------------------
def helped(factor: float) -> Callable[..., Any]:
    def helper(x):
        return x * factor

    return lambda x: helper(x)


def test_a_changed_kernel_constant_or_helper_gives_another_program(offer):
    x, keys = symbol((3,)), set()
    for number, kernel in enumerate((lambda x: x * 2.0, lambda x: x * 3.0, lambda x: x * 4.0, lambda x: x * 2.0)):
        offer({"acme-ops:bend": kernel})
        call = NumbaBackend().lower(Graph((x,), (bend(x),)), {})
        assert call(np.ones(3, "f4"))[0].tolist() == [(2.0, 3.0, 4.0, 2.0)[number]] * 3
        keys.add(str(kernels.used(call.machine.graph)))
    assert len(keys) == 3


def test_helpers_and_closures_are_part_of_a_kernel(offer):
    assert identity(helped(2.0)) == identity(helped(2.0))
    assert identity(numba.njit(bend_number)) != identity(numba.njit(fastmath=True)(bend_number))
    assert identity(helped(2.0)) != identity(helped(3.0))
    names: dict[str, Any] = {"scale": 2.0}
    exec("def kernel(x):\n    return [y * scale for y in (x,)][0]\n", names)
    before = identity(names["kernel"])
    names["scale"] = 3.0
    assert identity(names["kernel"]) != before


SECOND = """
import sys
import numpy as np
from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.lower import canonical, kernels
from sigma_kernel.graph import Graph, dtypes, op, shapes, symbol

bend = op("acme-ops:bend", shapes.same, dtypes.floating)
turn = op("acme-ops:turn", lambda x: x, dtypes.floating)


def turned(x, out):
    for i in range(x.size):
        out[i] = np.sqrt(x[x.size - 1 - i])


kernels.LOWERINGS = canonical.LOWERINGS = {"acme-ops:bend": lambda x: x * 2 + 1, "acme-ops:turn": turned}
x = symbol((3,))
found = NumbaBackend().lower(Graph((x,), (turn(bend(x)),)), {})(np.array([0, 1.5, 4], "f4"))[0].tolist()
print(*found, "numba" in sys.modules)
"""


@pytest.mark.long
def test_a_second_process_loads_compiled_kernels_without_numba(tmp_path: Path):
    folder = {**os.environ, files.VARIABLE: str(tmp_path / "programs")}
    said = [
        subprocess.run([sys.executable, "-c", SECOND], env=folder, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert said == ["3.0 2.0 1.0 True\n", "3.0 2.0 1.0 False\n"]


def test_a_cached_program_finds_its_row_kernels_and_meanings(offer, monkeypatch):
    x, s = symbols("float32")
    graph = Graph((x, s), (unit(x, s, epsilon=0.25), meant(x), gamma(f.abs(x) + 1.0)))
    first = NumbaBackend().lower(graph, {})(*arrays("float32"))
    monkeypatch.setattr(lookup, "_loaded", {})
    monkeypatch.setattr(lookup, "_compile_and_store", lambda *_: pytest.fail("it is compiled again"))
    again = NumbaBackend().lower(graph, {})(*arrays("float32"))
    assert [a.tobytes() for a in again] == [a.tobytes() for a in first]


def test_a_program_that_shares_a_unit_does_not_compile_its_kernel_again(offer, monkeypatch):
    compiled = []
    code = kernels.Compiled.code
    monkeypatch.setattr(kernels.Compiled, "code", lambda kernel: [compiled.append(kernel), code(kernel)][1])
    offer({"acme-ops:bend": lambda x: x * x * np.float32(0.7103)})
    x = symbol((5,))
    first = NumbaBackend(threads=1).lower(Graph((x,), (bend(x),)), {})(np.ones(5, "f4"))[0]
    assert len(compiled) == 1
    alone, beside = NumbaBackend(threads=1).lower(Graph((x,), (bend(x), f.sum(x))), {})(np.ones(5, "f4"))
    assert (alone.tobytes(), float(beside)) == (first.tobytes(), 5.0)
    assert len(compiled) == 1


@numba.njit
def twice(x):
    return x * np.float32(2)


def test_functions_called_by_a_kernel_are_linked_into_the_program(offer, monkeypatch):
    outside: list[str] = []

    def loaded(code: bytes, addresses: dict[str, int]) -> Any:
        outside.extend(addresses)
        return machine_code.load_burst(code, addresses)

    monkeypatch.setattr(lookup, "load_burst", loaded)
    offer({"acme-ops:bend": lambda x: twice(twice(x)) + math.atan(x), "acme-ops:gamma": gamma_number})
    x = symbol((3,))
    found = NumbaBackend().lower(Graph((x,), (bend(x),)), {})(np.ones(3, "f4"))[0]
    np.testing.assert_allclose(found, np.full(3, 4 + math.pi / 4), rtol=1e-6)
    assert outside == []
    assert NumbaBackend().lower(Graph((x,), (gamma(x),)), {})(np.full(3, 5, "f4"))[0].tolist() == [24.0] * 3
    assert len(outside) == 1


# -- ops that run in Python --------------------------------------------------------------------------------------------
def test_an_op_without_expansion_and_kernel_runs_in_python_and_is_logged_once(offer, caplog):
    with caplog.at_level(logging.WARNING, logger="sigma.numba"):
        for shape in ((3,), (0, 2), ()):
            x = symbol(shape)
            (found,) = NumbaBackend().lower(Graph((x,), (meant(meant(x)),)), {})(np.ones(shape, "f4"))
            np.testing.assert_allclose(found, np.full(shape, math.exp(-math.exp(-2))), rtol=1e-6)
    assert caplog.text.count("acme-ops:meant runs in Python, which is slow") == 1
    assert "no lowering 'meant.numba'" in caplog.text


def test_an_elementwise_op_without_a_scalar_row_runs_in_python(monkeypatch, caplog):
    monkeypatch.setitem(OPS, "sinh", Op("sinh", shapes.same, dtypes.floating))
    monkeypatch.setitem(MEANINGS, "sinh", lambda ns, x: ns.xp.sinh(x))
    monkeypatch.setattr(kernels, "_warned", set())
    x = symbol((3,))
    with caplog.at_level(logging.WARNING, logger="sigma.numba"):
        (found,) = NumbaBackend().lower(Graph((x,), (OPS["sinh"](x) * 2.0,)), {})(np.ones(3, "f4"))
    np.testing.assert_allclose(found, np.full(3, 2 * math.sinh(1)), rtol=1e-6)
    assert "sinh runs in Python, which is slow: it has no row in SCALARS" in caplog.text


def test_operands_that_are_not_rows_are_computed_in_python(offer, caplog):
    x, s = symbol((4, 3, 5)), symbol((3, 5))
    with caplog.at_level(logging.WARNING, logger="sigma.numba"):
        (found,) = NumbaBackend().lower(Graph((x, s), (unit(x, s, epsilon=1.0),)), {})(
            np.ones((4, 3, 5), "f4"), np.full((3, 5), 2.0, "f4")
        )
    np.testing.assert_allclose(found, np.full((4, 3, 5), 2 / math.sqrt(6)), rtol=1e-6)
    assert "its kernel takes numbers or rows, and these operands are neither" in caplog.text


def test_kernels_accept_scalars_computed_from_live_values(offer):
    x, rate = symbol((5, 7)), symbol(())
    outputs = (x * bend(rate * 2.0), meant(rate) + x, x * unit(f.expand(rate, 0), f.constant(3.0), epsilon=0.5))
    graph, given = Graph((x, rate), outputs), (np.ones((5, 7), "f4"), np.array(0.25, "f4"))
    found, wanted = NumbaBackend().lower(graph, {})(*given), interpret(graph, numpy_namespace())(*given)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_exception_of_a_meaning_reaches_the_caller_and_the_next_call_works(offer, monkeypatch, threads):
    def raising(ns: Any, x: Any) -> Any:
        if x[0] > 1:
            raise ZeroDivisionError("as it happens")
        return x + 1

    monkeypatch.setitem(MEANINGS, "acme-ops:nothing", raising)
    x = symbol((3,))
    call = NumbaBackend(threads=threads).lower(Graph((x,), (nothing(x) * 2.0,)), {})
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="as it happens"):
            call(np.full(3, 2.0, "f4"))
        assert call(np.ones(3, "f4"))[0].tolist() == [4.0] * 3


def test_an_exception_raised_in_an_interrupted_burst_is_discarded(offer):
    x = symbol((3,))
    call = NumbaBackend().lower(Graph((x,), (meant(x),)), {})
    call(np.ones(3, "f4"))
    (memory,) = call.machine.idle()
    kernels._raised[memory.ctypes.data + 256] = ValueError("of another burst")
    assert call(np.zeros(3, "f4"))[0].tolist() == [1.0] * 3
    assert kernels._raised == {}


# -- errors ------------------------------------------------------------------------------------------------------------
def test_an_op_that_cannot_be_computed_is_refused_with_a_remedy():
    x = symbol((3,))
    with pytest.raises(
        SigmaGraphError, match=r"nothing: the numba .* a meaning, an expansion or a lowering 'nothing.n"
    ):
        NumbaBackend().lower(Graph((x,), (nothing(x),)), {})


def test_a_kernel_that_numba_cannot_compile_is_named(offer):
    offer({"acme-ops:bend": lambda x: x.no_such_thing})
    x = symbol((3,))
    with pytest.raises(SigmaGraphError, match=r"acme-ops:bend: Numba cannot compile its kernel for float32 \("):
        NumbaBackend().lower(Graph((x,), (bend(x),)), {})


def test_a_meaning_of_another_dtype_than_the_row_says_is_refused(offer, monkeypatch):
    monkeypatch.setitem(MEANINGS, "acme-ops:nothing", lambda ns, x: x.astype("f8"))
    x = symbol((3,))
    with pytest.raises(SigmaGraphError, match=r"its meaning returned float64\[3\] instead of float32\[3\]"):
        NumbaBackend().lower(Graph((x,), (nothing(x),)), {})(np.ones(3, "f4"))


def test_a_meaning_runs_with_blas_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, fitting = list[int](), kernels._fitting

    def note(*given: Any) -> Any:
        counts.extend(row["num_threads"] for row in blas.info())
        return fitting(*given)

    blas = ThreadpoolController().select(filepath=[*_blas_of_numpy()])
    x = symbol((3, 3), "float64")
    program = NumbaBackend().lower(Graph((x,), (f.cholesky(x),)), {})
    monkeypatch.setattr(kernels, "_fitting", note)
    with blas.limit(limits=2):
        np.testing.assert_array_equal(program(np.diag([1.0, 4.0, 9.0]))[0], np.diag([1.0, 2.0, 3.0]))
    assert {*counts} == {1}


def _blas_of_numpy() -> list[str]:
    found = ThreadpoolController().select(user_api="blas").info()
    paths = [row["filepath"] for row in found if "numpy" in row["filepath"]]
    if not paths:
        pytest.skip("the BLAS library of this NumPy cannot be told how many threads to use")
    return paths
