"""Launches, and the symbolic memory that they work on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

import numpy as np
from attrs import frozen

from sigma_backend_cupy.devices.device import ALIGNED
from sigma_backend_cupy.graphs.views import StridedProduct
from sigma_backend_cupy.text.kernels import Kernel
from sigma_kernel.graph import BYTES, Node


@frozen
class ArrayPlace:
    """The place of an array: a space, the number of the array in it, an offset in bytes."""

    space: str  # "input", "output", "arena", "constant", "fault" or "control"
    number: int = 0
    offset: int = 0


@frozen(eq=False)
class Launch:
    """A kernel, a product, or the meaning of an op computed in Python, and the places of its arrays."""

    what: Kernel | StridedProduct | Node
    places: tuple[ArrayPlace, ...]


@frozen(eq=False)
class LaunchList:
    """A compiled graph. ``in_place`` maps outputs to the inputs whose memory they take."""

    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    launches: tuple[Launch, ...]
    arena: int
    constants: tuple[np.ndarray, ...]
    faults: tuple[tuple[str, int], ...]  # op and side, of each op that reads indices
    in_place: Mapping[int, int]

    @property
    def kernels(self) -> dict[str, Kernel]:
        """Return the kernels by name."""
        return {x.what.name: x.what for x in self.launches if isinstance(x.what, Kernel)}

    @property
    def python(self) -> bool:
        """Return whether an op is computed in Python, so that the launches cannot be recorded."""
        return any(isinstance(x.what, Node) for x in self.launches)


def size(node: Node) -> int:
    """Return the bytes of a node."""
    return prod(node.shape) * BYTES[node.dtype]


def total(sizes: Iterable[int]) -> int:
    """Return the bytes of arrays side by side."""
    return sum(max(ALIGNED, -(-size // ALIGNED) * ALIGNED) for size in sizes)
