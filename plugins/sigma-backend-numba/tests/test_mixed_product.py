"""Products of operands rounded to bfloat16 or float16: in 16 bits where the processor gains by it, else in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sigma_backend_numba import runtime
from sigma_backend_numba.backend import NumbaBackend
from sigma_backend_numba.compiler import machine_code, processor
from sigma_backend_numba.compiler.processor import AMX, DOTS, llvm, mixed_form
from sigma_backend_numba.compiler.units import ProgramText
from sigma_backend_numba.emit import matmul
from sigma_backend_numba.emit.program_text import source
from sigma_backend_numba.execute.program import LoweredFunction, graph_job, step_job
from sigma_backend_numba.lower import canonical
from sigma_kernel import functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.graph import Graph, interpret, numpy_namespace, ops, symbol

SHAPES = [(1, 1, 1), (7, 3, 5), (17, 40, 33), (193, 70, 131), (600, 209, 90)]


@pytest.fixture(autouse=True)
def every_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """Multiply in 16 bits whatever the size of a product."""
    monkeypatch.setattr(canonical, "PACKED", dict.fromkeys((AMX, DOTS), 0))
    monkeypatch.setattr(canonical, "LEAST", 1)


def rounded(x: np.ndarray) -> np.ndarray:
    """Return numbers rounded to bfloat16, as float64."""
    return np.asarray(ops.reduce_precision(x, dtype="bfloat16")).astype(float)


def operands(rows: int, columns: int, inner: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two matrices."""
    draw = np.random.default_rng(rows)
    return draw.standard_normal((rows, inner), np.float32), draw.standard_normal((inner, columns), np.float32)


def lowered(
    x: Any, w: Any, first: bool = False, second: bool = False, dtype: str = "bfloat16"
) -> tuple[LoweredFunction, list[Any]]:
    """Return a product whose operands lie transposed or not, and these."""
    laid = [np.ascontiguousarray(v.swapaxes(-1, -2)) if turned else v for v, turned in ((x, first), (w, second))]
    a, b = (symbol(v.shape) for v in laid)
    result = ops.mixed_matmul(
        f.swap_axes(a, -1, -2) if first else a, f.swap_axes(b, -1, -2) if second else b, dtype=dtype
    )
    return NumbaBackend().lower(Graph((a, b), (result,)), {}), laid


def close(found: np.ndarray, x: np.ndarray, w: np.ndarray, start: Any = 0.0, rate: float = 1.0) -> None:
    """Compare a product of rounded numbers, added to a start, with the same in float64."""
    size = np.abs(start) + np.abs(rounded(x)) @ np.abs(rounded(w))
    assert np.all(np.abs(found - start - rate * (rounded(x) @ rounded(w))) <= 3e-6 * size)


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("rows", "columns", "inner"), SHAPES)
def test_a_product_of_any_shape_is_that_of_rounded_operands(
    rows: int, columns: int, inner: int, first: bool, second: bool
) -> None:
    x, w = operands(rows, columns, inner)
    function, laid = lowered(x, w, first, second)
    assert ("_product(" in source(graph_job(function.machine.graph, {})).text) == bool(mixed_form())
    close(function(*laid)[0], x, w)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("second", [False, True])
def test_without_a_form_for_bfloat16_rounded_numbers_are_multiplied_in_float32(
    monkeypatch: pytest.MonkeyPatch, dtype: str, second: bool
) -> None:
    monkeypatch.setattr(canonical, "mixed_form", lambda: "")
    x, w = operands(100, 64, 70)
    function, laid = lowered(x, w, False, second, dtype)
    assert "_product(" not in source(graph_job(function.machine.graph, {})).text
    expected = ops.reduce_precision(x, dtype=dtype) @ ops.reduce_precision(w, dtype=dtype)
    np.testing.assert_allclose(function(*laid)[0], expected, rtol=0, atol=2e-5)


def test_small_products_are_rounded_and_multiplied_in_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    x, w = operands(20, 20, 20)
    function, laid = lowered(x, w)
    assert "_product(" not in source(graph_job(function.machine.graph, {})).text
    close(function(*laid)[0], x, w)


def test_numbers_that_are_not_finite_stay_in_their_row_and_column() -> None:
    x, w = operands(37, 45, 33)
    x[2, 32], x[5, 0], w[7, 44] = np.nan, np.inf, -np.inf
    function, laid = lowered(x, w)
    (found,) = function(*laid)
    with np.errstate(invalid="ignore"):
        expected = rounded(x) @ rounded(w)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isposinf(found), np.isposinf(expected))
    assert np.isfinite(found[np.ix_([0, 1, 3, 36], range(44))]).all()


