"""Whole steps agree with the reference, in bursts of any length and on any number of threads."""

from __future__ import annotations

import multiprocessing
import os
import re
from concurrent.futures import ThreadPoolExecutor
from importlib import util
from pathlib import Path

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.emit.program_text import source
from sigma_backend_numba.execute import thread_pool
from sigma_backend_numba.execute.program import graph_job, step_job
from sigma_kernel import functions as f
from sigma_kernel.contracts import Backend, LoopProgram, Step
from sigma_kernel.errors import SigmaConfigError, SigmaGraphError, SigmaStateError
from sigma_kernel.graph import Graph, interpret, numpy_namespace, ops, rewrite, symbol

_spec = util.spec_from_file_location("nets", Path(__file__).with_name("nets.py"))
assert _spec is not None
assert _spec.loader is not None
nets = util.module_from_spec(_spec)
_spec.loader.exec_module(nets)

STEPS = {
    "dense": nets.dense(256, 320, 160, 10, slots=True, dropout=0.3),
    "odd": nets.dense(97, 131, 7, batch=13, slots=True),
    "one": nets.dense(1, 1, 3, batch=1),
    "small": nets.dense(4, 12, 3, batch=10),
    "wide": nets.dense(300, 600, 10, batch=50),
    "convolutional": nets.convolutional(batch=20, filters=16, side=16),
    "convolutional of one sample": nets.convolutional(batch=1, filters=1, side=4),
    "recurrent": nets.recurrent(),
    "recurrent with masks": nets.recurrent(batch=33, masked=True),
}


class Meaning(Backend):
    """The reference, interpreted node by node."""

    def lower(self, graph, donate):
        run = interpret(rewrite(graph), numpy_namespace())
        return lambda *arrays: tuple(np.array(x) for x in run(*arrays))

    def compile(self, step: Step, in_place: bool = True) -> LoopProgram:
        return LoopProgram(self, step, self.lower(step.graph, {}))

    def to_device(self, host):
        return np.array(host)

    def to_host(self, array):
        return np.array(array)


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool.POOL, "most", 3)


@pytest.mark.long_cases("convolutional", "recurrent")
@pytest.mark.parametrize("name", STEPS)
def test_one_step_agrees_with_the_reference(name):
    found, wanted = (nets.train(backend, STEPS[name], (1,)) for backend in (NumbaBackend(), Meaning()))
    np.testing.assert_allclose(found.ring["loss"], wanted.ring["loss"], rtol=1e-5)
    for entry, value in wanted.state.items():
        scale = np.abs(value).max() + 1e-30
        np.testing.assert_allclose(found.state[entry] / scale, value / scale, atol=3e-5, err_msg=entry)


@pytest.mark.parametrize("name", STEPS)
def test_several_steps_follow_the_reference(name):
    found, wanted = (nets.train(backend, STEPS[name], (6,)) for backend in (NumbaBackend(), Meaning()))
    np.testing.assert_allclose(found.ring["loss"], wanted.ring["loss"], rtol=2e-3)


@pytest.mark.parametrize("name", STEPS)
def test_any_division_into_bursts_and_any_number_of_threads_give_the_same_bits(name, three):
    backends = [NumbaBackend(threads=count) for count in (1, 2, 3)]
    runs = [nets.bits(nets.train(b, STEPS[name], parts)) for b in backends for parts in ((6,), (1,) * 6, (2, 4))]
    assert all(run == runs[0] for run in runs)


@pytest.mark.parametrize("name", ["dense", "convolutional"])
def test_a_thread_that_never_starts_does_not_block_a_burst(name, monkeypatch):
    wanted = nets.bits(nets.train(NumbaBackend(threads=1), STEPS[name]))
    monkeypatch.setattr(thread_pool.ThreadPool, "run", lambda self, part, threads: part(1, 3))  # the second of three
    assert nets.bits(nets.train(NumbaBackend(threads=3), STEPS[name])) == wanted


def test_large_steps_are_cut_into_chunks():
    for name, most in {"dense": 2, "wide": 2, "convolutional": 3, "recurrent": 4}.items():
        assert NumbaBackend().compile(STEPS[name]).machine.needs["threads"] >= most
    assert NumbaBackend().compile(STEPS["one"]).machine.needs["threads"] == 1


def test_labels_are_copied_before_the_loops_that_read_them() -> None:
    text = source(step_job(STEPS["small"])).text
    assert re.search(r"for v0 in range\(r0, r1\):\n +(a\d+)\[v0\] = a\d+\[i8\(a\d+\[v0\]\)\]\n", text)
    assert len(re.findall(r"\[i8\(", text)) == 1  # rows of features are copied as a whole


