"""Scans as loops whose results are written into the rows of their stacks, so that nothing is stacked afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from attrs import frozen

from sigma_kernel.contracts import Array
from sigma_kernel.graph import Node

Run = Callable[..., tuple[Array, ...]]


@frozen
class Stack:
    """The values of an output of a scan's body in all steps; of one that is the carry ``incoming``, also the first."""

    out: int
    incoming: int | None
    kind: torch.dtype

    def allocate(self, shape: Sequence[int], length: int, reverse: bool, carry: Sequence[Array]) -> Array:
        """Return the array, with one row more for the first of a carry."""
        array = torch.empty((length + (self.incoming is not None), *shape), dtype=self.kind)
        if self.incoming is not None:
            array[length if reverse else 0] = carry[self.incoming]
        return array

    def results(self, array: Array, reverse: bool) -> Array:
        """Return the rows of the values that leave the steps."""
        if self.incoming is None:
            return array
        return array[:-1] if reverse else array[1:]

    def arrivals(self, array: Array, reverse: bool) -> Array:
        """Return the rows of the values that a carry had before the steps."""
        return array[1:] if reverse else array[:-1]


@frozen
class WrittenScan:
    """A scan: ``written`` stacks, whose rows its body takes as last operands, and others, which are copied."""

    carries: int
    sequences: int
    length: int
    reverse: bool
    outputs: tuple[Node, ...]
    written: tuple[Stack, ...]
    copied: tuple[Stack, ...]
    wanted: frozenset[int]

    def run(self, body: Run, *operands: Array) -> dict[int, Array]:
        """Return the wanted parts by number; see :func:`sigma_kernel.graph.meaning.scan`."""
        carry, constants = operands[: self.carries], operands[self.carries + self.sequences :]
        stacks = (*self.written, *self.copied)
        arrays = [x.allocate(self.outputs[x.out].shape, self.length, self.reverse, carry) for x in stacks]
        rows = self._rows(operands[self.carries : self.carries + self.sequences])
        places = self._rows(x.results(array, self.reverse) for x, array in zip(stacks, arrays, strict=True))
        count = len(self.written)
        for row, place in zip(rows, places, strict=True):
            results = body(*carry, *row, *constants, *place[:count])
            for stack, into in zip(self.copied, place[count:], strict=True):
                into.copy_(results[stack.out])
            carry = results[: self.carries]
        return {index: self._part(index, carry, dict(zip(stacks, arrays, strict=True))) for index in self.wanted}

    def _rows(self, arrays: Iterable[Array]) -> list[tuple[Array, ...]]:
        """Return the rows of all arrays for each step."""
        rows = [*zip(*(x.unbind() for x in arrays), strict=True)] or [()] * self.length
        return rows[::-1] if self.reverse else rows

    def _part(self, index: int, carry: Sequence[Array], arrays: Mapping[Stack, Array]) -> Array:
        if index < self.carries:
            return carry[index]
        if index >= len(self.outputs):
            stack = next(x for x in arrays if x.incoming == index - len(self.outputs))
            return stack.arrivals(arrays[stack], self.reverse)
        stack = next(x for x in arrays if self.outputs[x.out] is self.outputs[index])
        return stack.results(arrays[stack], self.reverse)


def stacks(
    outputs: Sequence[Node], carries: int, wanted: Iterable[int], kind: Callable[[str], torch.dtype]
) -> list[Stack]:
    """Return the stacks that wanted parts are rows of; equal outputs share one."""
    coming = [index - len(outputs) for index in wanted if index >= len(outputs)]
    rows = [Stack(k, k, kind(outputs[k].dtype)) for k in coming]
    for index in wanted:
        if carries <= index < len(outputs) and not any(outputs[x.out] is outputs[index] for x in rows):
            rows.append(Stack(index, None, kind(outputs[index].dtype)))
    return rows
