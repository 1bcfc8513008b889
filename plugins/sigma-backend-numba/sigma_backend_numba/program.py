"""Compiled programs: arrays bound to a table of addresses, and bursts run on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from attrs import define, field

from sigma_backend_numba.compiler.machine import Burst as Call
from sigma_backend_numba.crew import CREW, cores
from sigma_backend_numba.form import DATA, STATE, STEER, frame
from sigma_backend_numba.memory import aligned, copy, empty
from sigma_backend_numba.pace import Pace
from sigma_backend_numba.source import Source, source
from sigma_kernel.contracts import Burst, Step
from sigma_kernel.errors import SigmaGraphError, SigmaStateError
from sigma_kernel.graph.node import Graph, Node

SHARED_BYTES = 3 * 128  # ticket, pieces done, faults: apart, because threads write to them


@define(eq=False)
class Machine:
    """A program's source, its compiled burst, and the memory that one call at a time works in."""

    source: Source
    call: Call
    threads: int = 0  # 0: as many as there are processors
    _free: deque[np.ndarray] = field(factory=deque, init=False)
    _pace: Pace = field(factory=Pace, init=False)

    @property
    def memory_bytes(self) -> int:
        """Return the bytes of the arena and of every thread's scratch."""
        return self.source.arena_bytes + SHARED_BYTES + self.source.scratch_bytes * self.source.threads

    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray | None], rows: np.ndarray, n: int) -> int:
        """Run n steps; return how many were done.  An index outside of its side is a SigmaGraphError."""
        memory = self._take()
        table = np.zeros(self.source.length, np.int64)
        count = len(inputs)
        table[:count] = [x.ctypes.data for x in inputs]
        table[count : count + len(outputs)] = [0 if x is None else x.ctypes.data for x in outputs]
        for place, kind in enumerate(self.source.frame.kinds):
            table[count + len(outputs) + place] = kind == STEER and inputs[place].size > 1
        ticket, ended, fault, arena = range(memory.ctypes.data, memory.ctypes.data + SHARED_BYTES + 1, 128)
        special = (rows.ctypes.data, arena, ticket, ended, fault, arena + self.source.arena_bytes)
        table[-len(special) :] = special
        memory[:SHARED_BYTES] = 0
        try:
            done = self._together(table.ctypes.data, n)
            if memory[fault - ticket]:
                raise SigmaGraphError(
                    "take: an index lies outside of its axis. Check the labels or places in the data."
                )
        finally:
            self._free.append(memory)
        return done

    def _together(self, address: int, n: int) -> int:
        """Run n steps on as many threads as are of use; return how many were done."""
        used = 1

        def part(number: int, count: int) -> int:
            nonlocal used
            used = count
            return self.call(address, n, number, count)

        wanted = min(self.threads or cores(), self.source.threads)
        start = perf_counter()
        done = CREW.run(part, self._pace.threads(wanted))
        self._pace.note(used, (perf_counter() - start) / n)
        return done

    def idle(self) -> list[np.ndarray]:
        """Return the memories in which no call works at present."""
        return list(self._free)

    def _take(self) -> np.ndarray:
        try:
            return self._free.pop()
        except IndexError:
            return aligned(self.memory_bytes)


def _admitted(value: Any, node: Node, name: str, rows: bool = False) -> np.ndarray:
    """Return an argument as an array of an input's dtype that lies in one piece."""
    array = np.asarray(value, node.dtype)
    array = array if array.flags.c_contiguous else copy(array)
    fits = array.shape[1:] == node.shape[1:] if rows else array.shape == node.shape
    if not fits:
        raise SigmaGraphError(f"numba: {name} has shape {array.shape}. The graph takes {node.shape}.")
    return array


def _owned(array: np.ndarray) -> np.ndarray:
    """Return an array that may be written over."""
    return array if array.flags.writeable else copy(array)