@pytest.mark.parametrize(("axis", "reordered"), [(0, False), (1, True)])
def test_only_sums_along_the_innermost_loop_are_reordered(axis: int, reordered: bool) -> None:
    x = symbol((10, 12))
    text = source(graph_job(Graph((x,), (f.sum(x, axis),)), {})).text
    assert ("radd(" in text) is reordered


@pytest.mark.parametrize("name", STEPS)
def test_uninitialised_memory_does_not_affect_a_step(name):
    program = NumbaBackend().compile(STEPS[name])
    first = nets.bits(nets.train(NumbaBackend(), STEPS[name], program=program))
    for memory in program.machine.idle():
        memory.view(np.float32)[:] = np.nan
    assert nets.bits(nets.train(NumbaBackend(), STEPS[name], (1,) * 6, program=program)) == first


def test_an_evaluation_program_leaves_the_state_unchanged():
    backend, step = NumbaBackend(), STEPS["wide"]
    program = backend.compile(step, in_place=False)
    state, block, rows = nets.start(backend, step)
    kept = {name: value.copy() for name, value in state.items()}
    burst = program.run(state, block, rows, {"rate": np.float32(0.05)}, 6)
    assert all(np.array_equal(state[name], kept[name]) for name in kept)
    assert nets.bits(nets.train(backend, step))["weights.0"] == burst.state["weights.0"].tobytes()


def test_read_only_state_is_copied():
    backend, step = NumbaBackend(), STEPS["odd"]
    state, block, rows = nets.start(backend, step)
    for value in state.values():
        value.flags.writeable = False
    kept = {name: value.copy() for name, value in state.items()}
    burst = backend.compile(step).run(state, block, rows, {"rate": np.float32(0.05)}, 6)
    assert nets.bits(burst) == nets.bits(nets.train(backend, step))
    assert all(np.array_equal(state[name], kept[name]) for name in kept)


def test_a_row_that_the_block_does_not_have_is_refused():
    backend, step = NumbaBackend(), STEPS["odd"]
    state, block, rows = nets.start(backend, step)
    for wrong in (nets.ROWS, -1):
        rows[2, 3] = wrong
        with pytest.raises(SigmaStateError, match="of a block of 64 rows"):
            backend.compile(step).run(state, block, rows, {"rate": np.float32(0.05)}, 6)


def test_an_index_outside_its_axis_is_refused_and_the_program_stays_usable():
    x, i = symbol((4,)), symbol((2,), "int32")
    call = NumbaBackend().lower(Graph((x, i), (ops.take(x, i, axis=0),)), {})
    for wrong in (4, -1):
        with pytest.raises(SigmaGraphError, match="an index is outside its axis"):
            call(np.ones(4, "f4"), np.array([0, wrong], "i4"))
    assert call(np.arange(4, dtype="f4"), np.array([3, 1], "i4"))[0].tolist() == [3, 1]


@pytest.mark.parametrize("op", ["sum", "max"])
@pytest.mark.parametrize("shape", [(300, 400), (1, 301, 1, 17, 23), (200_003,)])
def test_a_large_array_is_reduced_to_one_number(op, shape, three):
    x = symbol(shape, "float64")
    call = NumbaBackend().lower(Graph((x,), (getattr(ops, op)(x * 2.0, axis=tuple(range(len(shape)))),)), {})
    array = np.random.default_rng(0).normal(size=shape)
    found = call(array)[0]
    assert found.shape == (1,) * len(shape)
    np.testing.assert_allclose(found.item(), getattr(np, op)(array * 2.0), rtol=1e-10)
    assert (call.machine.needs["threads"] > 1) == (len(shape) > 1)


