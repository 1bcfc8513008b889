"""A compiled burst with its memory: call it with a table of addresses, on a useful number of threads."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from time import perf_counter

import numpy as np
from attrs import define, field

from sigma_backend_numba.compiler.machine_code import Burst as Call
from sigma_backend_numba.compiler.processor import cores
from sigma_backend_numba.emit.program_text import NO_ROW, SPECIAL, Needs
from sigma_backend_numba.execute.alignment import allocate_huge
from sigma_backend_numba.execute.thread_count import ThreadCount
from sigma_backend_numba.execute.thread_pool import POOL
from sigma_backend_numba.lower.kernels import take_error
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import Graph, Node

LINE = 128  # bytes between memory locations that different threads write to
SHARED_BYTES = 3 * LINE  # ticket, pieces done, faults
FAULT = 2 * LINE
TICKET = SPECIAL.index("ticket") - len(SPECIAL)  # its place in a table


@define(eq=False)
class Machine:
    """A compiled burst, its requirements, and its memory; concurrent calls have separate memory."""

    graph: Graph
    needs: Needs
    call: Call
    threads: int = 0  # 0: as many as there are processors
    constants: Sequence[np.ndarray] = ()  # the last inputs of the graph
    inputs: Sequence[Node] = field(init=False)  # those that each call passes
    _held: Sequence[int] = field(init=False)  # addresses of the constants
    _places: array[int] = field(init=False)
    _free: deque[tuple[np.ndarray, np.ndarray, int]] = field(factory=deque, init=False)
    _thread_count: ThreadCount = field(factory=ThreadCount, init=False)

    @inputs.default
    def _(self) -> Sequence[Node]:
        return self.graph.inputs[: len(self.graph.inputs) - len(self.constants)]

    @_places.default
    def _(self) -> array[int]:
        return array("q", self.needs["places"])

    @_held.default
    def _(self) -> Sequence[int]:
        return [x.ctypes.data for x in self.constants]

    @property
    def memory_bytes(self) -> int:
        """Return the bytes of the arena and of every thread's scratch."""
        return self.needs["arena"] + SHARED_BYTES + self.needs["scratch"] * self.needs["threads"]

    def run(
        self, inputs: Sequence[int], outputs: Sequence[int], moving: Sequence[int], rows: int, n: int, count: int = 0
    ) -> int:
        """Run n steps on the arrays at these addresses; return the steps done, or -1 if a row is outside its block.

        ``moving`` is for each input whether it has a number per step.  An index that is out of bounds raises
        SigmaGraphError.
        """
        return self.run_table(self.table(inputs, outputs, moving, rows, count), n)

    def table(
        self, inputs: Sequence[int], outputs: Sequence[int], moving: Sequence[int], rows: int, count: int
    ) -> array[int]:
        """Return a table of addresses and numbers, in which memory is not entered yet."""
        mine = (*inputs, *self._held, *outputs, *moving, *[0] * len(self._held))
        return array("q", [*mine, rows, count, *[0] * (len(SPECIAL) - 2)])

    def run_table(self, table: array[int], n: int, most: int = 0) -> int:
        """Run n steps on a table of addresses, on at most so many threads, 0 for any number; see :meth:`run`.

        One call at a time may use a table.
        """
        memory, shared, first = self._take()
        if table[TICKET] != first:
            self._enter_memory(table, first)
        shared.fill(0)
        take_error(first + FAULT)  # discard the exception of an interrupted burst
        try:
            done = self._run_on_threads(table.buffer_info()[0], n, most or self.needs["threads"])
            if shared[FAULT] == NO_ROW:
                return -1
            if error := take_error(first + FAULT):
                raise error
            if shared[FAULT]:
                raise SigmaGraphError(
                    "take or scatter_add: an index is outside its axis. Check the labels or indices in the data."
                )
        finally:
            self._free.append((memory, shared, first))
        return done

    def _enter_memory(self, table: array[int], first: int) -> None:
        arena = first + SHARED_BYTES
        scratch, places = arena + self.needs["arena"], self._places.buffer_info()[0]
        addresses = (arena, first, first + LINE, first + FAULT, scratch, places)
        table[-len(addresses) :] = array("q", addresses)

    def _run_on_threads(self, address: int, n: int, most: int) -> int:
        """Run n steps on a useful number of threads; return how many were done."""
        if most == 1:
            return self.call(address, n, 0, 1)
        used = 1

        def part(number: int, count: int) -> int:
            nonlocal used
            used = count
            return self.call(address, n, number, count)

        wanted = min(self.threads or cores(), most)
        start = perf_counter()
        done = POOL.run(part, self._thread_count.threads(wanted))
        self._thread_count.note(used, (perf_counter() - start) / n)
        return done

    def idle(self) -> list[np.ndarray]:
        """Return the memory blocks that no call is using."""
        return [memory for memory, *_ in self._free]

    def _take(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Return memory that no call is using, the part of it that threads share, and its address."""
        try:
            return self._free.pop()
        except IndexError:
            memory = allocate_huge(self.memory_bytes)
            return memory, memory[:SHARED_BYTES], memory.ctypes.data
