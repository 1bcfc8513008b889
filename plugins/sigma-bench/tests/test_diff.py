"""Faults that are planted in a backend are found, by op, layer and step; right backends agree."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from attrs import evolve, field, frozen

from sigma_backend_numpy import NumpyBackend
from sigma_bench.differ.command import diff, table as rows_of
from sigma_bench.differ.isolated import chunks, units
from sigma_bench.differ.lockstep import WHOLE, Compared, Deviation, Lockstep, distance
from sigma_kernel import functions as f
from sigma_kernel.contracts import Array, Backend, Program, Step
from sigma_kernel.graph import MEANINGS, Graph, Namespace, interpret, numpy_namespace, symbol
from sigma_run.config import load
from sigma_run.launcher import main
from sigma_testing import VerbSuite

ROWS = 60
CONFIGURATION = """
format = 1

[run]
name = "planted"
seed = 4
backend = "numpy"

[data]
dataset = "csv"
path = {path!r}
target = "kind"
batch_size = 10
split = {{ training = 1.0 }}
iterator = "sequential"

[network]
architecture = '''
input(3) + dense(7, activation="tanh") + dropout(0.3) + dense(5, activation="relu") + output(2)
+ softmax_cross_entropy()
'''

[trainer]
optimiser = {{ type = "adagrad", learning_rate = 0.1 }}
"""
Wrong = Mapping[str, Callable[..., Any]]


@frozen
class Planted(Backend):
    """The meanings of the ops, some of them wrong; ``whole`` alters the results of programs alone."""

    wrong: Wrong = field(factory=dict)
    whole: float = 1.0

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Array]]:
        ns = evolve(numpy_namespace(), own={**numpy_namespace().own, **self.wrong})
        run = interpret(graph, ns)
        return lambda *arrays: [np.array(x) for x in run(*arrays)]

    def compile(self, step: Step, in_place: bool = True) -> Program:
        *most, loss = step.graph.outputs
        graph = Graph(step.graph.inputs, (most[0] * self.whole, *most[1:], loss)) if self.whole != 1 else step.graph
        return super().compile(evolve(step, graph=graph), in_place)

    def to_device(self, host: np.ndarray) -> Array:
        return np.array(host)

    def to_host(self, array: Any) -> np.ndarray:
        return np.array(array)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a configuration with a table of which row 35, in the fourth batch, holds a large number."""
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(ROWS, 3))
    rows[35, 1] = 1000.0
    lines = ["a,b,c,kind", *(f"{a},{b},{c},{'xy'[i % 2]}" for i, (a, b, c) in enumerate(rows))]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    path = tmp_path / "planted.toml"
    path.write_text(CONFIGURATION.format(path=str(tmp_path / "rows.csv")))
    return path


def slightly(op: str, when: Callable[..., bool] = lambda *operands: True) -> Wrong:
    """Return the meaning of an op, one part in a thousand too large where the condition holds."""

    def wrong(ns: Namespace, *operands: Any, **attrs: Any) -> Any:
        right = MEANINGS[op](ns, *operands, **attrs)
        return right * right.dtype.type(1.001) if when(*operands) else right

    return {op: wrong}


def flipped(ns: Namespace, *key: Any, **how: Any) -> Any:
    """Return random bits of which one is wrong in the third iteration."""
    right = np.array(MEANINGS["random_bits"](ns, *key, **how))
    if int(key[1]) == 2 and right.ndim:
        right.flat[3] ^= np.uint32(1 << 31)
    return right


def found(path: Path, backend: Backend, steps: int = 6) -> tuple[list[Compared], Deviation | None]:
    every = []
    for one in Lockstep(load(path), {"planted": backend}, 32.0).steps(steps):
        every.append(one)
        if one.first_deviation is not None:
            break
    return every, every[-1].first_deviation


