"""Compile steps and graphs, and run them: bursts on arrays that are checked at each call, or bound once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import define, field

from sigma_backend_numba.cache.lookup import load
from sigma_backend_numba.emit.program_text import Job
from sigma_backend_numba.execute.alignment import copy, empty
from sigma_backend_numba.execute.arguments import Places, convert_argument, copy_if_read_only, rings
from sigma_backend_numba.execute.bound import BoundBurst
from sigma_backend_numba.execute.constants import split_constants
from sigma_backend_numba.execute.machine import Machine
from sigma_backend_numba.lower.canonical import DATA, STATE, STEER, expand_graph, frame
from sigma_kernel.contracts import Burst, Step
from sigma_kernel.errors import SigmaStateError
from sigma_kernel.graph import Graph, Node


@define(eq=False)
class LoweredFunction:
    """A compiled graph as a function from input arrays to output arrays."""

    machine: Machine
    donate: Mapping[int, int]

    @property
    def peak_bytes(self) -> int:
        """Return the bytes of inputs, results and memory."""
        graph = self.machine.graph
        return self.machine.memory_bytes + sum(_bytes(node) for node in (*graph.inputs, *graph.outputs))

    def __call__(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        """Return the outputs.  A donated input is invalid after the call; a wrong shape raises SigmaGraphError."""
        graph, inputs = self.machine.graph, self.machine.inputs
        given = [
            convert_argument(x, node, f"input {i}") for i, (x, node) in enumerate(zip(arrays, inputs, strict=True))
        ]
        for i in self.donate.values():
            given[i] = copy_if_read_only(given[i])
        results = [
            given[self.donate[out]] if out in self.donate else empty(node.shape, node.dtype)
            for out, node in enumerate(graph.outputs)
        ]
        self.machine.run([x.ctypes.data for x in given], [x.ctypes.data for x in results], [0] * len(given), 0, 1)
        return tuple(results)


@define(eq=False)
class CompiledProgram:
    """A compiled step; see :class:`sigma_kernel.contracts.Program`."""

    step: Step
    machine: Machine
    in_place: bool
    _places: Places = field(factory=Places, init=False)

    @property
    def peak_bytes(self) -> int:
        """Return the bytes of the state, one minibatch, the records of one step, and memory."""
        graph = self.machine.graph
        fresh = graph.outputs if not self.in_place else graph.outputs[len(self.step.writes) :]
        return self.machine.memory_bytes + sum(_bytes(node) for node in (*graph.inputs, *fresh))

    def run(
        self, state: Mapping[str, Any], block: Mapping[str, Any], rows: np.ndarray, steer: Mapping[str, Any], n: int
    ) -> Burst:
        """Run n steps in one call; see :class:`sigma_kernel.contracts.Program`."""
        step, nodes, places = self.step, iter(self.machine.inputs), self._places
        held = {name: places.array(state[name], next(nodes), name) for name in step.state}
        for name in step.writes:
            held[name] = copy_if_read_only(held[name]) if self.in_place else copy(held[name])
        data = {name: places.array(block[name], next(nodes), name, rows=True) for name in step.data}
        live = {name: places.live(steer[name], next(nodes), name, n) for name in step.steer}
        order, count = np.ascontiguousarray(rows, np.int32), min(map(len, data.values()), default=0)
        ring, records = rings(self.machine.graph.outputs[len(step.writes) :], n)
        done = 0
        if n:
            given = [places.address(value, name) for name, value in (*held.items(), *data.items(), *live.items())]
            moving = [*[0] * (len(held) + len(data)), *(int(value.size > 1) for value in live.values())]
            done = self.machine.run(given, [*[0] * len(step.writes), *records], moving, order.ctypes.data, n, count)
            if done < 0:
                raise _missing(order, count)
        series = {name: values[:done] for name, values in zip(step.ring, ring, strict=True)}
        return Burst({**state, **held}, series, done)

    def bind(self, state: Mapping[str, Any], rows: np.ndarray, steer: Mapping[str, Any]) -> BoundBurst | None:
        """Return the burst of a step that only reads; see :class:`sigma_kernel.contracts.BindingProgram`.

        Return None for a state that has to be copied.
        """
        step, nodes, batch = self.step, self.machine.inputs, rows.shape[1:]
        held = [convert_argument(state[name], node, name) for name, node in zip(step.state, nodes, strict=False)]
        copied = any(x is not state[name] for name, x in zip(step.state, held, strict=True))
        if step.writes or copied or any(x.shape[:1] != batch for x in self.machine.graph.outputs):
            return None
        places = zip(step.steer, nodes[len(nodes) - len(step.steer) :], strict=True)
        live = [self._places.live(steer[name], node, name, 1) for name, node in places]
        return BoundBurst(self.machine, np.array(rows, np.int32), [x.ctypes.data for x in held], live)


def _missing(rows: np.ndarray, count: int) -> SigmaStateError:
    wrong = rows.min() if rows.min() < 0 else rows.max()
    return SigmaStateError(f"numba: a minibatch names row {wrong} of a block of {count} rows.")


def _bytes(node: Node) -> int:
    return int(np.prod(node.shape)) * np.dtype(node.dtype).itemsize


def machine(job: Job, threads: int) -> Machine:
    """Return the machine for a job, planned and compiled unless its program is known."""
    return Machine(job.graph, *load(str(job), job.write_program, job.kernels()), threads, job.constants)


def step_job(step: Step, approximate: bool = False) -> Job:
    """Return the job of a step: inputs are state, data, live values and constants, outputs are updates and records."""
    graph, held = split_constants(expand_graph(step.graph))
    kinds = {STATE: len(step.state), DATA: len(step.data), STEER: len(step.steer)}
    donated = step.donations
    around = frame(kinds, [donated.get(i) for i in range(len(step.graph.outputs))], len(held))
    sections = step.graph.inputs[len(step.state) : len(step.state) + len(step.data)]
    batch = sections[0].shape[0] if sections else 0
    trains = bool(step.writes) and "loss" in step.ring  # an output of a prediction may have any name
    watched = len(step.writes) + step.ring.index("loss") if trains else None
    return Job(graph, around, batch, watched, approximate, held)


def graph_job(graph: Graph, donate: Mapping[int, int], approximate: bool = False) -> Job:
    """Return the job of a graph by itself."""
    targets = [donate.get(out) for out in range(len(graph.outputs))]
    program, held = split_constants(expand_graph(graph))
    around = frame({STATE: len(graph.inputs)}, targets, len(held))
    return Job(program, around, approximate=approximate, constants=held)
