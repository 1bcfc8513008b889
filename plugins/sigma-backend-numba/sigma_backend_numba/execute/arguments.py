"""Check the arrays that a program is called with, and find their addresses."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from attrs import define, field

from sigma_backend_numba.execute.alignment import allocate_aligned, copy
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import ALIGNMENT, BYTES, Node


def convert_argument(value: Any, node: Node, name: str, rows: bool = False) -> np.ndarray:
    """Return an argument as a contiguous array of an input's dtype; SigmaGraphError for a wrong shape."""
    array = np.asarray(value, node.dtype)
    array = array if array.flags.c_contiguous else copy(array)
    fits = array.shape[1:] == node.shape[1:] if rows else array.shape == node.shape
    if not fits:
        raise SigmaGraphError(f"numba: {name} has shape {array.shape}. The graph takes {node.shape}.")
    return array


def copy_if_read_only(found: np.ndarray) -> np.ndarray:
    """Return the array, or a copy if it is read-only."""
    return found if found.flags.writeable else copy(found)


@define(eq=False)
class Places:
    """The addresses of a program's arrays.  An array seen before is not checked again."""

    _seen: dict[str, tuple[weakref.ref[np.ndarray], int]] = field(factory=dict, init=False)

    def _is_same(self, value: Any, name: str) -> bool:
        entry = self._seen.get(name)
        return entry is not None and entry[0]() is value

    def array(self, value: Any, node: Node, name: str, rows: bool = False) -> np.ndarray:
        """Return an argument as an array that fits."""
        array: np.ndarray = value if self._is_same(value, name) else convert_argument(value, node, name, rows)
        return array

    def address(self, found: np.ndarray, name: str) -> int:
        """Return the address of an argument."""
        entry = self._seen.get(name)
        if entry is None or entry[0]() is not found:
            self._seen[name] = entry = (weakref.ref(found), found.ctypes.data)
        return entry[1]

    def live(self, value: Any, node: Node, name: str, n: int) -> np.ndarray:
        """Return a live value as an array of one number, or of one number per step."""
        if self._is_same(value, name) and not value.ndim:
            return value  # type: ignore[no-any-return]
        if np.ndim(value) == 0:
            return convert_argument(value, node, name)
        numbers = np.ascontiguousarray(value, node.dtype)
        if numbers.shape == (n,):
            return numbers
        raise SigmaGraphError(f"numba: {name} has shape {numbers.shape}. Give one number, or {n} of them.")


def rings(nodes: Sequence[Node], n: int) -> tuple[list[np.ndarray], list[int]]:
    """Allocate the records of n steps in one block; return the arrays and their addresses."""
    sizes = [-(-n * prod(node.shape) * BYTES[node.dtype] // ALIGNMENT) * ALIGNMENT for node in nodes]
    memory, starts = allocate_aligned(sum(sizes)), [sum(sizes[:i]) for i in range(len(sizes))]
    first = memory.ctypes.data
    arrays = [
        np.ndarray((n, *node.shape), node.dtype, memory, start) for node, start in zip(nodes, starts, strict=True)
    ]
    return arrays, [first + start for start in starts]
