"""Bind a program to a state and to the rows of a block: a call passes data, and gets records.

What does not change between calls is checked and looked up once.  Little data is copied to and from memory whose
addresses are in the table already: to look up the address of an array takes longer.  As nothing is written to the
state, several threads run different steps, and wait for each other only in the end.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from itertools import chain, pairwise
from math import prod
from time import perf_counter

import numpy as np
from attrs import define, field, frozen

from sigma_backend_numba.compiler.processor import cores
from sigma_backend_numba.execute.alignment import copy, empty
from sigma_backend_numba.execute.machine import Machine
from sigma_backend_numba.execute.thread_count import CallThreads
from sigma_backend_numba.execute.thread_pool import POOL
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import BYTES

SMALL = 1 << 14  # bytes that are copied


@frozen
class TableEntry:
    """An array of a call: its index in the table, its shape and dtype, and the bytes of a step, 0 of data."""

    index: int
    shape: tuple[int, ...]
    dtype: str
    step: int = 0

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return prod(self.shape) * BYTES[self.dtype]


@frozen(eq=False)
class StepRange:
    """Consecutive steps of a burst: the first one, how many, and their table."""

    first: int
    n: int
    table: array[int]


@frozen(eq=False)
class CallFrame:
    """The tables of one call at a time, and memory for data and records if these are copied."""

    parts: Sequence[StepRange]
    data: Sequence[np.ndarray] = ()
    records: Sequence[np.ndarray] = ()

    def enter(self, place: TableEntry, array: np.ndarray) -> np.ndarray:
        """Enter the address of an array, and return it."""
        address = array.ctypes.data
        for part in self.parts:
            part.table[place.index] = address + part.first * place.step
        return array


@define(eq=False)
class BoundBurst:
    """A burst of a program that only reads, for data of one form; safe to call from several threads at once.

    ``state`` holds the addresses of the state, whose arrays the caller keeps alive; ``order`` has shape ``(n, batch)``;
    ``live`` holds the live values, one number each.  Records have a row for each row of a batch.
    """

    machine: Machine
    order: np.ndarray
    state: Sequence[int]
    live: Sequence[np.ndarray]
    rows: int = field(init=False)  # of a block
    _data: Sequence[TableEntry] = field(init=False)
    _records: Sequence[TableEntry] = field(init=False)
    _frames: deque[CallFrame] = field(factory=deque, init=False)
    _most: int = field(init=False)  # threads; a step that is not worth two of them is over soon
    _threads: CallThreads = field(factory=CallThreads, init=False)

    @rows.default
    def _(self) -> int:
        return int(self.order.max()) + 1

    @_most.default
    def _(self) -> int:
        return min(self.machine.needs["threads"], self.machine.threads or cores())

    @_data.default
    def _(self) -> Sequence[TableEntry]:
        inputs, before = self.machine.inputs, len(self.state)
        return [
            TableEntry(i, (self.rows, *node.shape[1:]), node.dtype)
            for i, node in enumerate(inputs[before : len(inputs) - len(self.live)], start=before)
        ]

    @_records.default
    def _(self) -> Sequence[TableEntry]:
        graph = self.machine.graph
        return [
            TableEntry(i, (self.order.size, *x.shape[1:]), x.dtype, prod(x.shape) * BYTES[x.dtype])
            for i, x in enumerate(graph.outputs, start=len(graph.inputs))
        ]

    def __call__(self, blocks: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the records of all rows for blocks of data; raise SigmaGraphError for another shape."""
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = self._prepare_frame()
        results = self._run_copied(frame, blocks) if frame.data else self._run_given(frame, blocks)
        self._frames.append(frame)
        return results

    def _run_copied(self, frame: CallFrame, blocks: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run a burst on the memory of a frame."""
        for own, block in zip(frame.data, blocks, strict=True):
            if block.shape != own.shape:
                raise _other_shape(block, own)
            own[...] = block
        self._run(frame.parts)
        return [record.copy() for record in frame.records]

    def _run_given(self, frame: CallFrame, blocks: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run a burst on data where they are, unless they have to be copied, and on new memory for records."""
        given = []
        for place, block in zip(self._data, blocks, strict=True):
            if block.shape != place.shape:
                raise _other_shape(block, place)
            values = np.asarray(block, place.dtype)
            fits = values.flags.c_contiguous and values.flags.aligned
            given.append(frame.enter(place, values if fits else copy(values)))
        results = [frame.enter(place, empty(place.shape, place.dtype)) for place in self._records]
        self._run(frame.parts)
        del given  # until here, the tables name their memory
        return results

    def _run(self, parts: Sequence[StepRange]) -> None:
        """Run all parts: on one thread if that takes less time."""
        choice = self._threads
        if self._most == 1 or choice.is_short:
            self._run_alone(parts)
            return
        several, start = choice.wants_several(), perf_counter()
        if not several:
            self._run_alone(parts)
        elif len(parts) == 1:
            self.machine.run_table(parts[0].table, parts[0].n)
        else:
            several = self._run_apart(parts)
        choice.note(several, perf_counter() - start)

    def _run_alone(self, parts: Sequence[StepRange]) -> None:
        for part in parts:
            self.machine.run_table(part.table, part.n, most=1)

    def _run_apart(self, parts: Sequence[StepRange]) -> bool:
        """Run parts on threads of the pool; return whether several were free."""
        used, failures = 1, list[BaseException]()

        def run(number: int, count: int) -> int:
            nonlocal used
            used = count
            try:
                self._run_alone(parts[number::count])
            except BaseException as error:  # raised in the thread that waits
                failures.append(error)
            return 0

        POOL.run(run, len(parts))
        if failures:
            raise failures[0]
        return used > 1

    def _prepare_frame(self) -> CallFrame:
        n = len(self.order)
        count = min(self._most, n)
        ends = [n * i // count for i in range(count + 1)]
        parts = [StepRange(first, last - first, self._table(first)) for first, last in pairwise(ends)]
        if sum(place.size for place in (*self._data, *self._records)) > SMALL:
            return CallFrame(parts)
        memory = [[empty(place.shape, place.dtype) for place in places] for places in (self._data, self._records)]
        frame = CallFrame(parts, *memory)
        for place, own in zip((*self._data, *self._records), chain(*memory), strict=True):
            frame.enter(place, own)
        return frame

    def _table(self, first: int) -> array[int]:
        """Return the table of the steps from one on."""
        live = [x.ctypes.data for x in self.live]
        inputs = [*self.state, *[0] * len(self._data), *live]
        order = self.order[first:].ctypes.data
        return self.machine.table(inputs, [0] * len(self._records), [0] * len(inputs), order, self.rows)


def _other_shape(block: np.ndarray, expected: np.ndarray | TableEntry) -> SigmaGraphError:
    return SigmaGraphError(f"numba: data have shape {block.shape}. The program was bound to {expected.shape}.")
