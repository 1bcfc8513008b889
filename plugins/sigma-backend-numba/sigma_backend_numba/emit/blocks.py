"""The loop of a nest that is cut into blocks, because many numbers are added in it.

Each block has sums of its own, in the dtype of the numbers, in registers; they are added up in float64. So the error of
a sum of float32 numbers is that of one block, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from attrs import field, frozen

from sigma_backend_numba.emit.task import indent
from sigma_backend_numba.scalars import FLOATING
from sigma_kernel.graph import Node

TERMS = 1 << 10  # numbers that are added one after another
BESIDE = 1 << 12  # numbers that are added side by side, in vectors: shorter loops take a third more time

Lines = list[str]


@frozen(eq=False)
class LoopBlocks:
    """LoopBlocks of ``size`` rounds of the loop ``number``.  The lines before and after a block are those of a pass."""

    number: int
    size: int
    before: dict[int, Lines] = field(factory=dict)
    after: dict[int, Lines] = field(factory=dict)

    def add(self, which: int, before: Sequence[str], after: Sequence[str]) -> None:
        """Add lines around each block of a pass."""
        self.before.setdefault(which, []).extend(before)
        self.after.setdefault(which, []).extend(after)

    def wrap_loop(self, which: int, ends: tuple[str, str], loop: Callable[[str, str], Lines]) -> Lines:
        """Return a loop over the blocks of a pass, given the one over the rounds from one number to another."""
        if which not in self.before:
            return loop(*ends)
        first, last = ends
        end = f"min(block + {self.size}, {last})"
        inside = [*self.before[which], f"end = {end}", *loop("block", "end"), *self.after[which]]
        return [f"for block in range({first}, {last}, {self.size}):", *indent(inside)]


def at_once(node: Node) -> int:
    """Return how many numbers are added in one dtype: more if they are contiguous in the innermost loop."""
    shape = node.inputs[0].shape
    last = max((axis for axis, side in enumerate(shape) if side != 1), default=0)
    return BESIDE if last in node.attrs["axis"] else TERMS


def sums_many(node: Node) -> bool:
    """Return whether a reduction is a sum of floats that is cut into blocks."""
    terms = prod(node.inputs[0].shape)
    return node.op == "sum" and node.dtype in FLOATING and terms > at_once(node) * prod(node.shape)


def blocks(node: Node, loops: Sequence[tuple[int, int]]) -> LoopBlocks | None:
    """Return the blocks of the innermost loop that reduces many numbers, given the reduced loops and their rounds."""
    terms, most = 1, at_once(node)
    for number, rounds in reversed(loops):
        if terms * rounds > most:
            return LoopBlocks(number, max(1, most // terms))
        terms *= rounds
    return None
