"""Fuse nodes into groups: a group is one task, one loop nest around one kind of core.

``loop``: elementwise nodes and reductions of rows; ``product``: a matrix product and the elementwise work after it;
``fold``: a reduction of leading axes with its operand, and what follows; ``plain``: a single op.

A node joins the group of its latest producer if its elements can be computed where the producer's are.  Nodes without
a producer (reads of inputs, random bits, ``0.9 * m``) float until a node that does not float reads them.  Then they
enter its nest if all their readers there agree on the axis map; otherwise they are computed into memory by a group of
their own.  Scalars that depend on scalar inputs alone are free: every task computes those it needs.
"""

from __future__ import annotations

from math import prod
from typing import Any

from attrs import define, field, frozen

from sigma_backend_numba.lower.canonical import DATA, ELEMENTWISE, FLOATS, FOLDS, LEAVES, Form
from sigma_backend_numba.lower.layout import VIEWS, source
from sigma_backend_numba.plan.axis_maps import Map, below, identity, joined, operand, sides, values
from sigma_backend_numba.scalars import COSTLY
from sigma_kernel.graph import Node, Shape

NEVER_FREE = frozenset({"take", "random_bits", "gather", "copy"})
MOST = 128  # maximum number of members of a nest: LLVM's compile time grows faster than the function
LONGEST_ROW = 1 << 14  # elements of a row up to which it is read from the cache again


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

    def whole(self, m: Map) -> bool:
        """Return whether each element is computed once: the value varies along all axes, or along all before rows."""
        axes = {axis for axis in m if axis is not None}
        return axes in ({*range(len(self.sides))}, {*range(len(self.sides) if self.row is None else self.row)})


@define(eq=False)
class Group:
    """One task.  Later nodes join ``space``; the ``head`` of a fold is the nest of its operand."""

    kind: str
    rank: int
    space: Space
    core: Node | None = None
    head: Space | None = None
    level: int = 0

    @property
    def op(self) -> str:
        """Return the op of the core, or an empty text."""
        return "" if self.core is None else self.core.op

    @property
    def members(self) -> list[Node]:
        """Return all nodes that the group computes."""
        core = [] if self.core is None else [self.core]
        return list(dict.fromkeys([*(self.head.maps if self.head else ()), *core, *self.space.maps]))


@frozen
class Place:
    """Where a reader needs a value: the nest of a group, with a map, or None if no map fits."""

    group: Group
    space: Space
    map: Map | None

    def below(self, x: Node) -> Place:
        """Return the place at which the source of a view is needed."""
        return Place(self.group, self.space, None if self.map is None else below(x, self.map))


Wish = tuple[Node, Place | None]  # an operand, and the place at which it is needed; None: in memory


