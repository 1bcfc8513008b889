"""Fuse nodes into groups: a group is one task, one loop nest around one kind of core.

``loop``: elementwise nodes and reductions of rows; ``product``: a matrix product and the elementwise work after it;
``fold``: a reduction of leading axes with its operand, and what follows; ``plain``: a single op.

A node joins the group of its latest producer if its elements can be computed where the producer's are.  Nodes without
a producer (reads of inputs, random bits, ``0.9 * m``) float until a node that does not float reads them.  Then they
enter its nest if all their readers there agree on the axis map; otherwise they are computed into memory by a group of
their own.  Scalars that depend on scalar inputs alone are free: every task computes those it needs.

A node that does not fit into its latest producer's group is *repeated* if reading its operands again moves fewer bytes
than storing it: every nest that reads it computes it.  So the differences, products and masks of a norm are never in
memory.  Folds of the same axes that read the same value are one group: one pass over their operands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import prod
from typing import Any

from attrs import define, field, frozen

from sigma_backend_numba.lower.canonical import DATA, ELEMENTWISE, FLOATS, FOLDS, LEAVES, Form
from sigma_backend_numba.lower.layout import VIEWS, source
from sigma_backend_numba.plan.axis_maps import Map, below, identity, joined, operand, sides, values
from sigma_backend_numba.scalars import COSTLY
from sigma_kernel.graph import BYTES, Node, Shape

NEVER_FREE = frozenset({"take", "random_bits", "gather", "copy"})
MOST = 128  # maximum number of members of a nest: LLVM's compile time grows faster than the function
LONGEST_ROW = 1 << 14  # elements of a row up to which it is read from the cache again
REPEATED = 24  # maximum number of ops that are repeated for one value
BESIDE = 1 << 12  # elements of a value from which on its readers share a nest: nests of small ones share their code
TOGETHER = 6  # maximum number of folds of one group: their sums stay in registers
WRITTEN = 2  # times that a stored value crosses the bus: a cache reads a line before it writes


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
        """Return the core and the folds beside it."""
        return [*([] if self.core is None else [self.core]), *self.others]

    @property
    def members(self) -> list[Node]:
        """Return all nodes that the group computes."""
        return list(dict.fromkeys([*(self.head.maps if self.head else ()), *self.cores, *self.space.maps]))

    @property
    def made(self) -> list[Node]:
        """Return the nodes that this group alone computes: others may read them from memory."""
        return [node for node in self.members if node not in self.repeated]

    @property
    def operands(self) -> list[Node]:
        """Return what the nests read from memory.  Each computes its own members only: not those of the other."""
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

    def below(self, x: Node) -> Place:
        """Return the place at which the source of a view is needed."""
        return Place(self.group, self.space, None if self.map is None else below(x, self.map))

    def forget(self, root: Node) -> None:
        """Read a repeated value from memory in this nest: it is needed with two maps."""
        self.space.maps.pop(root, None)
        if not any(space is not None and root in space.maps for space in (self.group.head, self.group.space)):
            self.group.repeated.discard(root)


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
    _ranks: list[Fraction] = field(factory=lambda: [Fraction(0)] * 2, init=False)  # the lowest and the highest so far
    _order: dict[Node, int] = field(init=False)
    _readers: dict[Node, list[Node]] = field(factory=dict, init=False)  # floating readers
    _late: set[Node] = field(factory=set, init=False)  # floating nodes that read a node that no longer floats
    _begun: dict[Node, Group] = field(factory=dict, init=False)  # the latest loop that reads a value or a slice
    _folds: dict[tuple[Any, ...], Group] = field(factory=dict, init=False)  # the latest group that folds a value
    _repeated: dict[Node, int] = field(factory=dict, init=False)  # the number of ops that compute it
    _uses: Counter[Node] = field(factory=Counter, init=False)  # the number of readers
    _kept: set[Node] = field(factory=set, init=False)  # values that must lie in memory
    _hubs: set[Node] = field(factory=set, init=False)  # first members of loops
    _folded: set[Node] = field(factory=set, init=False)  # operands of folds
    _following: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        """Group all nodes."""
        self._delivered = set(self.form.outputs.values())
        self._order = {node: i for i, node in enumerate(self.form.nodes)}
        every = [node for node in self.form.nodes if node.op not in LEAVES and node.op not in VIEWS]
        for node in every:
            self._uses.update({source(x) for x in node.inputs})
            by_element = node.op in ELEMENTWISE or node.op in FOLDS
            if node.op in FOLDS and _rows(node) is None:
                self._folded.add(source(node.inputs[0]))
            self._kept.update(source(x) for x in (self._read(node) if by_element else node.inputs))
        for node in every:
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

    def _inserted(self, space: Space, latest: Group) -> Group:
        """Return a new loop right after a group."""
        following = min(group.rank for group in self.groups if group.rank > latest.rank)
        group = Group("loop", (latest.rank + following) / 2, space)
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
        self._begin(node, group)

    def _begin(self, node: Node, group: Group) -> None:
        """Record what a loop reads."""
        if group.kind == "loop":
            self._begun |= dict.fromkeys(self._leaves(node.inputs), group)

    def _leaves(self, operands: Iterable[Node]) -> tuple[Node, ...]:
        """Return the values, or slices of values, that are read for some operands: those of repeated ones."""
        found: dict[Node, None] = {}
        for x in operands:
            leaf = x if x.op == "slice" else source(x)
            found |= dict.fromkeys(self._leaves(source(x).inputs) if source(x) in self._repeated else (leaf,))
        return (*found,)

    def _producers(self, operands: Iterable[Node]) -> list[Group]:
        """Return the groups that compute what is read for some operands."""
        roots = map(source, self._leaves(operands))
        return [self.of[root] for root in roots if root in self.of]

    def _latest(self, node: Node) -> Group | None:
        """Return the group of the latest producer."""
        return max(self._producers(node.inputs), key=lambda group: group.rank, default=None)

    # -- elementwise nodes ---------------------------------------------------------------------------------------------
    def _join(self, node: Node) -> None:
        for x in self._read(node):
            self._settle(source(x))
        group = self._latest(node)
        if group is None:
            self._float(node)
            return
        m = self._fit(node, group)
        if (m is None or self._after_memory(node, group)) and (ops := self._without_memory(node)):
            self._repeated[node] = ops
            return
        if m is None:
            self._hubs.add(node)
            group = self._beside(node, group) or self._new("loop", Space(sides(node.shape)))
            m = identity(node.shape)
        self._admit(node, group, group.space, m)

    def _beside(self, node: Node, latest: Group) -> Group | None:
        """Return a nest that reads what a node reads, with its sides, and comes after all of its operands."""
        read = (leaf for leaf in self._leaves(node.inputs) if leaf.op == "slice" or prod(leaf.shape) >= BESIDE)
        found = (self._begun[leaf] for leaf in read if leaf in self._begun)
        fits = (g for g in found if g.rank > latest.rank and g.space.sides == sides(node.shape) and not g.space.full)
        return next(fits, None)

    def _after_memory(self, node: Node, group: Group) -> bool:
        """Return whether everything that a node reads of a loop will be in memory anyway."""
        roots = [root for root in map(source, self._leaves(node.inputs)) if self.of.get(root) is group]
        stored = (self._hubs, self._folded, self._kept, self._delivered)
        return group.kind == "loop" and all(any(root in some for some in stored) for root in roots)

    def _without_memory(self, node: Node) -> int:
        """Return the ops that repeat a node, or 0 if it moves fewer bytes in memory, or readers cannot repeat it."""
        stored = node in self._kept or node in self._delivered or node.dtype == "bool"
        if stored or node.op in COSTLY | NEVER_FREE or prod(node.shape) <= 1:
            return 0
        leaves, roots = self._leaves(node.inputs), dict.fromkeys(map(source, node.inputs))
        ops = 1 + sum(self._repeated.get(root, 0) for root in roots)
        read = sum(prod(leaf.shape) * BYTES[leaf.dtype] for leaf in leaves) / (prod(node.shape) * BYTES[node.dtype])
        readers = self._uses[node]
        fewer = readers * read <= read + WRITTEN + readers
        return ops if fewer and ops <= REPEATED else 0

    def _fit(self, node: Node, group: Group) -> Map | None:
        """Return the map that a node would have in a group, or None if it cannot join."""
        if group.kind == "plain" or group.space.full:
            return None
        if any(self.of.get(source(x)) is group for x in self._read(node)):
            return None
        space = group.space
        if any(self.of.get(source(x)) is group and source(x) not in space.maps for x in node.inputs):
            return None  # the operand of a fold is in another nest
        repeated = [x for x in node.inputs if source(x) in self._repeated and source(x) not in space.maps]
        if group in self._producers(repeated):
            return None
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
        wanted: dict[Node, dict[Place | None, None]] = {}
        while True:
            for x, place in wishes:
                root, there = source(x), place and place.below(x)
                if root in self._floating or root in self._repeated:
                    wanted.setdefault(root, {})[there] = None
                elif there is not None and root in there.group.repeated and there.space.maps.get(root) != there.map:
                    there.forget(root)  # it is in memory, too
            if not wanted:
                break
            root = max(wanted, key=self._order.__getitem__)
            places = [*wanted.pop(root)]
            if root in self._repeated:
                wishes = self._repeat(root, places)
                continue
            group, space, m = self._placed(root, places)
            self._floating.discard(root)
            self._enter(root, group, space, m)
            self._late |= {reader for reader in self._readers.pop(root, ()) if reader in self._floating}
            wishes = self._wishes(root, group, space, m)
        self._follow()

    def _repeat(self, root: Node, places: list[Place | None]) -> list[Wish]:
        """Compute a repeated value at all its places, or in memory if one cannot; return what that needs."""
        fitting = {place.space: place for place in places if place is not None and self._repeats(root, place)}
        if all(place is not None and fitting.get(place.space) == place for place in places):
            new = [place for place in fitting.values() if root not in place.space.maps]
            return [wish for place in new for wish in self._repeated_at(root, place, place.map)]
        for place in places:
            if place is not None and place.space.maps.get(root, place.map) != place.map:
                place.forget(root)
        space, latest = Space(sides(root.shape)), self._latest(root)
        del self._repeated[root]
        group = self._new("loop", space, first=True) if latest is None else self._inserted(space, latest)
        self._enter(root, group, space, identity(root.shape))
        return self._wishes(root, group, space, identity(root.shape))

    def _repeats(self, root: Node, place: Place) -> bool:
        """Return whether a nest can compute a repeated value at a place."""
        known = place.space.maps.get(root)
        return place.map is not None and (not place.space.full if known is None else known == place.map)

    def _repeated_at(self, root: Node, place: Place, m: Map | None) -> list[Wish]:
        """Compute a repeated value at a place as well; return what that needs."""
        if m is None:
            raise AssertionError("a value is repeated where a map fits")
        place.space.maps[root] = m
        place.group.repeated.add(root)
        self._begin(root, place.group)
        return self._wishes(root, place.group, place.space, m)

    def _placed(self, root: Node, wanted: list[Place | None]) -> tuple[Group, Space, Map]:
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
        x, row = node.inputs[0], _rows(node)
        if row is None:
            self._fold(node)
            return
        root, group = source(x), self._latest(node)
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
        keys = [(leaf, x.shape, node.attrs["axis"]) for leaf in self._leaves([x])]
        group = self._together(keys, self._latest(node))
        if group is None:
            group = self._new("fold", Space(sides(node.shape)), core=node, head=Space(sides(x.shape)))
        else:
            group.others.append(node)
        self._folds |= dict.fromkeys(keys, group)
        self._enter(node, group, group.space, identity(node.shape))
        head = group.head
        if head is not None:
            self._grant([(x, Place(group, head, identity(x.shape)))])

    def _together(self, keys: list[tuple[Any, ...]], latest: Group | None) -> Group | None:
        """Return a group that folds the same axes of a value that reads the same, and comes after all operands."""
        found = (self._folds[key] for key in keys if key in self._folds and prod(key[0].shape) == prod(key[1]))
        free = (g for g in found if len(g.cores) < TOGETHER and g.head is not None and not g.head.full)
        return next((g for g in free if latest is None or g.rank > latest.rank), None)


def _rows(node: Node) -> int | None:
    """Return the number of axes around the rows that a reduction reduces, or None if it reduces no last axes."""
    shape, axes = node.inputs[0].shape, node.attrs["axis"]
    kept = tuple(k for k, side in enumerate(shape) if side != 1 and k not in axes)
    gone = tuple(k for k, side in enumerate(shape) if side != 1 and k in axes)
    in_rows = not (kept and gone) or kept[-1] < gone[0]
    return len(kept) if in_rows and gone else None