def test_a_batch_of_products_may_share_an_operand() -> None:
    x = np.stack([operands(20, 40, 33)[0] * k for k in (1, 2, 3)])
    w = operands(20, 40, 33)[1]
    for second in (False, True):
        function, laid = lowered(x, w, False, second)
        close(function(*laid)[0], x, w)


@pytest.mark.parametrize(("inner", "columns", "batch"), [(300, 210, 97), (97, 210, 300)])
def test_an_update_by_a_product_is_added_once(inner: int, columns: int, batch: int) -> None:
    draw = np.random.default_rng(0)
    shapes = {"p": (inner, columns), "x": (batch, inner), "g": (batch, columns)}
    values = {name: draw.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    nodes, rate = {name: symbol(value.shape) for name, value in values.items()}, symbol(())
    product = ops.mixed_matmul(f.swap_axes(nodes["x"], 0, 1), nodes["g"], dtype="bfloat16")
    step = Step(Graph((*nodes.values(), rate), (nodes["p"] - rate * product,)), tuple(nodes), (), ("rate",), ("p",), ())
    assert ("True)" in source(step_job(step)).text) == bool(mixed_form())  # added in place
    start = values["p"].copy()
    done = NumbaBackend().compile(step).run(values, {}, np.zeros(0, np.int32), {"rate": np.float32(0.5)}, 1)
    close(done.state["p"], values["x"].T, values["g"], start, -0.5)


def test_an_element_of_a_product_does_not_depend_on_the_cut() -> None:
    x, w = operands(96, 1200, 700)
    whole, laid = lowered(x, w)
    assert whole.machine.needs["threads"] > 1
    (found,) = whole(*laid)
    for rows, columns in ((96, 33), (50, 1200), (6, 7)):
        part, laid = lowered(x[:rows].copy(), np.ascontiguousarray(w[:, :columns]))
        if mixed_form():
            np.testing.assert_array_equal(part(*laid)[0], found[:rows, :columns])
        close(part(*laid)[0], x[:rows], w[:, :columns])


def test_what_follows_a_product_is_computed_in_float32() -> None:
    x, w = operands(200, 48, 64)
    a, b, c = symbol(x.shape), symbol(w.shape), symbol((48,))
    shift = np.linspace(-1, 1, 48, dtype=np.float32)
    graph = Graph((a, b, c), (f.relu(ops.mixed_matmul(a, b, dtype="bfloat16") + c),))
    (found,) = NumbaBackend().lower(graph, {})(x, w, shift)
    np.testing.assert_allclose(found, np.maximum(rounded(x) @ rounded(w) + shift, 0), rtol=0, atol=2e-5)


def test_products_in_the_body_of_a_loop_are_rounded_too() -> None:
    w, xs, start = symbol((40, 40)), symbol((3, 20, 40)), symbol((20, 40))
    (final,), _ = f.scan(lambda h, x: ([f.tanh(ops.mixed_matmul(h, w, dtype="bfloat16") + x)], []), [start], [xs])
    graph, draw = Graph((w, xs, start), (final,)), np.random.default_rng(0)
    arrays = [draw.standard_normal(x.shape, np.float32) * 0.1 for x in graph.inputs]
    (found,) = NumbaBackend().lower(graph, {})(*arrays)
    (expected,) = interpret(graph, numpy_namespace())(*arrays)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)  # a sum may round to the next number
    assert np.abs(found - expected).mean() < 1e-5


def test_numbers_are_rounded_to_nearest_and_ties_to_even() -> None:
    middle = np.array([0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F808001, 0xBF818000], np.uint32).view(np.float32)
    x = np.array([*middle, 3.3e38, 3.4e38, -3.4e38, np.inf, np.nan, 0.0, 1e-30, 1 / 3], np.float32)[:, None]
    with np.errstate(over="ignore"):  # 3.4e38 is nearer to 2^128 than to the largest number
        expected = np.asarray(ops.reduce_precision(x, dtype="bfloat16"))
    function, laid = lowered(x, np.ones((1, 1), np.float32))
    np.testing.assert_array_equal(function(*laid)[0], expected)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_an_odd_inner_side_adds_nothing_to_infinities(first: bool, second: bool) -> None:
    x, w = np.full((13, 17), np.inf, np.float32), np.full((17, 35), np.inf, np.float32)
    function, laid = lowered(x, w, first, second)
    np.testing.assert_array_equal(function(*laid)[0], np.full((13, 35), np.inf))