@pytest.mark.parametrize("sides", [(4, 16, 1), (12, 32, 7), (8, 48, 33), (132, 16, 5), (5, 16, 3), (8, 17, 3)])
@pytest.mark.parametrize("turned", [(), (0,), (1,)])
def test_small_products_are_correct_for_all_operand_layouts(sides, turned):
    m, n, k = sides
    shapes = [(k, m) if 0 in turned else (m, k), (n, k) if 1 in turned else (k, n)]
    symbols = [*map(symbol, shapes), symbol((m, n))]
    a, b = (ops.permute(x, axes=(1, 0)) if i in turned else x for i, x in enumerate(symbols[:2]))
    graph = Graph(symbols, (a @ b, ops.tanh(a @ b), symbols[2] - 0.5 * (a @ b)))
    draw = np.random.default_rng(0)
    arrays = [draw.normal(size=x.shape).astype("f4") for x in symbols]
    wanted = [np.array(x) for x in interpret(rewrite(graph), numpy_namespace())(*arrays)]
    for result, expected in zip(NumbaBackend().lower(graph, {2: 2})(*arrays), wanted, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_minimising_for_zero_steps_changes_nothing():
    backend, step = NumbaBackend(), STEPS["one"]
    state, block, rows = nets.start(backend, step)
    burst = backend.compile(step).run(state, block, rows[:0], {"rate": np.float32(0.1)}, 0)
    assert (burst.done, burst.ring["loss"].shape) == (0, (0,))


def test_live_values_of_another_length_are_refused():
    backend, step = NumbaBackend(), STEPS["one"]
    state, block, rows = nets.start(backend, step)
    with pytest.raises(SigmaGraphError, match="Give one number, or 6 of them"):
        backend.compile(step).run(state, block, rows, {"rate": np.ones(5, "f4")}, 6)


def test_parameters_may_be_swapped():
    p, q = symbol((3,)), symbol((3,))
    arrays = [np.zeros(3, "f4"), np.ones(3, "f4")]
    NumbaBackend().lower(Graph((p, q), (q, p)), {0: 0, 1: 1})(*arrays)
    assert [x.tolist() for x in arrays] == [[1, 1, 1], [0, 0, 0]]


def test_an_update_that_reads_other_elements_does_not_read_its_own_writes():
    p = symbol((3, 3))
    graph = Graph((p,), (p + ops.permute(p, axes=(1, 0)) + ops.sum(p, axis=(0,)),))
    array = np.arange(9, dtype="f4").reshape(3, 3)
    wanted = array + array.T + array.sum(0)
    NumbaBackend().lower(graph, {0: 0})(array)
    np.testing.assert_array_equal(array, wanted)


def test_several_programs_run_at_once(three):
    names = ["dense", "wide", "odd", "convolutional"] * 3
    alone = {name: nets.bits(nets.train(NumbaBackend(), STEPS[name])) for name in set(names)}
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda name: nets.bits(nets.train(NumbaBackend(), STEPS[name])), names))
    assert together == [alone[name] for name in names]


def test_one_program_may_be_run_by_several_threads(three):
    program, backend = NumbaBackend().compile(STEPS["dense"]), NumbaBackend()
    alone = nets.bits(nets.train(backend, STEPS["dense"], program=program))
    with ThreadPoolExecutor(4) as pool:
        runs = pool.map(lambda _: nets.bits(nets.train(backend, STEPS["dense"], program=program)), range(8))
        assert all(run == alone for run in runs)


def _in_child(queue: multiprocessing.Queue) -> None:
    queue.put(nets.bits(nets.train(NumbaBackend(), STEPS["wide"]))["loss"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_both_processes_can_train_after_a_fork():
    before = nets.bits(nets.train(NumbaBackend(), STEPS["wide"]))["loss"]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == before
    child.join()
    assert nets.bits(nets.train(NumbaBackend(), STEPS["wide"]))["loss"] == before


def test_denormals_are_zero_inside_programs_only():
    x = symbol((4,))
    call = NumbaBackend().lower(Graph((x,), (x * 0.5,)), {})
    tiny = np.full(4, 1e-39, np.float32)
    assert not call(tiny)[0].any()
    assert (tiny * np.float32(0.5)).all()


def test_a_negative_number_of_threads_is_refused():
    with pytest.raises(SigmaConfigError, match="NumbaBackend.threads: must be at least 0 .got -1"):
        NumbaBackend(threads=-1)


def test_peak_bytes_are_known_before_the_run():
    step = nets.dense(10, 3, batch=5)
    program = NumbaBackend().compile(step)
    held = sum(4 * int(np.prod(node.shape)) for node in step.graph.inputs)
    assert held < program.peak_bytes < held + 8192


def test_arrays_seen_before_are_recognised_and_others_are_checked():
    step = STEPS["odd"]
    program, (state, block, rows) = NumbaBackend().compile(step), nets.start(NumbaBackend(), step, 4)
    steer = {"rate": np.asarray(0.05, np.float32)}
    for number in range(4):
        copies = {name: value.copy() for name, value in state.items()}
        again = program.run(state, block, rows[number : number + 1], steer, 1)
        fresh = NumbaBackend().compile(step).run(copies, dict(block), rows[number : number + 1], {"rate": 0.05}, 1)
        assert nets.bits(again) == nets.bits(fresh)
        state = again.state if number % 2 else {name: value.copy() for name, value in again.state.items()}
    wrong = next(iter(state))
    with pytest.raises(SigmaGraphError, match="has shape"):
        program.run({**state, wrong: state[wrong][:-1].copy()}, block, rows[:1], steer, 1)
    with pytest.raises(SigmaGraphError, match="has shape"):
        program.run(state, {**block, "x": block["x"][:, :-1].copy()}, rows[:1], steer, 1)
    program.run(state, block, rows[:1], steer, 1)