@define(eq=False)
class Function:
    """A graph as a function from input arrays to output arrays."""

    machine: Machine
    donate: Mapping[int, int]

    @property
    def peak_bytes(self) -> int:
        """Return the bytes of inputs, results and memory."""
        graph = self.machine.source.graph
        return self.machine.memory_bytes + sum(_bytes(node) for node in (*graph.inputs, *graph.outputs))

    def __call__(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        """Return the outputs.  A donated input is dead after the call; one of a wrong shape is a SigmaGraphError."""
        graph = self.machine.source.graph
        given = [_admitted(x, node, f"input {i}") for i, (x, node) in enumerate(zip(arrays, graph.inputs, strict=True))]
        for i in self.donate.values():
            given[i] = _owned(given[i])
        results = [
            None if out in self.donate else empty(node.shape, node.dtype) for out, node in enumerate(graph.outputs)
        ]
        self.machine.run(given, results, np.zeros(1, np.int32), 1)
        return tuple(given[self.donate[out]] if x is None else x for out, x in enumerate(results))


@define(eq=False)
class Program:
    """A compiled step; see :class:`sigma_kernel.contracts.Program`."""

    step: Step
    machine: Machine
    in_place: bool

    @property
    def peak_bytes(self) -> int:
        """Return the bytes of the state, one minibatch, what one step records, and memory."""
        graph = self.machine.source.graph
        fresh = graph.outputs if not self.in_place else graph.outputs[len(self.step.writes) :]
        return self.machine.memory_bytes + sum(_bytes(node) for node in (*graph.inputs, *fresh))

    def run(
        self, state: Mapping[str, Any], block: Mapping[str, Any], rows: np.ndarray, steer: Mapping[str, Any], n: int
    ) -> Burst:
        """Run n steps in one call; see :class:`sigma_kernel.contracts.Program`."""
        step, nodes = self.step, iter(self.machine.source.graph.inputs)
        held = {name: _admitted(state[name], next(nodes), name) for name in step.state}
        for name in step.writes:
            held[name] = _owned(held[name]) if self.in_place else copy(held[name])
        data = [_admitted(block[name], next(nodes), name, rows=True) for name in step.data]
        live = [self._live(steer[name], node, name, n) for name, node in zip(step.steer, nodes, strict=True)]
        chosen = _chosen(rows, data, n)
        recorded = self.machine.source.graph.outputs[len(step.writes) :]
        ring = {name: empty((n, *node.shape), node.dtype) for name, node in zip(step.ring, recorded, strict=True)}
        outputs = [*[None] * len(step.writes), *ring.values()]
        done = self.machine.run([*held.values(), *data, *live], outputs, chosen, n) if n else 0
        return Burst({**state, **held}, {name: values[:done] for name, values in ring.items()}, done)

    def _live(self, value: Any, node: Node, name: str, n: int) -> np.ndarray:
        array = np.ascontiguousarray(value, node.dtype)
        if np.size(value) == 1 and (np.ndim(value) == 0 or n == 1):
            return array
        if array.shape != (n,):
            raise SigmaGraphError(f"numba: {name} has shape {array.shape}. Give one number, or {n} of them.")
        return array


def _chosen(rows: np.ndarray, data: Sequence[np.ndarray], n: int) -> np.ndarray:
    """Return the rows of every minibatch; one that a block does not have is a SigmaStateError."""
    chosen = np.ascontiguousarray(rows, np.int32)
    if data and n and chosen.size and not 0 <= chosen.min() <= chosen.max() < min(map(len, data)):
        raise SigmaStateError(f"numba: a minibatch names row {chosen.max()} of a block of {min(map(len, data))} rows.")
    return chosen


def _bytes(node: Node) -> int:
    return int(np.prod(node.shape)) * np.dtype(node.dtype).itemsize


def step_source(step: Step, approximate: bool = False) -> Source:
    """Return the source of a step: state, data and live values go in, updates and records come out."""
    donated, outputs = step.donations, len(step.graph.outputs)
    around = frame(
        {STATE: len(step.state), DATA: len(step.data), STEER: len(step.steer)}, [donated.get(i) for i in range(outputs)]
    )
    sections = step.graph.inputs[len(step.state) : len(step.state) + len(step.data)]
    batch = sections[0].shape[0] if sections else 0
    watched = len(step.writes) + step.ring.index("loss") if "loss" in step.ring else None
    return source(step.graph, around, batch, watched, approximate)


def graph_source(graph: Graph, donate: Mapping[int, int], approximate: bool = False) -> Source:
    """Return the source of a graph by itself."""
    targets = [donate.get(out) for out in range(len(graph.outputs))]
    return source(graph, frame({STATE: len(graph.inputs)}, targets), approximate=approximate)