FAULTS: dict[str, tuple[Wrong, str, str, int]] = {
    "an op that is always wrong": (slightly("tanh"), "tanh", "1-dense", 1),
    "an op that is wrong for large numbers": (
        slightly("matmul", lambda x, y: np.abs(x).max() > 100), "matmul", "1-dense", 4,
    ),
    "an op that is wrong for one shape, that of a gradient": (
        slightly("matmul", lambda x, y: (x.shape, y.shape) == ((7, 10), (10, 5))), "matmul", "gradient of 3-dense", 1,
    ),
    "an op of the update": (slightly("sqrt"), "sqrt", "optimiser", 1),
    "random bits of one step": ({"random_bits": flipped}, "random_bits", "gradient of 2-dropout", 3),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_with_its_op_its_layer_and_its_step(fault: str, table: Path) -> None:
    wrong, op, layer, step = FAULTS[fault]
    _, first = found(table, Planted(wrong))
    assert first is not None
    assert (first.op, first.layer, first.step, first.backend) == (op, layer, step, "planted")


def test_a_fault_of_the_whole_step_is_found_if_every_op_alone_is_right(table: Path) -> None:
    (one,), first = found(table, Planted(whole=1.001))
    assert first is not None
    assert all(each.share <= 1 for each in one.ops)
    assert (first.op, first.step) == (WHOLE, 1)
    assert first.layer.startswith("network.layers.1-dense.")
    assert "so the fault is in how the backend computes the whole step" in first.text


def test_a_fault_that_is_smaller_than_the_tolerance_passes(table: Path) -> None:
    backend = Planted(slightly("tanh"))
    (one,) = Lockstep(load(table), {"planted": backend}, 1e5).steps(1)
    assert one.first_deviation is None
    worst = max(one.ops, key=lambda each: each.share)
    assert (worst.op, round(worst.relative, 3)) == ("tanh", 0.001)


@pytest.mark.parametrize("precision", ["float32", "float64", "mixed"])
def test_the_right_meanings_and_the_numpy_backend_agree(precision: str, table: Path) -> None:
    backends: dict[str, str | Backend] = {"meanings": Planted(), "numpy": NumpyBackend()}
    for one in Lockstep(load(table, [f"run.precision={precision}"]), backends, 32.0).steps(6):
        assert one.first_deviation is None
        assert all(each.share == 0 for each in (*one.ops, *one.results) if each.backend == "meanings")
        assert one.apart["meanings"] == 0
        assert one.rounding > 0
        assert {each.backend for each in one.results} == {*backends}


def test_runs_in_shards_are_compared_shard_by_shard(table: Path) -> None:
    shards = "run.operator={ type = 'local', shards = 2, workers = 1 }"
    (one,) = Lockstep(load(table, [shards]), {"planted": Planted()}, 32.0).steps(1)
    assert one.first_deviation is None
    assert {each.order[0] for each in one.ops} == {0, 1, 2}  # two shards, and the update
    wrong = slightly("matmul", lambda x, y: x.shape == (5, 7))
    (one,) = Lockstep(load(table, [shards]), {"planted": Planted(wrong)}, 32.0).steps(1)
    assert one.first_deviation is not None
    assert (one.first_deviation.op, one.first_deviation.layer) == ("matmul", "3-dense")


def test_every_op_is_computed_once_and_loops_with_the_parts_that_are_read() -> None:
    x, y = symbol((3, 4)), symbol((3, 4))
    total, row = f.tanh(x) + f.tanh(y), f.exp(x)
    graph = Graph((x, y), (total, row, total * 2.0))
    assert [unit.nodes[0].op for unit in units(graph)] == ["tanh", "tanh", "add", "exp", "mul"]
    turns = [turn for chunk in chunks(graph) for turn in chunk.turns]
    assert sorted(unit.index for turn in turns for unit in turn) == sorted(unit.index for unit in units(graph))
    assert sorted(len(chunk.turns) for chunk in chunks(graph)) == [1, 2]  # both tanh share a function
    assert all(len(chunk.graph.inputs) == sum(len(unit.operands) for unit in chunk.turns[0]) for chunk in chunks(graph))


# -- the command -------------------------------------------------------------------------------------------------------
class TestDiff(VerbSuite):
    heavy = ("matplotlib", "torch", "jax")

    @pytest.fixture(autouse=True)
    def _file(self, table: Path) -> None:
        self.file = table

    def make(self) -> click.Command:
        return diff

    def arguments(self) -> Sequence[str]:
        return [str(self.file), "--backends", "numpy", "--steps", "1"]

    def mistakes(self) -> Sequence[Sequence[str]]:
        return [["no-such-recipe"], [str(self.file), "--steps", "0"], [str(self.file), "--tolerance", "0"]]


def test_the_drift_of_a_run_is_infinite_where_it_alone_is_not_finite() -> None:
    wanted = {"first": np.array([1.0, 4.0]), "second": np.array([1.0, np.inf, np.nan])}
    assert distance({"first": np.array([1.0, 5.0]), "second": wanted["second"]}, wanted) == 0.25
    for bad in (np.nan, np.inf):
        assert distance({"first": np.array([1.0, 5.0]), "second": np.array([bad, np.inf, np.nan])}, wanted) == np.inf


def test_a_row_fits_80_columns_whatever_its_names_and_numbers() -> None:
    layer = "gradient of network.layers.12-softmax_cross_entropy"
    one = Deviation("a-backend-of-mine", 1000, "softmax_cross_entropy", layer, 1e-100, 1e-100, 1e-100, "", (0,))
    lines = [*rows_of([Compared(1000, [one], [], {}, 0.0)], 1)]
    assert len(lines) == 2
    assert max(map(len, lines)) == 80


def test_the_tables_fit_80_columns_and_end_with_a_sentence(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(table), "--backends", "numpy", "--steps", "2", "--worst", "3"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["step", "rounding", "numpy"]
    assert [line.split()[0] for line in lines[1:3]] == ["1", "2"]
    assert lines[4].split() == ["backend", "op", "layer", "step", "absolute", "relative", "of", "allowed"]
    assert len(lines) == 8
    assert err == "numpy: every op, and every step as a whole, agrees with the reference in 2 steps\n"


@pytest.mark.usefixtures("naps")
def test_deviations_that_are_infinite_are_null_in_the_document(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from acme_naps.naps import Naps  # installed by the fixture

    planted = Planted({"sqrt": lambda ns, x: x * np.float32("nan")})
    monkeypatch.setattr(Naps, "lower", lambda self, graph, donate: planted.lower(graph, donate))
    monkeypatch.setattr(Naps, "compile", lambda self, step, in_place=True: planted.compile(step, in_place))
    assert main(["diff", str(table), "--backends", "naps", "--json"]) == 1
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert told["first"]["op"] == "sqrt"
    assert told["first"]["absolute"] is told["states"][0]["naps"] is None


@pytest.mark.usefixtures("naps")
def test_the_command_ends_with_code_1_and_names_what_is_wrong(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from acme_naps.naps import Naps  # installed by the fixture

    planted = Planted(slightly("tanh"))
    monkeypatch.setattr(Naps, "lower", lambda self, graph, donate: planted.lower(graph, donate))
    monkeypatch.setattr(Naps, "compile", lambda self, step, in_place=True: planted.compile(step, in_place))
    assert main(["diff", str(table), "--backends", "numpy,naps", "--json"]) == 1
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert told["agrees"] is False
    assert {name: told["first"][name] for name in ("backend", "op", "layer", "step")} == {
        "backend": "naps", "op": "tanh", "layer": "1-dense", "step": 1,
    }  # fmt: skip
    assert told["first"]["relative"] == pytest.approx(0.001, rel=0.5)
    assert [set(one) for one in told["states"]] == [{"step", "rounding", "numpy", "naps"}]
    assert err.startswith("step 1, 1-dense: naps differs from the reference at tanh: tanh(float32[10, 7]), ")
    assert "of operands that agree: its value[" in err


def test_several_trainers_are_refused_by_name(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = table.read_text().partition("[data]")
    body = f"[data]{text[2]}".replace("[", "[trainers.left.", 1)
    for part in ("network", "trainer"):
        body = body.replace(f"[{part}]", "[trainers.left]" if part == "trainer" else f"[trainers.left.{part}]")
    both = f"{text[0]}{body}\n{body.replace('left', 'right')}"
    table.write_text(both)
    assert main(["diff", str(table), "--backends", "numpy"]) == 2
    assert "diff: takes a single trainer (got left, right). Keep one of them." in capsys.readouterr().err
