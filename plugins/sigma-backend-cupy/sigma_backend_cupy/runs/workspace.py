"""The memory of one caller at a time, and the launches of a unit bound to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, evolve, field

from sigma_backend_cupy.devices.device import Call, Device
from sigma_backend_cupy.graphs.canonical import LOWERINGS
from sigma_backend_cupy.graphs.views import StridedProduct
from sigma_backend_cupy.runs.places import ArrayPlace, Launch, LaunchList, size, total
from sigma_backend_cupy.text.kernels import Kernel
from sigma_kernel.graph import check_indices, meaning_of

NOTHING = (2**63 - 1, -(2**63))  # the least and the greatest of no index


@define(eq=False)
class BoundMemory:
    """Inputs, results, intermediate values, control words and faults, in one block of bytes."""

    unit: LaunchList
    device: Device
    constants: Sequence[Any]
    block: Any = field(init=False)
    starts: dict[tuple[str, int], int] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        """Lay out all arrays."""
        sizes = self.sizes(self.unit)
        self.block = self.device.memory(total(sizes.values()))
        at = self.device.address(self.block)
        for key, bytes_ in sizes.items():
            self.starts[key] = at
            at += total([bytes_])
        self.starts |= {("constant", k): self.device.address(x) for k, x in enumerate(self.constants)}
        self.starts |= {("output", out): self.starts["input", i] for out, i in self.unit.in_place.items()}

    @staticmethod
    def sizes(unit: LaunchList) -> dict[tuple[str, int], int]:
        """Return the bytes of every array of a unit."""
        outputs = {("output", i): size(x) for i, x in enumerate(unit.outputs) if i not in unit.in_place}
        return {
            ("control", 0): 8, ("fault", 0): 16 * len(unit.faults), ("arena", 0): unit.arena,
            **{("input", i): size(x) for i, x in enumerate(unit.inputs)}, **outputs,
            ("input", len(unit.inputs)): 8 * (2 + len(unit.inputs) + len(unit.outputs)),  # the table of a burst
        }  # fmt: skip

    def address(self, place: ArrayPlace) -> int:
        """Return the address of an array."""
        if place.space == "fault":
            return self.starts["fault", 0] + 16 * place.number
        return self.starts[place.space, place.number] + place.offset

    def reset(self) -> None:
        """Begin a burst: reset the count of iterations and the faults of indices."""
        self.fill(ArrayPlace("control"), np.zeros(2, np.int32))
        if self.unit.faults:
            self.fill(ArrayPlace("fault"), np.array([NOTHING] * len(self.unit.faults), np.int64))

    def fill(self, place: ArrayPlace, host: np.ndarray) -> None:
        """Copy an array of the host to a place."""
        held = self.device.place(host)
        self.device.copy(self.address(place), self.device.address(held), host.nbytes)

    def read(self, place: ArrayPlace, shape: Sequence[int], dtype: str) -> np.ndarray:
        """Return the array at a place, on the host."""
        return self.device.fetch(self.device.array(self.address(place), shape, dtype))

    def check(self) -> None:
        """Raise SigmaGraphError if an op read an index outside of its axis."""
        if self.unit.faults:
            ranges = self.read(ArrayPlace("fault"), (len(self.unit.faults), 2), "int64")
            for (op, side), (low, high) in zip(self.unit.faults, ranges, strict=True):
                if low <= high:
                    check_indices(op, np.array([low, high]), side)


def bind_launches(launches: Sequence[Launch], memory: BoundMemory, calls: Mapping[str, Call]) -> Callable[[], None]:
    """Return a function that queues launches on arrays in memory."""
    control = memory.address(ArrayPlace("control"))
    steps: list[Callable[[], None]] = []
    for launch in launches:
        places = [memory.address(place) for place in launch.places]
        if isinstance(launch.what, Kernel):
            steps.append(_bind_call(calls[launch.what.name], [control, *places]))
        elif isinstance(launch.what, StridedProduct):
            steps.append(_bind_call(memory.device.product(launch.what), places))
        else:
            steps.append(_meant(launch, memory, places))

    def run() -> None:
        for step in steps:
            step()

    return run


def _bind_call(call: Call, addresses: Sequence[int]) -> Callable[[], None]:
    return lambda: call(addresses)


def _meant(launch: Launch, memory: BoundMemory, places: Sequence[int]) -> Callable[[], None]:
    """Return a call of an op's kernel or meaning, which the device computes array by array."""
    node: Any = launch.what
    device = memory.device
    ns = evolve(device.namespace(), kernels=LOWERINGS)
    arrays = [device.array(at, x.shape, x.dtype) for at, x in zip(places, (*node.inputs, node), strict=True)]
    run = meaning_of(node, ns)

    def call() -> None:
        with ns.quiet():
            arrays[-1][...] = run(*arrays[:-1])

    return call
