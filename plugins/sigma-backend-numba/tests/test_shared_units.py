"""Programs for other numbers of rows share units: what follows from the number of rows is an argument."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.cache import files, lookup
from sigma_backend_numba.compiler.machine_code import translate_unit
from sigma_backend_numba.compiler.units import ProgramText
from sigma_backend_numba.emit.nest_values import follows_from
from sigma_backend_numba.emit.program_text import source
from sigma_backend_numba.execute.program import step_job
from sigma_kernel import functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.graph import interpret, numpy_namespace, ops, symbol

_spec = util.spec_from_file_location("nets", Path(__file__).with_name("nets.py"))
assert _spec is not None
assert _spec.loader is not None
nets: Any = util.module_from_spec(_spec)
_spec.loader.exec_module(nets)


def normed(batch: int) -> Step:
    """Return the step of a layer over normalised rows: means and unbiased variances over the batch."""
    x, y = symbol((batch, 24)), symbol((batch,), "int32")
    weights, scale = symbol((24, 40)), symbol((40,))
    value = x @ weights
    centred = value - f.mean(value, 0, keepdims=True)
    variance = f.mean(centred * centred, 0, keepdims=True) * (batch / (batch - 1))
    value = centred / f.sqrt(variance + 1e-3) * scale
    loss = f.mean(ops.softmax_cross_entropy(value, y))
    return nets.finished({"weights": weights, "scale": scale}, False, {"x": x, "y": y}, loss, {})  # type: ignore[no-any-return]


def units_of(step: Step) -> set[str]:
    """Return the symbols of a program's units; nothing is compiled."""
    text = source(step_job(step)).text
    program, found = ProgramText(text, lookup._names(text)), set[str]()
    waiting = [program.burst]
    while waiting:
        _, called = translate_unit(program, waiting.pop())
        waiting += [unit for unit in called if unit.symbol not in found]
        found |= {unit.symbol for unit in called}
    return found


@pytest.mark.parametrize(("net", "most"), [(nets.convolutional, 3), (normed, 2), (nets.recurrent, 19)])
@pytest.mark.parametrize("rows", [(50, 38), (64, 40)])
def test_a_step_of_other_rows_shares_units(net: Callable[..., Step], most: int, rows: tuple[int, int]) -> None:
    first, second = (units_of(net(batch=batch)) for batch in rows)
    assert len(second - first) <= most < len(second)


@pytest.mark.long_cases("convolutional", "recurrent")
@pytest.mark.parametrize("net", [nets.convolutional, normed, nets.recurrent])
def test_shared_units_give_the_same_bits_as_fresh_ones(
    net: Callable[..., Step], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "both").mkdir(mode=0o700)
    (tmp_path / "fresh").mkdir(mode=0o700)
    results = []
    for folder, batches in (("both", (50, 38)), ("fresh", (38,))):
        monkeypatch.setenv(files.VARIABLE, str(tmp_path / folder))
        monkeypatch.setattr(lookup, "_loaded", {})
        results += [nets.bits(nets.train(NumbaBackend(), net(batch=batch))) for batch in batches]
    assert results[1] == results[2]


@pytest.mark.parametrize(
    ("value", "rows", "follows"),
    [
        (50.0, 50, True), (3200.0, 50, True), (1 / 50, 50, True), (float(np.float32(1 / 50)), 50, True),
        (3200 / 3199, 50, True), (49.0, 50, False), (1e-5, 50, False), (1e-3, 50, False), (0.5, 50, False),
        (0.0, 50, False), (1.0, 50, False), (-50.0, 50, False), (math.inf, 50, False), (math.nan, 50, False),
        (2.0, 1, False), (2.0, 0, False),
    ],
)  # fmt: skip
def test_constants_that_follow_from_the_number_of_rows_are_recognised(value: float, rows: int, follows: bool) -> None:
    assert follows_from(value, rows) == follows


def by_batch(batch: int, factor: float) -> Step:
    """Return the step of a layer whose width is 50, and whose loss has a factor."""
    x, y, weights = symbol((batch, 24)), symbol((batch,), "int32"), symbol((24, 50))
    loss = f.mean(ops.softmax_cross_entropy(f.tanh(x @ weights) * factor, y))
    return nets.finished({"weights": weights}, False, {"x": x, "y": y}, loss, {})  # type: ignore[no-any-return]


@pytest.mark.parametrize("factor", [50.0, 100.0, 50 / 49])
@pytest.mark.parametrize("batch", [50, 38])
def test_a_constant_that_equals_the_number_of_rows_by_accident_stays_what_it_is(batch: int, factor: float) -> None:
    step = by_batch(batch, factor)
    state, block, rows = nets.start(NumbaBackend(), step, 1)
    burst = NumbaBackend().compile(step).run(dict(state), block, rows, {"rate": np.float32(0.05)}, 1)
    given = [np.array(x) for x in nets.start(NumbaBackend(), step, 1)[0].values()]
    given += [block["x"][rows[0]], block["y"][rows[0]], np.array(0.05, np.float32)]
    weights, loss = interpret(step.graph, numpy_namespace())(*given)
    np.testing.assert_allclose(burst.state["weights"], weights, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(burst.ring["loss"], [loss], rtol=1e-5)


def test_small_spaces_are_compiled_for_their_rows() -> None:
    """LLVM writes out their loops: a step of ``bench-iris`` takes a tenth less."""
    small, large = (source(step_job(nets.dense(4, 12, 3, batch=batch))).text for batch in (10, 100))
    bound = re.compile(r"for v0 in range\(0, number\d++\)|for d in range\(0, 0 \+ \(number\d++")
    assert not bound.search(small)
    assert bound.search(large)


def test_a_second_network_of_other_sizes_shares_units() -> None:
    first, second = (units_of(nets.dense(64, width, 10, batch=50)) for width in (18, 17))
    assert len(second - first) <= 6 < len(second)


def test_short_rows_of_large_spaces_are_computed_in_vectors_of_a_row() -> None:
    def rows(*sides: int, batch: int) -> list[str]:
        return re.findall(r"for v1 in row\(0, (\d+)\)", source(step_job(nets.dense(*sides, batch=batch))).text)

    assert "17" in rows(64, 17, 10, batch=50)
    assert not rows(4, 12, 3, batch=10)  # small: LLVM may write it out
    assert not rows(64, 128, 80, batch=50)  # long: LLVM writes none out


def test_loops_that_reduce_a_row_keep_the_order_that_llvm_gives_them() -> None:
    text = source(step_job(nets.dense(64, 40, 12, batch=50))).text
    bodies = re.findall(r"( +)for v\d in row\(.*\):\n((?:\1    .*\n)+)", text)
    assert bodies
    assert not any("radd(" in body or "larger(" in body for _, body in bodies)
    assert re.search(r"for v1 in range\(0, 12\):\n(?: +.*\n)*? +\w+ = radd", text)
