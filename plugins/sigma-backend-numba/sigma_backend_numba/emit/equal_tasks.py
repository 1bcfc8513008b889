"""Recognise tasks that differ from one written before only in where their values lie, like those of equal layers.

A description of a task holds all that its text depends on, and numbers the places of its values in the order in which
it meets them.  Tasks with equal descriptions have equal text; their arguments are the places with equal numbers.
"""

from __future__ import annotations

from typing import Any

from attrs import define, evolve, field, frozen

from sigma_backend_numba.emit.task import Pointer, Task
from sigma_backend_numba.lower.layout import VIEWS
from sigma_backend_numba.plan.groups import Space
from sigma_kernel.graph import Node, frozen_attrs

OWN = ("input", "output", "arena", "local")  # kinds of pointers to values; others are equal for equal tasks
FIXED = frozenset({"gather", "take", "random_bits"})  # ops whose text names other storage than that of their operands


@define(eq=False)
class TaskDescription:
    """What the text of a task depends on, and the places of its values."""

    task: Task
    places: dict[Pointer, int] = field(factory=dict, init=False)
    _rows: list[tuple[Any, ...]] = field(factory=list, init=False)
    _numbers: dict[Node, int] = field(factory=dict, init=False)
    _members: set[Node] = field(init=False)

    @_members.default
    def _(self) -> set[Node]:
        return {*self.task.group.members}

    def key(self) -> tuple[Any, ...] | None:
        """Return a key that is equal only for tasks of equal text; None for one that has to be written."""
        group, schedule = self.task.group, self.task.schedule
        if group.kind == "plain" or (group.kind == "product" and group.op not in ("matmul", "mixed")):
            return None
        members = group.members
        if any(node.op in FIXED or node in schedule.within for node in members):
            return None
        numbers = [self._number(node) for node in members]
        nests = [self._describe_nest(space) for space in (group.head, group.space) if space is not None]
        cores, repeated = [[*map(self._number, nodes)] for nodes in (group.cores, group.repeated)]
        around = (*cores,), (*sorted(repeated),), (*numbers,), schedule.form.rows
        return group.kind, *around, *nests, *self._rows

    def _describe_nest(self, space: Space) -> tuple[Any, ...]:
        maps, inner = [
            tuple([(self._numbers[node], m) for node, m in nest.items()]) for nest in (space.maps, space.inner)
        ]
        return space.sides, space.row, maps, inner

    def _number(self, node: Node) -> int:
        """Return the number of a node, after those of the nodes from which the task computes it."""
        if node not in self._numbers:
            computed = node in self._members or node.op in VIEWS or node in self.task.schedule.grouping.free
            row: tuple[Any, ...] = node.op, node.shape, node.dtype
            if computed:
                row += (*map(self._number, node.inputs), frozen_attrs(node.attrs))
            elif node.op == "constant":
                row += (frozen_attrs(node.attrs),)
            if node in self.task.schedule.stored or not (computed or node.op == "constant"):
                row += self._place(node)
            self._rows.append(row)
            self._numbers[node] = len(self._numbers)
        return self._numbers[node]

    def _place(self, node: Node) -> tuple[Any, ...]:
        """Return what is known of the place of a value in memory, except where it is."""
        pointer, schedule = self.task.place_of(node), self.task.schedule
        number = self.places.setdefault(pointer, len(self.places))
        kind = schedule.form.frame.kinds[pointer.number] if pointer.kind == "input" else ""
        return number, pointer.kind, pointer.step, pointer.offset, kind, node in schedule.updates


@frozen(eq=False)
class Pattern:
    """A task that was written, and the numbers of the places among its arguments."""

    task: Task
    numbers: list[int | None]

    def fill(self, task: Task, description: TaskDescription) -> None:
        """Take over the name and the costs of the task, with the places of another one."""
        places = [*description.places]
        for (argument, name), number in zip(self.task.arguments.items(), self.numbers, strict=True):
            if isinstance(argument, Pointer) and number is not None:
                argument = evolve(places[number], offset=argument.offset)
            task.arguments[argument] = name
        task.take_over(self.task)


def make_pattern(task: Task, description: TaskDescription) -> Pattern | None:
    """Return the pattern of a task that was written; None if an argument is not the place of a value in it."""
    numbers: list[int | None] = []
    for argument in task.arguments:
        if not isinstance(argument, Pointer) or argument.kind not in OWN:
            numbers.append(None)
        elif (number := description.places.get(argument.beginning)) is not None:
            numbers.append(number)
        else:
            return None
    return Pattern(task, numbers)
