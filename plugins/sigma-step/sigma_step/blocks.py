"""Compute records of many rows outside training, such as predictions: in blocks of few sizes, by bound programs.

A program is compiled for a number of rows.  So that any number of them needs few programs, rows that are no whole batch
are computed in blocks of a power of two, of which the last two may overlap.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_kernel.contracts import BindingProgram, Program, Step
from sigma_kernel.contracts.compute import Bound
from sigma_step.steps import Programs, Steps

CALL = 8  # rows that take about as long as the rest of a block
MOST_FORMS = 64  # forms of blocks whose bound programs are kept

Host = dict[str, np.ndarray]
Kind = Callable[..., Step]


# -- blocks ------------------------------------------------------------------------------------------------------------
def cut_rows(count: int, batch: int) -> list[np.ndarray]:
    """Return the numbers of rows in blocks, ``(blocks, size)`` for each size: whole batches, then what is left."""
    full = count - count % batch
    cuts = [np.arange(full).reshape(-1, batch), full + _cut_rest(count - full)]
    return [rows.astype(np.int32) for rows in cuts if rows.size]


def _cut_rest(count: int) -> np.ndarray:
    """Return rows in blocks of the power of two that takes the least time; the last one ends at the last row."""
    if not count:
        return np.zeros((0, 1), np.int64)
    sizes = [1 << bits for bits in range(count.bit_length())]
    size = min(sizes, key=lambda size: -(-count // size) * (size + CALL))
    starts = np.minimum(np.arange(0, count, size), count - size)
    return starts[:, None] + np.arange(size)


# -- records -----------------------------------------------------------------------------------------------------------
@frozen(eq=False)
class RowBlock:
    """Blocks of one size, ``(n, size)``, with their step and program, bound to a state if that is possible."""

    rows: np.ndarray
    step: Step
    program: Program
    call: Bound | None
    twice: int = field(init=False)  # rows of the last block that are in the one before

    @twice.default
    def _(self) -> int:
        return int(self.rows.size - (self.rows[-1, -1] + 1 - self.rows[0, 0]))

    @classmethod
    def bind(cls, rows: np.ndarray, step: Step, program: Program, steps: Steps) -> RowBlock:
        """Return blocks bound to the arrays of steps, if the program can be."""
        if not isinstance(program, BindingProgram):
            return cls(rows, step, program, None)
        return cls(rows, step, program, program.bind(steps.arrays, rows - rows[0, 0], steps.steer(step)))

    @property
    def span(self) -> slice:
        """Return the rows of all blocks."""
        return slice(int(self.rows[0, 0]), int(self.rows[-1, -1]) + 1)

    def compute(self, steps: Steps, data: Host) -> Sequence[np.ndarray]:
        """Return each record of all rows; ``data`` are those of this size if it is bound, else all, on the device."""
        if self.call is not None:
            records = self.call([data[name] for name in self.step.data])
        else:
            ring = self.program.run(steps.arrays, data, self.rows, steps.steer(self.step), len(self.rows)).ring
            records = [np.array(ring[name]).reshape(self.rows.size, *ring[name].shape[2:]) for name in self.step.ring]
        return [self._leave_out(x) for x in records] if self.twice else records

    def _leave_out(self, records: np.ndarray) -> np.ndarray:
        """Return records without those that are there twice."""
        size = self.rows.shape[1]
        return np.concatenate([records[:-size], records[self.twice - size :]])


@define(eq=False)
class BoundBlocks:
    """The blocks of some number of rows, bound to arrays that are only looked at while ``steps`` have them."""

    programs: Programs
    names: Sequence[str]  # of the records
    blocks: Sequence[RowBlock]
    bound: bool
    arrays: Mapping[str, weakref.ref[Any]]  # those of the state that are read
    steps: weakref.ref[Steps]  # the last ones that were found to have these arrays

    @classmethod
    def bind(cls, programs: Programs, steps: Steps, kind: Kind, rows: Sequence[np.ndarray]) -> BoundBlocks:
        """Bind the programs of a kind of step, compiled on first use, to the arrays of steps."""
        blocks = [RowBlock.bind(each, *programs.get(kind, each.shape[1]), steps) for each in rows]
        if not (bound := all(block.call is not None for block in blocks)):
            blocks = [evolve(block, call=None) for block in blocks]
        arrays = {name: weakref.ref(steps.arrays[name]) for name in blocks[0].step.state} if bound else {}
        return cls(programs, blocks[0].step.ring, blocks, bound, arrays, weakref.ref(steps))

    def is_bound_to(self, programs: Programs, steps: Steps) -> bool:
        """Return whether these are the programs and arrays of other steps; live values vary."""
        live = any(block.step.steer for block in self.blocks)
        same = all(array() is steps.arrays[name] for name, array in self.arrays.items())
        if live or not same or programs is not self.programs:
            return False
        self.steps = weakref.ref(steps)
        return True

    def compute(self, steps: Steps, data: Host) -> Host:
        """Return the records of all rows by name."""
        if not self.bound:
            data = {name: self.programs.backend.share(values) for name, values in data.items()}
        if len(self.blocks) == 1:
            columns = self.blocks[0].compute(steps, data)
        else:
            parts = [block.compute(steps, self._cut(data, block)) for block in self.blocks]
            columns = [*map(np.concatenate, zip(*parts, strict=True))]
        return dict(zip(self.names, columns, strict=True))

    def _cut(self, data: Host, block: RowBlock) -> Host:
        return {name: values[block.span] for name, values in data.items()} if self.bound else data


@define(eq=False)
class RowRecords:
    """Compute what a kind of step records of rows, with programs that stay bound from one call to the next."""

    batch: int  # rows of a block, at most
    _bound: dict[tuple[Any, ...], BoundBlocks] = field(factory=dict, init=False)  # by kind and form of the rows

    def recall(self, steps: Steps, kind: Kind, values: np.ndarray) -> BoundBlocks | None:
        """Return what computed the records of such rows last, of the only section, if the steps are the same."""
        bound = self._bound.get((kind, (values.shape, values.dtype)))
        return bound if bound is not None and bound.steps() is steps else None

    def compute(self, programs: Programs, steps: Steps, kind: Kind, data: Host) -> Host:
        """Return the records of rows, at least one, by name.  ``data`` have the same sections at each call."""
        form = kind, *[(values.shape, values.dtype) for values in data.values()]
        bound = self._bound.get(form)
        if bound is None or not (bound.steps() is steps or bound.is_bound_to(programs, steps)):
            if len(self._bound) >= MOST_FORMS:
                self._bound.clear()
            rows = cut_rows(len(next(iter(data.values()))), self.batch)
            self._bound[form] = bound = BoundBlocks.bind(programs, steps, kind, rows)
        return bound.compute(steps, data)