@pytest.mark.parametrize(("rows", "columns", "inner"), [(0, 40, 20), (40, 0, 20), (40, 20, 0)])
def test_a_product_of_empty_matrices_is_zero(rows: int, columns: int, inner: int) -> None:
    function, laid = lowered(np.ones((rows, inner), np.float32), np.ones((inner, columns), np.float32))
    np.testing.assert_array_equal(function(*laid)[0], np.zeros((rows, columns), np.float32))


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_threads_change_no_bit(first: bool, second: bool) -> None:
    x, w = operands(603, 519, 333)
    function, laid = lowered(x, w, first, second)
    alone = NumbaBackend(threads=1).lower(function.machine.graph, {})
    assert function.machine.needs["threads"] > 1
    np.testing.assert_array_equal(alone(*laid)[0], NumbaBackend(threads=2).lower(function.machine.graph, {})(*laid)[0])


def test_a_sum_of_dot_products_adds_second_numbers_of_pairs_first_and_rounds_each_time() -> None:
    x, w = operands(20, 40, 33)
    function, laid = lowered(x, w)
    left, right, expected = rounded(x), rounded(w), np.zeros((20, 40), np.float32)
    for k in [k + 1 - 2 * (k % 2) for k in range(32)] + [32]:
        expected = (expected + left[:, k, None] * right[k]).astype(
            np.float32
        )  # products of bfloat16 are exact in float64
    if mixed_form() == DOTS:
        np.testing.assert_array_equal(function(*laid)[0], expected)
    close(function(*laid)[0], x, w)


def narrow_graph(op: str) -> Graph:
    """Return a product of two operands that are rounded to bfloat16."""
    if op == "mixed_matmul":
        x, w = symbol((100, 64)), symbol((64, 80))
        return Graph((x, w), (ops.mixed_matmul(x, w, dtype="bfloat16"),))
    how: dict[str, Any] = {"stride": (1,), "padding": ((1, 1),), "dilation": (1,), "groups": 1}
    shapes = {"attention": [(2, 40, 24)] * 2, "convolution": [(2, 40, 64), (48, 40, 3)]}
    x, w = map(symbol, shapes.get(op, [(2, 40, 64), (2, 48, 64)]))
    narrow = [ops.reduce_precision(v, dtype="bfloat16") for v in (x, w)]
    if op == "attention":
        return Graph((x, w), (ops.attention(*narrow, narrow[1], causal=True),))
    if op == "convolution":
        return Graph((x, w), (ops.convolution(*narrow, **how),))
    return Graph((x, w), (ops.convolution_kernel(*narrow, shape=(48, 40, 3), **how),))


@pytest.mark.parametrize(
    ("form", "name", "instruction", "op"),
    [
        *((AMX, "sapphirerapids", "tdpbf16ps", op) for op in ("mixed_matmul", "convolution")),
        *(
            (DOTS, "znver5", "vdpbf16ps", op)
            for op in ("mixed_matmul", "convolution", "convolution_kernel", "attention")
        ),
    ],
)
def test_both_forms_compile_for_their_processors(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, form: str, name: str, instruction: str, op: str
) -> None:
    for module in (canonical, matmul):
        monkeypatch.setattr(module, "mixed_form", lambda: form)
    monkeypatch.setattr(processor, "processor", lambda: (name, "+avx2,+fma,+avx512f"))
    processor.registers.cache_clear()
    request.addfinalizer(processor.registers.cache_clear)
    job = graph_job(narrow_graph(op), {})
    llvm().initialize_all_targets()
    llvm().initialize_all_asmprinters()
    target = llvm().Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(name, "", opt=3)
    program, listing = ProgramText(source(job).text, {**vars(runtime), "inf": np.inf}), ""
    waiting = [program.burst]
    while waiting:
        assembly, called = machine_code.translate_unit(program, waiting.pop())
        listing += target.emit_assembly(llvm().parse_assembly(assembly))
        waiting += called
    assert instruction in listing


@pytest.mark.parametrize(
    ("name", "features", "form"),
    [
        ("znver5", "+avx512f,+avx512bw,+avx512bf16", DOTS),
        ("znver4", "+avx512f,+avx512bw,+avx512bf16", DOTS),
        ("znver4", "-avx512f,-avx512bw,-avx512bf16", ""),  # hidden
        ("znver3", "+avx2,+fma", ""),
        ("cooperlake", "+avx512f,+avx512bw,+avx512bf16", ""),  # Intel's are slower than float32
    ],
)
def test_the_backend_says_how_it_multiplies(
    monkeypatch: pytest.MonkeyPatch, name: str, features: str, form: str
) -> None:
    assert NumbaBackend().runtime["bfloat16"] == (mixed_form() or "rounded, multiplied in float32")
    monkeypatch.setattr(processor, "processor", lambda: (name, features))
    mixed_form.cache_clear()
    assert mixed_form() == form
    mixed_form.cache_clear()
