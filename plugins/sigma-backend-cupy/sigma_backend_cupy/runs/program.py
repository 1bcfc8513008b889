"""Programs: a graph as a function of arrays, and a step whose bursts stay on the device."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
from attrs import define, field

from sigma_backend_cupy.devices.device import Call, Device
from sigma_backend_cupy.runs.places import ArrayPlace, Launch, LaunchList, size, total
from sigma_backend_cupy.runs.unit import compile_graph
from sigma_backend_cupy.runs.workspace import BoundMemory, bind_launches
from sigma_backend_cupy.text import bursts
from sigma_backend_cupy.text.kernels import Kernel
from sigma_kernel.contracts import Array, Arrays, Burst, Numbers, Step
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import Graph, Node

AT_ONCE = 64  # arrays that one kernel copies


@define(eq=False, slots=False)
class CompiledFunction:
    """A graph as a function from arrays to new arrays; several threads may call it."""

    unit: LaunchList
    device: Device
    extra: Sequence[Kernel] = ()
    _free: deque[Any] = field(factory=deque)

    @cached_property
    def calls(self) -> Mapping[str, Call]:
        """Compile all kernels."""
        every = {**self.unit.kernels, **{kernel.name: kernel for kernel in self.extra}}
        return self.device.kernels([*every.values()])

    @cached_property
    def constants(self) -> list[Any]:
        """Return arrays of constants, on the device."""
        return [self.device.place(x) for x in self.unit.constants]

    @property
    def peak_bytes(self) -> int:
        """Return the bytes of inputs, results and intermediate values."""
        return total(BoundMemory.sizes(self.unit).values())

    @contextmanager
    def memory(self) -> Iterator[Any]:
        """Lend the memory and the bound launches of one call."""
        try:
            lent = self._free.pop()
        except IndexError:
            lent = self.allocate(BoundMemory(self.unit, self.device, self.constants))
        try:
            yield lent
        finally:
            self._free.append(lent)

    def allocate(self, memory: BoundMemory) -> Any:
        """Return memory and what runs on it."""
        return memory, bind_launches(self.unit.launches, memory, self.calls)

    def __call__(self, *arrays: Array) -> list[Array]:
        """Compute the outputs; raises SigmaGraphError for indices outside of their axis."""
        with self.device.active(), self.memory() as (memory, run):
            for i, (array, node) in enumerate(zip(arrays, self.unit.inputs, strict=True)):
                _set(memory, ArrayPlace("input", i), array, node)
            memory.reset()
            run()
            outputs = [_got(memory, ArrayPlace("output", i), node) for i, node in enumerate(self.unit.outputs)]
            memory.check()
            return outputs


def function(graph: Graph, device: Device) -> CompiledFunction:
    """Compile a graph to a function."""
    return CompiledFunction(compile_graph(graph, {}), device)


def _set(memory: BoundMemory, place: ArrayPlace, array: Any, node: Node) -> None:
    """Copy an argument to its place."""
    given = memory.device.to_contiguous(array, node.dtype)
    if given.shape != node.shape:
        raise SigmaGraphError(f"cupy: input {place.number} has shape {given.shape}. The graph takes {node.shape}.")
    memory.device.copy(memory.address(place), memory.device.address(given), size(node))


def _got(memory: BoundMemory, place: ArrayPlace, node: Node) -> Any:
    """Return a copy of a result."""
    array = memory.device.empty(node.shape, node.dtype)
    memory.device.copy(memory.device.address(array), memory.address(place), size(node))
    return array


# -- bursts ------------------------------------------------------------------------------------------------------------
@define(eq=False, slots=False)
class CupyProgram:
    """A compiled step: each iteration is one launch of the recording, and a burst reads nothing back until its end.

    State, minibatch and live values have their own places, so that the recording fits every burst.
    """

    step: Step
    device: Device
    in_place: bool
    run_step: CompiledFunction = field(init=False)
    around: tuple[list[Launch], list[Launch]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Compile the step and the kernels around it."""
        unit = compile_graph(self.step.graph, self.step.donations)
        self.around = _launches_before(self.step, unit), _launches_after(self.step, unit)
        extra = [launch.what for part in self.around for launch in part]
        self.run_step = _Steps(unit, self.device, extra, around=self.around)  # type: ignore[arg-type]

    @property
    def peak_bytes(self) -> int:
        """Return the working memory: one arena, with the state, a minibatch and the results."""
        return self.run_step.peak_bytes

    def run(self, state: Arrays, block: Arrays, rows: np.ndarray, steer: Numbers, n: int) -> Burst:
        """Run ``n`` steps; see :class:`sigma_kernel.contracts.Program`."""
        step, device, unit = self.step, self.device, self.run_step.unit
        with device.active(), self.run_step.memory() as (memory, run):
            for i, name in enumerate(step.state):
                _set(memory, ArrayPlace("input", i), state[name], unit.inputs[i])
            kept = self._table(memory, block, rows, steer, n)
            memory.reset()
            for _ in range(n):
                run()
            done = int(memory.read(ArrayPlace("control"), (2,), "int32")[0])
            memory.check()
            new = {name: self._new(memory, out, state[name]) for out, name in enumerate(step.writes)}
            ring = {name: device.fetch(x)[:done] for name, x in zip(step.ring, kept[-len(step.ring) :], strict=True)}
        return Burst({**state, **new}, ring if step.ring else {}, done)

    def _table(self, memory: BoundMemory, block: Arrays, rows: np.ndarray, steer: Numbers, n: int) -> list[Any]:
        """Place what a burst reads and fills, and return it: rows, data, live values, the ring."""
        step, device, unit = self.step, self.device, self.run_step.unit
        first = len(step.state) + len(step.data)
        numbers = zip(step.steer, unit.inputs[first:], strict=True)
        ring = unit.outputs[len(step.writes) :]
        kept = [
            device.place(np.ascontiguousarray(rows, np.int64)),
            *(
                device.to_contiguous(block[name], unit.inputs[len(step.state) + k].dtype)
                for k, name in enumerate(step.data)
            ),
            *(device.place(np.array(np.broadcast_to(np.asarray(steer[name], x.dtype), n))) for name, x in numbers),
            *(device.empty((n, *x.shape), x.dtype) for x in ring),
        ]
        addresses = np.array([device.address(x) for x in kept], np.uint64)
        memory.fill(ArrayPlace("input", len(unit.inputs)), addresses)
        return kept

    def _new(self, memory: BoundMemory, out: int, given: Any) -> Any:
        """Return a state entry after the burst."""
        position = self.step.donations[out]
        return _got(memory, ArrayPlace("input", position), self.run_step.unit.inputs[position])


