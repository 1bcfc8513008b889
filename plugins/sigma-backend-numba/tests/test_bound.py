"""Programs that are bound to a state: calls pass data alone, and get what ``run`` records, to the bit."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.execute import thread_pool
from sigma_backend_numba.execute.bound import SMALL, BoundBurst
from sigma_backend_numba.execute.machine import Machine
from sigma_backend_numba.execute.program import CompiledProgram
from sigma_backend_numba.execute.thread_count import CallThreads
from sigma_kernel import functions as f
from sigma_kernel.contracts import BindingProgram, Step
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import Graph, symbol

DRAW = np.random.default_rng(0)
ORDER = np.array([[0, 1, 2, 3], [4, 5, 6, 7], [6, 7, 8, 9]])  # of ten rows, in blocks of which two overlap


def use_threads(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Share all calls among so many threads, also those that one would end sooner."""
    monkeypatch.setattr(thread_pool.POOL, "most", most)
    monkeypatch.setattr(CallThreads, "is_short", most == 1)
    monkeypatch.setattr(CallThreads, "wants_several", lambda self: most > 1)


def products(batch: int, wide: int) -> Step:
    """Return a step that multiplies rows by weights and a live value, and records two values."""
    x, w, scale = symbol((batch, wide), "float32"), symbol((wide, 5), "float32"), symbol((), "float32")
    y = f.tanh(x @ w) * scale
    return Step(Graph((w, x, scale), (y, f.sum(x, axis=1))), ("w",), ("x",), ("scale",), (), ("y", "total"))


def compiled(batch: int, wide: int, threads: int = 0) -> tuple[CompiledProgram, dict[str, np.ndarray]]:
    """Return a program and its state."""
    backend = NumbaBackend(threads=threads)
    weights = backend.to_device(DRAW.standard_normal((wide, 5)).astype("f4"))
    return backend.compile(products(batch, wide), in_place=False), {"w": weights}


def bind(program: CompiledProgram, state: Mapping[str, np.ndarray], rows: np.ndarray) -> BoundBurst:
    call = program.bind(state, rows, {"scale": np.float32(2.0)})
    assert call is not None
    return call


def run(program: CompiledProgram, state: Mapping[str, np.ndarray], x: np.ndarray, rows: np.ndarray) -> list[np.ndarray]:
    """Return what a burst records, one row for each of ``rows``."""
    ring = program.run(state, {"x": x}, rows, {"scale": np.float32(2.0)}, len(rows)).ring
    return [values.reshape(rows.size, *values.shape[2:]) for values in ring.values()]


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize(
    ("wide", "rows"),
    [
        (7, ORDER[:1]),
        (7, ORDER),
        (600, ORDER),
        (64, np.arange(1000).reshape(10, 100)),
        (900, np.arange(320).reshape(2, 160)),
    ],
)
def test_a_bound_program_records_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, wide: int, rows: np.ndarray, most: int
) -> None:
    use_threads(monkeypatch, most)
    program, state = compiled(rows.shape[1], wide, threads=most)
    assert isinstance(program, BindingProgram)
    call = bind(program, state, rows)
    for _ in range(3):  # with the memory of the first call
        x = DRAW.standard_normal((rows.max() + 1, wide)).astype("f4")
        for own, expected in zip(call([x]), run(program, state, x, rows), strict=True):
            np.testing.assert_array_equal(own, expected)


def test_steps_are_shared_among_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    use_threads(monkeypatch, 3)
    program, state = compiled(160, 900, threads=3)
    assert program.machine.needs["threads"] > 2
    call, ran = bind(program, state, np.arange(640).reshape(4, 160)), set()
    run_table = Machine.run_table
    monkeypatch.setattr(
        Machine, "run_table", lambda *how, **more: ran.add(threading.current_thread()) or run_table(*how, **more)
    )
    for _ in range(10):
        call([np.zeros((640, 900), "f4")])
    (frame,) = call._frames
    assert [(part.first, part.n) for part in frame.parts] == [(0, 1), (1, 1), (2, 2)]
    assert len(ran) == 3
    assert threading.current_thread() not in ran


def test_an_error_in_another_thread_is_raised_in_that_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    use_threads(monkeypatch, 3)
    program, state = compiled(160, 900, threads=3)
    call = bind(program, state, np.arange(640).reshape(4, 160))

    def fail(*how: object, **more: object) -> int:
        raise SigmaGraphError("as it happens")

    with monkeypatch.context() as patch:
        patch.setattr(Machine, "run_table", fail)
        with pytest.raises(SigmaGraphError, match="as it happens"):
            call([np.zeros((640, 900), "f4")])
    assert not call([np.zeros((640, 900), "f4")])[1].any()


