"""Planning, writing and translating take time linear in the graph, and are not repeated for a known program."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend, runtime
from sigma_backend_numba.cache import lookup, units
from sigma_backend_numba.compiler import language
from sigma_backend_numba.compiler.translate import Module
from sigma_backend_numba.compiler.units import ProgramText
from sigma_backend_numba.emit import functions as functions_of_programs
from sigma_backend_numba.emit.equal_tasks import TaskDescription
from sigma_backend_numba.emit.program_text import LEG, Job, source
from sigma_backend_numba.execute.program import graph_job, step_job
from sigma_backend_numba.lower.canonical import STATE, Form, frame
from sigma_backend_numba.plan.fusion import Grouping
from sigma_backend_numba.plan.schedule import GroupSchedule
from sigma_backend_numpy import NumpyBackend
from sigma_kernel import functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.graph import Graph, Node, ops, symbol
from sigma_testing import TWICE, growth

_spec = util.spec_from_file_location("nets", Path(__file__).with_name("nets.py"))
assert _spec is not None
assert _spec.loader is not None
nets = util.module_from_spec(_spec)
_spec.loader.exec_module(nets)

KNOWN = {**vars(language), **vars(runtime), "inf": np.inf, "nan": np.nan}


def deep(layers: int, width: int = 6, batch: int = 8) -> Step:
    return nets.dense(*[width] * layers, 3, batch=batch, slots=True)


def wide(branches: int, width: int = 4, batch: int = 8) -> Step:
    """Return the step of a net with many parallel layers."""
    x, y = symbol((batch, 5)), symbol((batch,), "int32")
    parameters = {f"weights.{i}": symbol((5, width)) for i in range(branches)}
    parts: list[Node] = [f.tanh(x @ weights) for weights in parameters.values()]
    parameters["weights.out"] = symbol((branches * width, 3))
    loss = f.mean(ops.softmax_cross_entropy(f.concat(*parts, axis=1) @ parameters["weights.out"], y))
    return nets.finished(parameters, True, {"x": x, "y": y}, loss, {})


def summed(branches: int, width: int = 4, batch: int = 8) -> Step:
    """Return the step of a net that sums parallel layers, whose gradients are one value."""
    x, y = symbol((batch, 5)), symbol((batch,), "int32")
    parameters = {f"weights.{i}": symbol((5, width)) for i in range(branches)}
    parameters |= {f"bias.{i}": symbol((width,)) for i in range(branches)}
    value = x @ parameters["weights.0"] + parameters["bias.0"]
    for i in range(1, branches):
        value = value + (x @ parameters[f"weights.{i}"] + parameters[f"bias.{i}"])
    return nets.finished(parameters, True, {"x": x, "y": y}, f.mean(ops.softmax_cross_entropy(value, y)), {})


def normalised(layers: int, width: int = 6, batch: int = 8) -> Step:
    """Return the step of a net that reduces the same rows repeatedly."""
    x, y = symbol((batch, 5)), symbol((batch,), "int32")
    parameters = {"weights": symbol((5, width))}
    value = x @ parameters["weights"]
    for _ in range(layers):
        value = ops.softmax(value, axis=1)
    return nets.finished(parameters, False, {"x": x, "y": y}, f.mean(ops.softmax_cross_entropy(value, y)), {})


def looping(scans: int) -> Step:
    """Return the step of a net of consecutive scans."""
    x, y = symbol((8, 5)), symbol((8,), "int32")
    parameters = {f"weights.{i}": symbol((5, 5)) for i in range(scans)}
    value = x
    for weights in parameters.values():
        (value,), _ = f.scan(lambda carry, w: ((f.tanh(carry @ w),), ()), (value,), (), (weights,), length=3)
    return nets.finished(parameters, False, {"x": x, "y": y}, f.mean(ops.softmax_cross_entropy(value, y)), {})


@pytest.mark.long_cases("deep-60")
@pytest.mark.parametrize(("net", "size"), [(deep, 60), (wide, 40)])
def test_planning_and_writing_take_time_linear_in_the_graph(net: Callable[[int], Step], size: int) -> None:
    def planned(count: int) -> Callable[[], Any]:
        job = step_job(net(count))
        return lambda: source(job)

    assert growth(planned, size) < TWICE


def test_grouping_takes_time_linear_in_the_graph() -> None:
    def grouped(layers: int) -> Callable[[], Any]:
        job = step_job(deep(layers))
        form = Form(job.graph, job.frame)
        return lambda: Grouping(form)

    assert growth(grouped, 60) < TWICE


def test_ordering_and_placing_take_time_linear_in_the_graph() -> None:
    def scheduled(layers: int) -> Callable[[], Any]:
        job = step_job(deep(layers))
        form = Form(job.graph, job.frame)
        grouping = Grouping(form)
        return lambda: GroupSchedule(form, grouping)

    assert growth(scheduled, 60) < TWICE


@pytest.mark.parametrize(("net", "size"), [(deep, 60), (wide, 40)])
def test_looking_a_program_up_takes_time_linear_in_the_graph(net: Callable[[int], Step], size: int) -> None:
    def looked(count: int) -> Callable[[], Any]:
        step = net(count)
        return lambda: lookup.key(str(step_job(step)))

    assert growth(looked, size) < TWICE


def translate_units(program: ProgramText) -> None:
    waiting, seen = [program.burst], set[str]()
    while waiting:
        if (unit := waiting.pop()).symbol not in seen:
            seen.add(unit.symbol)
            module = Module(program)
            module.translate(unit)
            waiting += module.called


def test_translating_takes_time_linear_in_the_graph() -> None:
    def translated(layers: int) -> Callable[[], Any]:
        text = source(step_job(deep(layers))).text
        return lambda: translate_units(ProgramText(text, KNOWN))

    assert growth(translated, 30) < TWICE


@pytest.mark.parametrize("step", [deep(60), deep(20, width=128, batch=64), wide(90), wide(90, width=64, batch=64)])
def test_no_function_calls_more_tasks_than_the_limit(step: Step) -> None:
    made = source(step_job(step))
    calls = {name: sum(line.strip().startswith("task") for line in lines) for name, lines in functions(made.text)}
    run = Counter(re.findall(r"\bleg\d+(?=\()", "\n".join(line for _, lines in functions(made.text) for line in lines)))
    assert max(calls.values()) <= LEG < made.tasks == calls["burst"] + sum(run[leg] * calls[leg] for leg in run)


def functions(text: str) -> list[tuple[str, list[str]]]:
    """Return the names and the lines of the legs and of the burst."""
    parts = [part.strip().splitlines() for part in text.split("\n\n") if re.match(r"\s*def (leg|burst)", part)]
    return [(head.removeprefix("def ").partition("(")[0], lines) for head, *lines in parts]


@pytest.mark.long_cases("deep, one thread")
@pytest.mark.parametrize(
    "net",
    [
        pytest.param(deep, id="deep, one thread"),
        pytest.param(partial(wide, width=64, batch=64), id="wide, many threads"),
    ],
)
def test_the_number_of_compiled_functions_does_not_grow_with_equal_layers(net: Callable[[int], Step]) -> None:
    def compiled(count: int) -> int:
        return source(step_job(net(count))).text.count("def ")

    assert compiled(400) < compiled(200) + 3 < 30  # the first parts and the last may differ


def test_the_tasks_of_equal_layers_are_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    write = functions_of_programs._write_text
    monkeypatch.setattr(functions_of_programs, "_write_text", lambda *given: (written.append(given), write(*given)))

    def count(layers: int) -> int:
        written.clear()
        source(step_job(deep(layers)))
        return len(written)

    assert count(30) == count(60) < 20


@pytest.mark.parametrize(
    "step",
    [
        deep(20),
        deep(6, width=70, batch=64),
        wide(30),
        summed(20),
        normalised(20),
        nets.recurrent(),
        nets.convolutional(),
        nets.dense(40, 40, 40, dropout=0.3),
    ],
)
def test_tasks_that_take_over_a_text_are_those_that_would_be_written(
    monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    shared = source(step_job(step))
    monkeypatch.setattr(TaskDescription, "key", lambda self: None)
    alone = source(step_job(step))
    assert (shared.text, shared.places) == (alone.text, alone.places)
    assert (shared.arena_bytes, shared.scratch_bytes, shared.threads) == (
        alone.arena_bytes,
        alone.scratch_bytes,
        alone.threads,
    )


def test_tasks_that_overwrite_what_they_read_have_a_text_of_their_own() -> None:
    p, q, r = (symbol((50,)) for _ in range(3))
    given = [np.arange(50, dtype=np.float32) + start for start in (1, 2, 3)]
    doubled = NumbaBackend().lower(Graph((p, q, r), (p * 2, r * 2)), {0: 0, 1: 1})
    new = doubled(*(x.copy() for x in given))
    np.testing.assert_array_equal(new, [2 * given[0], 2 * given[2]])


@pytest.mark.long_cases("deep", "summed", "wide")
@pytest.mark.parametrize("net", [deep, wide, summed, normalised])
def test_the_size_of_functions_does_not_grow_with_the_graph(net: Callable[[int], Step]) -> None:
    def longest(count: int) -> int:
        return max(text.count("\n") for text in source(step_job(net(count))).text.split("\n\n"))

    assert longest(320) < 1.1 * longest(160)


def test_equal_parallel_layers_share_their_functions() -> None:
    def tasks(branches: int) -> int:
        return source(step_job(wide(branches))).text.count("def task")

    assert tasks(128) == tasks(64) < 20


def test_a_function_unpacks_only_the_pointers_that_it_uses() -> None:
    text = source(step_job(wide(90, width=64, batch=64))).text
    for function in text.split("\n\n"):
        own = re.findall(r"^ +((?:in|out)put\d+) = as_", function, re.MULTILINE)
        assert all(len(re.findall(rf"\b{name}\b", function)) > 1 for name in own)


def test_a_program_of_few_tasks_is_one_function() -> None:
    assert "leg0" not in source(step_job(deep(4))).text


# -- numbers -----------------------------------------------------------------------------------------------------------
@pytest.mark.long_cases("deep, many threads", "wide, many threads", "wide, one thread")
@pytest.mark.parametrize(
    "step",
    [
        pytest.param(deep(40), id="deep, one thread"),
        pytest.param(deep(30, width=128, batch=64), id="deep, many threads"),
        pytest.param(wide(90), id="wide, one thread"),
        pytest.param(wide(90, width=64, batch=64), id="wide, many threads"),
        pytest.param(summed(70), id="summed"),
    ],
)
def test_a_burst_split_into_legs_agrees_with_the_reference(step: Step) -> None:
    assert "leg1" in source(step_job(step)).text
    _computes_what_the_reference_does(step)


def test_programs_with_legs_call_their_own() -> None:
    programs, inputs = [], []
    for layers in (40, 44):
        step = deep(layers)
        state, block, rows = nets.start(NumbaBackend(), step)
        programs.append(NumbaBackend().compile(step, in_place=False))
        inputs.append((state, block, rows, {"rate": np.float32(0.01)}, 2))
    alone = [program.run(*given).ring["loss"].tolist() for program, given in zip(programs, inputs, strict=True)]
    assert alone[0] != alone[1]
    assert programs[0].run(*inputs[0]).ring["loss"].tolist() == alone[0]


def test_legs_are_units_that_no_other_program_finds(monkeypatch: pytest.MonkeyPatch, programs: Path) -> None:
    levels: dict[str, int] = {}
    emit = units.emit_code

    def note_level(assembly: str, kernels: Any, level: int) -> Any:
        (symbol_of_unit,) = re.findall(r'^define .*@"(\w+)"', assembly, re.MULTILINE)
        levels[symbol_of_unit] = level
        return emit(assembly, kernels, level)

    monkeypatch.setattr(units, "emit_code", note_level)
    NumbaBackend().compile(deep(40, width=5))
    legs = {name for name in levels if name.startswith("leg")}
    assert legs > {"leg0", "leg1"}
    assert {levels[name] for name in legs} == {units.CALLS}
    assert levels["burst"] > units.CALLS
    assert not [*programs.glob("leg*")]


def test_rows_reduced_in_several_nests_agree_with_the_reference() -> None:
    _computes_what_the_reference_does(normalised(30))


def test_slices_of_a_value_are_read_without_a_copy() -> None:
    x, draw = symbol((6, 9)), np.random.default_rng(0).normal(size=(6, 9)).astype("f4")
    places = (5, 2, 0, 6)  # before and after the first one that is read
    parts = [ops.slice(f.tanh(x), start=(0, k), stop=(6, k + 3), step=(1, 1)) for k in places]
    graph = Graph((x,), (parts[0] + parts[1] * parts[2] - parts[3], parts[1] @ f.swap_axes(parts[3], 0, 1)))
    found = NumbaBackend().lower(graph, {})(draw)
    a, b, c, d = (np.tanh(draw)[:, k : k + 3] for k in places)
    np.testing.assert_allclose(found[0], a + b * c - d, 1e-5, 1e-6)
    np.testing.assert_allclose(found[1], b @ d.T, 1e-5, 1e-6)


def test_many_values_are_joined_along_any_axis() -> None:
    draw = np.random.default_rng(0)
    for axis in (0, 1, 2):
        arrays = [draw.normal(size=[3 if k != axis else 1 + i % 4 for k in range(3)]) for i in range(40)]
        inputs = tuple(symbol(x.shape, "float64") for x in arrays)
        (found,) = NumbaBackend().lower(Graph(inputs, (f.concat(*inputs, axis=axis),)), {})(*arrays)
        np.testing.assert_array_equal(found, np.concatenate(arrays, axis))


def _computes_what_the_reference_does(step: Step) -> None:
    found = []
    for backend in (NumbaBackend(threads=2), NumpyBackend()):
        state, block, rows = nets.start(backend, step)
        done = backend.compile(step).run(state, block, rows, {"rate": np.linspace(0.01, 0.02, 6, dtype="f4")}, 6)
        found.append({name: backend.to_host(value) for name, value in done.state.items()} | done.ring)
    for name, value in found[1].items():
        np.testing.assert_allclose(found[0][name], value, rtol=2e-4, atol=2e-5, err_msg=name)


# -- known programs ----------------------------------------------------------------------------------------------------
def test_a_cached_program_is_neither_planned_nor_written_again(monkeypatch: pytest.MonkeyPatch, programs: Any) -> None:
    step = deep(3, width=7)
    first = NumbaBackend().compile(step)
    monkeypatch.setattr(lookup, "_loaded", {})  # as in another process
    monkeypatch.setattr(Job, "write_program", lambda self: pytest.fail("it is planned again"))
    again = NumbaBackend().compile(deep(3, width=7))
    assert again.machine.needs == first.machine.needs
    losses = []
    for program in (first, again):
        state, block, rows = nets.start(NumbaBackend(), step)
        losses.append(program.run(state, block, rows, {"rate": np.float32(0.01)}, 6).ring["loss"].tolist())
    assert losses[0] == losses[1]


def jobs() -> dict[str, Job]:
    """Return jobs that differ in one respect each."""
    a, b = symbol((4, 3), name="a"), symbol((4, 3), name="b")
    (c, d), (e, g) = (symbol((4, 3), "float64"), symbol((4, 3), "float64")), (symbol((3, 4)), symbol((3, 4)))
    step, rows = deep(2), symbol((4, 3))
    plain = Graph((a, b), (a - b * 2.0,))
    kinds = {"data": frame({STATE: 1, "data": 1}, [None]), "live": frame({STATE: 1, "steer": 1}, [None])}
    return {
        "plain": graph_job(plain, {}),
        "the other way": graph_job(Graph((b, a), (a - b * 2.0,)), {}),
        "another number": graph_job(Graph((a, b), (a - b * 2.5,)), {}),
        "a negative zero": graph_job(Graph((a, b), (a - b * -0.0,)), {}),
        "a zero": graph_job(Graph((a, b), (a - b * 0.0,)), {}),
        "another axis": graph_job(Graph((a,), (f.sum(a, axis=0),)), {}),
        "one axis": graph_job(Graph((a,), (f.sum(a, axis=1),)), {}),
        "another dtype": graph_job(Graph((c, d), (c - d * 2.0,)), {}),
        "another shape": graph_job(Graph((e, g), (e - g * 2.0,)), {}),
        "one input more": graph_job(Graph((a, b, rows), (a - b * 2.0,)), {}),
        "an output twice": graph_job(Graph((a, b), (plain.outputs[0], plain.outputs[0])), {}),
        "donated": graph_job(plain, {0: 0}),
        "donated otherwise": graph_job(plain, {0: 1}),
        "rough": graph_job(plain, {}, approximate=True),
        "as data": Job(plain, kinds["data"]),
        "as data in batches": Job(plain, kinds["data"], batch=4),
        "live": Job(plain, kinds["live"]),
        "watched": Job(plain, frame({STATE: 2}, [None]), watched=0),
        "a step": step_job(step),
        "a scan": step_job(looping(1)),
        "two scans": step_job(looping(2)),
        "convolutions": step_job(nets.convolutional()),
    }  # fmt: skip


def test_everything_that_determines_a_program_is_part_of_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {what: lookup.key(str(job)) for what, job in jobs().items()}
    assert len(set(names.values())) == len(names)
    assert {what: lookup.key(str(job)) for what, job in jobs().items()} == names
    others = []
    other: dict[str, tuple[Any, Any]] = {"makers": (lookup, "others"), "processor": (units, ("another", ""))}
    for name, (module, value) in other.items():
        with monkeypatch.context() as patch:
            patch.setattr(module, name, lambda value=value: value)
            others.append(lookup.key(str(jobs()["plain"])))
    assert len({*others, *names.values()}) == len(others) + len(names)


def test_names_of_inputs_do_not_affect_the_program() -> None:
    def named(name: str) -> str:
        x = symbol((4,), name=name)
        return str(graph_job(Graph((x,), (x + 1.0,)), {}))

    assert named("one") == named("another")


def test_numpy_numbers_are_valid_attributes() -> None:
    x = symbol((4, 3))
    texts = {str(graph_job(Graph((x,), (ops.reshape(x, shape=(side, 2)),)), {})) for side in (6, np.int64(6))}
    assert len(texts) == 1
    assert json.loads(texts.pop())


def test_the_cache_key_covers_the_whole_source_of_the_package() -> None:
    text = lookup.makers()
    for word in (
        "class GroupSchedule",
        "class Grouping",
        "class Form",
        "class Job",
        "def product",
        "def rewrite",
        "class Module",
    ):
        assert word in text