@define(eq=False, slots=False)
class _Steps(CompiledFunction):
    around: tuple[Sequence[Launch], Sequence[Launch]] = ((), ())

    def allocate(self, memory: BoundMemory) -> Any:
        """Return memory, and one recorded iteration on it."""
        before, after = self.around
        run = bind_launches([*before, *self.unit.launches, *after], memory, self.calls)
        memory.fill(ArrayPlace("control"), np.array([0, 1], np.int32))  # a step that changes nothing
        return memory, run if self.unit.python else self.device.record(run)


def _launches_before(step: Step, unit: LaunchList) -> list[Launch]:
    """Return the launches that read a minibatch and the live values."""
    table, first = ArrayPlace("input", len(unit.inputs)), len(step.state)
    launches = []
    for k in range(len(step.data)):
        if size(unit.inputs[first + k]):
            launches.append(
                Launch(bursts.gather(unit.inputs[first + k], 1 + k), (table, ArrayPlace("input", first + k)))
            )
    last = first + len(step.data)
    if step.steer:
        places = [ArrayPlace("input", last + k) for k in range(len(step.steer))]
        launches.append(Launch(bursts.live(unit.inputs[last:], 1 + len(step.data)), (table, *places)))
    return launches


def _launches_after(step: Step, unit: LaunchList) -> list[Launch]:
    """Return the launches that keep the state, write the records and end the iteration."""
    table, launches = ArrayPlace("input", len(unit.inputs)), []
    moved = [(o, i) for o, i in step.donations.items() if o not in unit.in_place and size(unit.outputs[o])]
    for some in (moved[k : k + AT_ONCE] for k in range(0, len(moved), AT_ONCE)):
        places = [*(ArrayPlace("output", o) for o, _ in some), *(ArrayPlace("input", i) for _, i in some)]
        launches.append(Launch(bursts.keep(*(unit.outputs[o] for o, _ in some)), tuple(places)))
    first, entry = len(step.writes), 1 + len(step.data) + len(step.steer)
    short, checked, read = [], [], []
    for k, name in enumerate(step.ring):
        node, place = unit.outputs[first + k], ArrayPlace("output", first + k)
        if size(node) > 8 * bursts.AT_ONCE:
            launches.append(Launch(bursts.record(node, entry + k), (table, place)))
        else:
            short.append((node, entry + k))
        checked += [node] if name == "loss" else []
        read += [place] if name == "loss" or size(node) <= 8 * bursts.AT_ONCE else []
    return [*launches, Launch(bursts.advance(short, checked), (table, *read))]
