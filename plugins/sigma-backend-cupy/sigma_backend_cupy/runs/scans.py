"""Scans as launches: the body's, once for each iteration, on other rows and carries.

Carries alternate between two buffers, or are entries of the stack of incoming carries if something reads that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import define, evolve, field

from sigma_backend_cupy.runs.places import ArrayPlace, Launch, LaunchList, size, total
from sigma_backend_cupy.text.bursts import keep
from sigma_kernel.graph import Node


@define(eq=False)
class RepeatedBody:
    """A scan: ``operands`` and the ``parts`` that are wanted, by number, have places."""

    node: Node
    body: LaunchList
    operands: Sequence[ArrayPlace]
    parts: Mapping[int, ArrayPlace]
    carries: int = field(init=False)
    length: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Read the attributes."""
        self.carries, self.length = self.node.attrs["carries"], self.node.attrs["length"]

    @property
    def room(self) -> int:
        """Return the bytes of the body's intermediate values, and of two sets of its results."""
        return self.body.arena + 2 * total(map(size, self.body.outputs))

    def launches(self, room: int, spaces: Mapping[str, Sequence[ArrayPlace]]) -> Iterator[Launch]:
        """Yield all launches; ``room`` is where the room begins, ``spaces`` are constants and faults of the body."""
        order = [*range(self.length)]
        order = order[::-1] if self.node.attrs["reverse"] else order
        begin = [*self.operands[: self.carries]]
        for i in range(self.carries):
            if (stack := self._stack(i)) and order:
                yield self._copy(i, begin[i], _row(stack, self.body.inputs[i], order[0]))
            if not order and i in self.parts:
                yield self._copy(i, begin[i], self.parts[i])
        for count, t in enumerate(order):
            after = order[count + 1] if count + 1 < self.length else None
            begin = [
                _row(s, self.body.inputs[i], t) if (s := self._stack(i)) else begin[i] for i in range(self.carries)
            ]
            outputs = [self._output(i, room, count, t, after) for i in range(len(self.body.outputs))]
            inputs = [*begin, *self._rows(t), *self.operands[self.carries + self.node.attrs["sequences"] :]]
            for launch in self.body.launches:
                places = (self._place_in_whole(place, inputs, outputs, room, spaces) for place in launch.places)
                yield evolve(launch, places=tuple(places))
            begin = outputs[: self.carries]

    def _stack(self, carry: int) -> ArrayPlace | None:
        """Return where incoming carries are stacked, if something reads them."""
        return self.parts.get(len(self.body.outputs) + carry)

    def _rows(self, t: int) -> list[ArrayPlace]:
        """Return the rows of the sequences."""
        last = self.carries + self.node.attrs["sequences"]
        given = zip(self.operands[self.carries : last], self.body.inputs[self.carries : last], strict=True)
        return [_row(place, row, t) for place, row in given]

    def _output(self, i: int, room: int, count: int, t: int, after: int | None) -> ArrayPlace:
        """Return where a result of the body goes in an iteration."""
        node = self.body.outputs[i]
        spare = room + self.body.arena + total(map(size, self.body.outputs[:i]))
        spare += count % 2 * total(map(size, self.body.outputs))
        if i >= self.carries:
            return _row(self.parts[i], node, t) if i in self.parts else ArrayPlace("arena", 0, spare)
        if after is None:
            return self.parts.get(i, ArrayPlace("arena", 0, spare))
        stack = self._stack(i)
        return _row(stack, node, after) if stack else ArrayPlace("arena", 0, spare)

    def _copy(self, i: int, source: ArrayPlace, to: ArrayPlace) -> Launch:
        return Launch(keep(self.body.inputs[i]), (source, to))

    @staticmethod
    def _place_in_whole(
        place: ArrayPlace,
        inputs: Sequence[ArrayPlace],
        outputs: Sequence[ArrayPlace],
        room: int,
        spaces: Mapping[str, Sequence[ArrayPlace]],
    ) -> ArrayPlace:
        """Return a place of the body as one of the whole."""
        if place.space == "arena":
            return evolve(place, offset=place.offset + room)
        held = {"input": inputs, "output": outputs, **spaces}[place.space][place.number]
        return evolve(held, offset=held.offset + place.offset)


def _row(stack: ArrayPlace, row: Node, t: int) -> ArrayPlace:
    """Return the place of a row of a stack."""
    return evolve(stack, offset=stack.offset + t * size(row))
