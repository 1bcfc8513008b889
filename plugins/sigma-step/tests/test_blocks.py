"""Rows in blocks of few sizes, and the records of programs that stay bound to a state."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Backend, Parameter, Program, Step
from sigma_kernel.graph import Graph, symbol
from sigma_kernel.graph.node import Spec
from sigma_kernel.network.tracing import Shapes
from sigma_step import Model
from sigma_step.blocks import MOST_FORMS, RowBlock, RowRecords, cut_rows
from sigma_step.live import Live
from sigma_step.steps import Programs, Steps
from sigma_testing.null import NullBackend

ROW = np.arange(3.0)


def covered(count: int, batch: int) -> list[int]:
    """Return the rows of all blocks, those that are there twice only once."""
    step, program = Step(None, (), (), (), (), ()), None  # type: ignore[arg-type]
    blocks = [RowBlock(rows, step, program, None) for rows in cut_rows(count, batch)]  # type: ignore[arg-type]
    flat = [block.rows.reshape(-1) for block in blocks]
    return [int(i) for block, x in zip(blocks, flat, strict=True) for i in (block._leave_out(x) if block.twice else x)]


@pytest.mark.parametrize("batch", [1, 2, 7, 32, 100])
def test_every_row_is_computed_and_left_out_nowhere(batch: int) -> None:
    for count in range(1, 3 * batch + 3):
        assert covered(count, batch) == [*range(count)]


def test_any_number_of_rows_needs_few_sizes() -> None:
    def sizes(most: int, batch: int) -> set[int]:
        return {rows.shape[1] for count in range(1, most + 1) for rows in cut_rows(count, batch)}

    assert sizes(64, 100) == {1, 2, 4, 8, 16, 32, 64}
    assert sizes(1000, 100) == {1, 2, 4, 8, 16, 32, 64, 100}
    assert sizes(1000, 1) == {1}


def test_whole_batches_and_powers_of_two_are_one_block_each() -> None:
    assert [rows.shape for rows in cut_rows(1000, 100)] == [(10, 100)]
    assert [rows.shape for rows in cut_rows(1001, 100)] == [(10, 100), (1, 1)]
    for size in (1, 2, 4, 8, 16, 32, 64):
        assert [rows.shape for rows in cut_rows(size, 100)] == [(1, size)]


def test_few_rows_are_computed_twice() -> None:
    for count in range(1, 100):
        computed = sum(rows.size for rows in cut_rows(count, 100))
        assert computed < min(2 * count, count + 32)


# -- bound programs ----------------------------------------------------------------------------------------------------
class Binding:
    """A program that counts how often it is bound, and adds a parameter to rows."""

    def __init__(self, program: Program) -> None:
        self.program, self.bound = program, 0
        self.peak_bytes = 0

    def run(self, *how: Any) -> Any:
        raise AssertionError("a bound program is not run otherwise")

    def bind(self, state: Any, rows: np.ndarray, steer: Any) -> Any:
        self.bound += 1
        shift = weakref.ref(state["shift"])
        return lambda blocks: [blocks[0][rows.reshape(-1)] + shift()]


class Binder(NullBackend):
    """Compiles programs that can be bound."""

    def compile(self, step: Step, in_place: bool = True) -> Any:
        return Binding(super().compile(step, in_place))


def shifted(model: Model, batch: int) -> Step:
    shift, x = symbol((3,), "float64"), symbol((batch, 3), "float64")
    return Step(Graph((shift, x), (x + shift,)), ("shift",), ("x",), (), (), ("y",))


def prepared(backend: Backend) -> Programs:
    model = Model(None, Shapes({"shift": Parameter((3,), 0.0)}), {"x": Spec((3,), "float64")}, "float64", dict)  # type: ignore[arg-type]
    return Programs(model, backend)


def steps_of(programs: Programs, shift: np.ndarray) -> Steps:
    return Steps(programs, {"shift": shift}, Live({}, "float64"), Moment())


@pytest.mark.parametrize("backend", [NullBackend(), Binder()])
@pytest.mark.parametrize("count", [1, 4, 5, 7, 11])
def test_records_are_those_of_all_rows_in_order(backend: Backend, count: int) -> None:
    programs, rows = prepared(backend), RowRecords(4)
    x = np.arange(3.0 * count).reshape(count, 3)
    for shift in (ROW.copy(), 2 * ROW):
        steps = steps_of(programs, shift)
        for _ in range(2):
            found = rows.compute(programs, steps, shifted, {"x": x})["y"]
            np.testing.assert_array_equal(found, x + shift)
            assert not np.shares_memory(found, x)


def test_programs_stay_bound_until_an_array_is_another_one() -> None:
    programs, rows, x = prepared(Binder()), RowRecords(4), np.ones((2, 3))
    shift = ROW.copy()
    first = steps_of(programs, shift)
    for steps in (first, first, steps_of(programs, shift), steps_of(programs, shift)):
        rows.compute(programs, steps, shifted, {"x": x})
    program: Any = programs.get(shifted, 2)[1]
    assert program.bound == 1
    shift[...] = 5.0  # as training does
    assert (rows.compute(programs, first, shifted, {"x": x})["y"] == 6).all()
    assert program.bound == 1
    other = steps_of(programs, ROW.copy())
    np.testing.assert_array_equal(rows.compute(programs, other, shifted, {"x": x})["y"], x + ROW)
    assert program.bound == 2
    assert (rows.compute(programs, first, shifted, {"x": x})["y"] == 6).all()


def test_only_what_is_bound_to_the_same_steps_is_recalled() -> None:
    programs, rows, x = prepared(Binder()), RowRecords(4), np.ones((2, 3))
    first, second = (steps_of(programs, number * ROW) for number in (1, 2))
    assert rows.recall(first, shifted, x) is None
    rows.compute(programs, first, shifted, {"x": x})
    assert rows.recall(second, shifted, x) is rows.recall(first, shifted, x[:1]) is None
    assert rows.recall(first, shifted, x.astype("f4")) is None
    bound = rows.recall(first, shifted, x)
    assert bound is not None
    np.testing.assert_array_equal(bound.compute(first, {"x": x})["y"], x + ROW)


def test_programs_of_another_tier_are_bound_anew() -> None:
    rows, steps = RowRecords(4), steps_of(prepared(Binder()), ROW.copy())
    other = prepared(Binder())
    for programs in (steps.programs, other):
        rows.compute(programs, steps_of(programs, steps.arrays["shift"]), shifted, {"x": np.ones((2, 3))})
    assert [programs.get(shifted, 2)[1].bound for programs in (steps.programs, other)] == [1, 1]  # type: ignore[attr-defined]


def test_arrays_are_not_kept_for_what_is_bound_to_them() -> None:
    programs, rows, shift = prepared(Binder()), RowRecords(4), ROW.copy()
    rows.compute(programs, steps_of(programs, shift), shifted, {"x": np.ones((2, 3))})
    gone = weakref.ref(shift)
    del shift
    gc.collect()
    assert gone() is None


def test_few_forms_are_kept() -> None:
    programs, rows = prepared(Binder()), RowRecords(1)
    steps = steps_of(programs, ROW.copy())
    for count in range(1, 3 * MOST_FORMS):
        rows.compute(programs, steps, shifted, {"x": np.ones((count, 3))})
        assert len(rows._bound) <= MOST_FORMS
