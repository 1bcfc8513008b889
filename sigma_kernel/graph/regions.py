"""Regions of a graph whose values a backward pass computes again, in place of keeping them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from sigma_kernel.graph.node import Node


@frozen(eq=False)
class RecomputedRegion:
    """A part of a graph, from its inputs to its outputs: the nodes with this origin, or one below it.

    The gradient of the first output that has one is that for which the copies wait.
    """

    origin: str
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]

    @property
    def ends(self) -> tuple[Node, ...]:
        """Return its inputs and its outputs."""
        return (*self.inputs, *self.outputs)

    def with_ends(self, ends: Sequence[Node]) -> RecomputedRegion:
        """Return the region between these inputs and outputs."""
        count = len(self.inputs)
        return evolve(self, inputs=tuple(ends[:count]), outputs=tuple(ends[count:]))

    def holds(self, origin: str) -> bool:
        """Return whether a node of this origin is inside."""
        return origin == self.origin or origin.startswith(f"{self.origin}.")

    def find_inside(self) -> set[Node]:
        """Return the nodes before the outputs that are inside and read others."""
        border, inside, waiting = {*self.inputs}, set[Node](), [*self.outputs]
        while waiting:
            for x in waiting.pop().inputs:
                if x not in inside and x not in border and x.inputs and self.holds(x.origin):
                    inside.add(x)
                    waiting.append(x)
        return inside
