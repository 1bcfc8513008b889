"""Hold the groups of a form: each is one task, one loop nest around one kind of core."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from attrs import define, field, frozen

from sigma_backend_numba.lower.layout import source
from sigma_backend_numba.plan.axis_maps import Map, map_of_source
from sigma_kernel.graph import Node, Shape

MOST = 128  # maximum number of members of a nest: LLVM's compile time grows faster than the function


@define(eq=False)
class Space:
    """A loop nest: its sides (() for a scalar), the maps of members and of reductions' operands, the axis of rows."""

    sides: Shape
    maps: dict[Node, Map] = field(factory=dict)
    inner: dict[Node, Map] = field(factory=dict)
    row: int | None = None

    @property
    def full(self) -> bool:
        """Return whether the nest has reached its maximum size."""
        return len(self.maps) >= MOST

    def is_computed_once(self, m: Map) -> bool:
        """Return whether each element is computed once: the value varies along all axes, or along all before rows."""
        axes, rank = {axis for axis in m if axis is not None}, len(self.sides)
        return axes == {*range(rank)} or (self.row is not None and axes == {*range(self.row)})


@define(eq=False)
class Group:
    """One task.  Later nodes join ``space``; the ``head`` of folds is the nest of their operands.

    ``others`` are the folds beside the core; ``repeated`` are members that other groups may compute as well.
    """

    kind: str
    rank: Fraction
    space: Space
    core: Node | None = None
    head: Space | None = None
    level: int = 0
    others: list[Node] = field(factory=list)
    repeated: set[Node] = field(factory=set)

    @property
    def op(self) -> str:
        """Return the op of the core, or an empty text."""
        return "" if self.core is None else self.core.op

    @property
    def cores(self) -> list[Node]:
        """Return the core and its folds."""
        return [*([] if self.core is None else [self.core]), *self.others]

    @property
    def members(self) -> list[Node]:
        """Return all nodes that the group computes."""
        return list(dict.fromkeys([*(self.head.maps if self.head else ()), *self.cores, *self.space.maps]))

    @property
    def own_nodes(self) -> list[Node]:
        """Return the nodes that this group alone computes: others may read them from memory."""
        return [node for node in self.members if node not in self.repeated]

    @property
    def operands(self) -> list[Node]:
        """Return the reads of the nests from memory. Each computes only its own members."""
        folded = dict.fromkeys(self.cores if self.head else [])
        nests = [(self.head, [*self.head.maps, *folded])] if self.head else []
        nests.append((self.space, [node for node in self.space.maps if node not in folded]))
        return [x for space, nodes in nests for node in nodes for x in node.inputs if source(x) not in space.maps]


@frozen
class Place:
    """Where a reader needs a value: the nest of a group, with a map, or None if no map fits."""

    group: Group
    space: Space
    map: Map | None

    def source_place(self, x: Node) -> Place:
        """Return the place at which the source of a view is needed."""
        return Place(self.group, self.space, None if self.map is None else map_of_source(x, self.map))

    def forget(self, root: Node) -> None:
        """Read a repeated value from memory in this nest: it is needed with two maps."""
        self.space.maps.pop(root, None)
        if not any(space is not None and root in space.maps for space in (self.group.head, self.group.space)):
            self.group.repeated.discard(root)


@define(eq=False)
class Groups:
    """The groups so far, in the order of their ranks, and the group of each node that is in one."""

    every: list[Group] = field(factory=list, init=False)
    of: dict[Node, Group] = field(factory=dict, init=False)
    begun: dict[Node, Group] = field(factory=dict, init=False)  # the latest loop that reads a value or a slice
    repeated: dict[Node, int] = field(factory=dict, init=False)  # the number of ops that compute a repeated value
    _ranks: list[Fraction] = field(factory=lambda: [Fraction(0)] * 2, init=False)  # the lowest and the highest so far

    def new_group(self, kind: str, space: Space, first: bool = False, **more: Any) -> Group:
        """Return a new group; ``first`` places it before all others, on which it must not depend."""
        self._ranks[not first] += -1 if first else 1
        group = Group(kind, self._ranks[not first], space, **more)
        self.every.append(group)
        return group

    def insert_loop(self, space: Space, latest: Group) -> Group:
        """Return a new loop right after a group."""
        following = min(group.rank for group in self.every if group.rank > latest.rank)
        group = Group("loop", (latest.rank + following) / 2, space)
        self.every.append(group)
        return group

    def enter(self, node: Node, group: Group, space: Space, m: Map) -> None:
        """Let a group compute a node in one of its nests."""
        self.of[node] = group
        space.maps[node] = m
        self.note_reads(node, group)

    def note_reads(self, node: Node, group: Group) -> None:
        """Record the reads of a loop."""
        if group.kind == "loop":
            self.begun |= dict.fromkeys(self.leaves(node.inputs), group)

    def leaves(self, operands: Iterable[Node]) -> tuple[Node, ...]:
        """Return the values, or slices of values, that are read for some operands: those of repeated ones."""
        leaves: dict[Node, None] = {}
        for x in operands:
            root = source(x)
            if root in self.repeated:
                leaves |= dict.fromkeys(self.leaves(root.inputs))
            else:
                leaves[x if x.op == "slice" else root] = None
        return (*leaves,)

    def producers(self, operands: Iterable[Node]) -> list[Group]:
        """Return the groups that compute the reads of some operands."""
        roots = map(source, self.leaves(operands))
        return [self.of[root] for root in roots if root in self.of]

    def latest_producer(self, node: Node) -> Group | None:
        """Return the group of the latest producer."""
        return max(self.producers(node.inputs), key=lambda group: group.rank, default=None)