@pytest.mark.parametrize("wide", [7, 900])
def test_data_of_any_layout_and_type_are_taken(wide: int) -> None:
    program, state = compiled(4, wide)
    call, x = bind(program, state, ORDER), DRAW.standard_normal((10, wide)).astype("f4")
    assert (x.nbytes > SMALL) == (wide == 900)
    expected, moved = call([x]), np.empty(10 * wide * 4 + 4, np.uint8)[4:].view("f4").reshape(10, wide)
    moved[...] = x
    fixed = x.copy()
    fixed.flags.writeable = False
    for other in (np.asfortranarray(x), x.astype("f8"), np.repeat(x, 2, 0)[::2], x[::-1][::-1], moved, fixed):
        for own, values in zip(call([other]), expected, strict=True):
            np.testing.assert_array_equal(own, values)


@pytest.mark.parametrize("wide", [7, 900])
def test_records_belong_to_the_caller(wide: int) -> None:
    program, state = compiled(4, wide)
    call, x = bind(program, state, ORDER), DRAW.standard_normal((10, wide)).astype("f4")
    first = call([x])
    kept = [values.copy() for values in first]
    x[...] = 0
    assert not call([x])[1].any()
    for own, values in zip(first, kept, strict=True):
        np.testing.assert_array_equal(own, values)
        own[...] = 7
    assert not call([x])[1].any()


def test_a_state_that_is_written_to_is_read_as_it_is() -> None:
    program, state = compiled(4, 7)
    call, x = bind(program, state, ORDER), np.ones((10, 7), "f4")
    call([x])
    state["w"][...] = 0.25
    np.testing.assert_allclose(call([x])[0], 2 * np.tanh(7 * 0.25), rtol=1e-6)


@pytest.mark.parametrize("wide", [7, 900])
@pytest.mark.parametrize("shape", [(9, 0), (10, 1), (11, 0), (1, 0)])
def test_data_of_another_shape_are_refused(wide: int, shape: tuple[int, int]) -> None:
    program, state = compiled(4, wide)
    call = bind(program, state, ORDER)
    wrong = (shape[0], wide + shape[1])
    with pytest.raises(SigmaGraphError, match=rf"data have shape \({wrong[0]}, {wrong[1]}\)\. The .* \(10, {wide}\)"):
        call([np.zeros(wrong, "f4")])
    call([np.zeros((10, wide), "f4")])


def test_an_index_outside_its_axis_is_an_error_of_its_own_call() -> None:
    table, x = symbol((3, 2), "float32"), symbol((2,), "int32")
    step = Step(Graph((table, x), (f.take(table, x),)), ("table",), ("x",), (), (), ("rows",))
    state = {"table": NumbaBackend().to_device(np.arange(6, dtype="f4").reshape(3, 2))}
    call = NumbaBackend().compile(step).bind(state, np.arange(6).reshape(3, 2), {})
    assert call is not None
    with pytest.raises(SigmaGraphError, match="an index is outside its axis"):
        call([np.array([0, 1, 2, 3, 0, 0], "i4")])
    assert call([np.array([2, 1, 0, 0, 1, 2], "i4")])[0][:, 0].tolist() == [4, 2, 0, 0, 2, 4]


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize(("wide", "batch"), [(7, 4), (900, 160)])
def test_threads_get_the_records_of_their_own_data(
    monkeypatch: pytest.MonkeyPatch, wide: int, batch: int, most: int
) -> None:
    use_threads(monkeypatch, most)
    rows = np.arange(3 * batch).reshape(3, batch)
    program, state = compiled(batch, wide, threads=most)
    call, together = bind(program, state, rows), Barrier(8)
    data = [DRAW.standard_normal((rows.size, wide)).astype("f4") for _ in range(8)]
    expected = [run(program, state, x, rows) for x in data]

    def work(number: int) -> bool:
        together.wait()
        results = [call([data[number]]) for _ in range(25)]
        return all(np.array_equal(a, b) for got in results for a, b in zip(got, expected[number], strict=True))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_what_nothing_is_gained_for_is_not_bound() -> None:
    program, state = compiled(4, 7)
    assert program.bind({"w": state["w"].astype("f8")}, ORDER, {"scale": 1.0}) is None  # is copied at each call
    w, x = symbol((7,), "float32"), symbol((4, 7), "float32")
    writes = Step(Graph((w, x), (w + f.sum(x, axis=0),)), ("w",), ("x",), (), ("w",), ())
    state = {"w": np.zeros(7, "f4")}
    assert NumbaBackend().compile(writes).bind(state, ORDER, {}) is None
    total = Step(Graph((w, x), (f.sum(x * w),)), ("w",), ("x",), (), (), ("total",))
    assert NumbaBackend().compile(total).bind(state, ORDER, {}) is None