@define(eq=False)
class Grouping:
    """The groups of a form, and the group of each node except views, leaves and free scalars."""

    form: Form
    groups: list[Group] = field(factory=list, init=False)
    of: dict[Node, Group] = field(factory=dict, init=False)
    free: set[Node] = field(factory=set, init=False)
    _floating: set[Node] = field(factory=set, init=False)
    _delivered: set[Node] = field(init=False)
    _ranks: list[int] = field(factory=lambda: [0, 0], init=False)  # the lowest and the highest rank so far
    _order: dict[Node, int] = field(init=False)
    _readers: dict[Node, list[Node]] = field(factory=dict, init=False)  # floating readers
    _late: set[Node] = field(factory=set, init=False)  # floating nodes that read a node that no longer floats
    _begun: dict[Node, Group] = field(factory=dict, init=False)  # the latest nest that reads a slice
    _following: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        """Group all nodes."""
        self._delivered = set(self.form.outputs.values())
        self._order = {node: i for i, node in enumerate(self.form.nodes)}
        for node in self.form.nodes:
            if node.op not in LEAVES and node.op not in VIEWS:
                self._place(node)
        for node in self.form.outputs.values():
            self._settle(node)
        for group in self.groups:
            for space in (group.space, *([group.head] if group.head else [])):
                space.maps = dict(sorted(space.maps.items(), key=lambda item: self._order[item[0]]))

    def _place(self, node: Node) -> None:
        if self._is_free(node):
            self.free.add(node)
        elif node.op in ("convolution", "mixed", "packed") or (node.op == "matmul" and node.dtype in FLOATS):
            self._core("product", node)
        elif node.op in FOLDS:
            self._reduce(node)
        elif node.op in ELEMENTWISE:
            self._join(node)
        else:
            self._core("plain", node)

    def _is_free(self, node: Node) -> bool:
        if prod(node.shape) != 1 or node.op not in ELEMENTWISE or node.op in NEVER_FREE:
            return False
        return all(self._is_scalar(source(x)) for x in node.inputs)

    def _is_scalar(self, root: Node) -> bool:
        place = self.form.places.get(root)
        given = place is not None and prod(root.shape) == 1 and self.form.frame.kinds[place] != DATA
        return root in self.free or root.op == "constant" or given

    # -- groups --------------------------------------------------------------------------------------------------------
    def _new(self, kind: str, space: Space, first: bool = False, **more: Any) -> Group:
        """Return a new group; ``first`` places it before all others, on which it must not depend."""
        self._ranks[not first] += -1 if first else 1
        group = Group(kind, self._ranks[not first], space, **more)
        self.groups.append(group)
        return group

    def _core(self, kind: str, node: Node) -> None:
        for x in node.inputs:
            self._settle(source(x))
        group = self._new(kind, Space(sides(node.shape)), core=node)
        self._enter(node, group, group.space, identity(node.shape))

    def _enter(self, node: Node, group: Group, space: Space, m: Map) -> None:
        self.of[node] = group
        space.maps[node] = m

    def _latest(self, node: Node) -> Group | None:
        """Return the group of the latest producer."""
        found = [self.of[root] for x in node.inputs if (root := source(x)) in self.of]
        return max(found, key=lambda group: group.rank, default=None)

    # -- elementwise nodes ---------------------------------------------------------------------------------------------
    def _join(self, node: Node) -> None:
        for x in self._read(node):
            self._settle(source(x))
        group = self._latest(node)
        if group is None:
            self._float(node)
            return
        m = self._fit(node, group)
        if m is None:
            group = self._beside(node, group) or self._new("loop", Space(sides(node.shape)))
            m = identity(node.shape)
            self._begun |= dict.fromkeys((x for x in node.inputs if x.op == "slice"), group)
        self._admit(node, group, group.space, m)

    def _beside(self, node: Node, latest: Group) -> Group | None:
        """Return a nest that reads the same slice as a node, with its sides, and comes after all of its operands."""
        found = (self._begun[x] for x in node.inputs if x in self._begun)
        fits = (g for g in found if g.rank > latest.rank and g.space.sides == sides(node.shape) and not g.space.full)
        return next(fits, None)

    def _fit(self, node: Node, group: Group) -> Map | None:
        """Return the map that a node would have in a group, or None if it cannot join."""
        if group.kind == "plain" or group.space.full:
            return None
        if any(self.of.get(source(x)) is group for x in self._read(node)):
            return None
        space = group.space
        if any(self.of.get(source(x)) is group and source(x) not in space.maps for x in node.inputs):
            return None  # the operand of a fold is in another nest
        m = joined(node, space.maps, space.sides)
        return m if m is not None and (space.whole(m) or node not in self._delivered) else None

    def _read(self, node: Node) -> list[Node]:
        """Return the operands that must lie in memory."""
        return [x for i, x in enumerate(node.inputs) if i not in values(node)]

    def _admit(self, node: Node, group: Group, space: Space, m: Map) -> None:
        """Add a node to a nest, and the floating nodes that it reads."""
        self._enter(node, group, space, m)
        self._grant(self._wishes(node, group, space, m))

    # -- floating nodes ------------------------------------------------------------------------------------------------
    def _float(self, node: Node) -> None:
        """Postpone a node until its readers are known."""
        self._floating.add(node)
        for x in node.inputs:
            self._readers.setdefault(source(x), []).append(node)

    def _settle(self, root: Node) -> None:
        """Make sure that a node is in memory: a floating one gets a group of its own."""
        self._grant([(root, None)])

    def _wishes(self, node: Node, group: Group, space: Space, m: Map) -> list[Wish]:
        """Return the operands of a member with the places at which they are needed; None means in memory."""
        entering = [(node.inputs[i], Place(group, space, operand(node, i, m))) for i in values(node)]
        return [*((x, None) for x in self._read(node)), *entering]

    def _grant(self, wishes: list[Wish]) -> None:
        """Place floating nodes where they are needed, readers first, so that all uses of a node are known.

        One that is needed at two places, or cannot be computed at its place, gets a group of its own before all others.
        """
        wanted: dict[Node, set[Place | None]] = {}
        while True:
            for x, place in wishes:
                if source(x) in self._floating:
                    wanted.setdefault(source(x), set()).add(place and place.below(x))
            if not wanted:
                break
            root = max(wanted, key=self._order.__getitem__)
            group, space, m = self._placed(root, wanted.pop(root))
            self._floating.discard(root)
            self._enter(root, group, space, m)
            self._late |= {reader for reader in self._readers.pop(root, ()) if reader in self._floating}
            wishes = self._wishes(root, group, space, m)
        self._follow()

    def _placed(self, root: Node, wanted: set[Place | None]) -> tuple[Group, Space, Map]:
        """Return where a floating node is computed: at its reader if that is cheap or computes each element once."""
        place, *others = wanted
        if place is not None and place.map is not None and not others and not place.space.full:
            cheap = root not in self._delivered and root.op not in COSTLY
            if cheap or place.space.whole(place.map):
                return place.group, place.space, place.map
        space = Space(sides(root.shape))
        return self._new("loop", space, first=True), space, identity(root.shape)

    def _follow(self) -> None:
        """Group the nodes that floated until one of their operands was placed."""
        if self._following:
            return
        self._following = True
        while self._late:
            node = min(self._late, key=self._order.__getitem__)
            self._late.discard(node)
            if node in self._floating:
                self._floating.discard(node)
                self._late |= {reader for reader in self._readers.pop(node, ()) if reader in self._floating}
                self._join(node)
        self._following = False

    # -- reductions ----------------------------------------------------------------------------------------------------
    def _reduce(self, node: Node) -> None:
        x, axes = node.inputs[0], node.attrs["axis"]
        root, group = source(x), self._latest(node)
        kept = tuple(k for k, side in enumerate(x.shape) if side != 1 and k not in axes)
        gone = tuple(k for k, side in enumerate(x.shape) if side != 1 and k in axes)
        in_rows = not (kept and gone) or kept[-1] < gone[0]
        if not in_rows or not gone:
            self._fold(node)
            return
        row = len(kept)
        if not (group and self._takes_rows(group, x, row)):
            group = self._new("loop", Space(sides(x.shape)), first=root in self._floating)
        space = group.space
        m = space.inner[node] = identity(x.shape)
        space.row = row
        self._enter(node, group, space, tuple(None if node.shape[k] == 1 else axis for k, axis in enumerate(m)))
        self._grant([(x, Place(group, space, m))])

    def _takes_rows(self, group: Group, x: Node, row: int) -> bool:
        """Return whether a group computes all of an operand row by row."""
        space, m = group.space, identity(x.shape)
        if group.kind not in ("loop", "product") or space.sides != sides(x.shape) or space.row not in (None, row):
            return False
        if group.kind == "product" and (group.core is None or len(group.core.shape) != 2 or row != 1):
            return False
        known = space.maps.get(source(x))
        short = prod(space.sides[row:]) <= LONGEST_ROW and not space.full
        return short and known is not None and below(x, m) == known

    def _fold(self, node: Node) -> None:
        x = node.inputs[0]
        group = self._new("fold", Space(sides(node.shape)), core=node, head=Space(sides(x.shape)))
        self._enter(node, group, group.space, identity(node.shape))
        head = group.head
        if head is not None:
            self._grant([(x, Place(group, head, identity(x.shape)))])
