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
from math import prod
from typing import Any

from attrs import define, field

from sigma_backend_numba.lower.canonical import DATA, ELEMENTWISE, FLOATS, FOLDS, LEAVES, Form
from sigma_backend_numba.lower.layout import VIEWS, source
from sigma_backend_numba.plan.axis_maps import (
    INDEXING,
    Map,
    identity,
    map_of_source,
    map_through,
    operand,
    sides,
    values,
)
from sigma_backend_numba.plan.groups import Group, Groups, Place, Space
from sigma_backend_numba.scalars import COSTLY
from sigma_kernel.graph import BYTES, Node

NEVER_FREE = frozenset({"take", "random_bits", "gather", "copy"})
LONGEST_ROW = 1 << 14  # elements of a row up to which it is read from the cache again
REPEATED = 24  # maximum number of ops that are repeated for one value
BESIDE = 1 << 12  # elements of a value from which on its readers share a nest: nests of small ones share their code
TOGETHER = 6  # maximum number of folds of one group: their sums stay in registers
WRITTEN = 2  # times that a stored value crosses the bus: a cache reads a line before it writes
Wish = tuple[Node, Place | None]  # an operand, and the place at which it is needed; None: in memory


@define(eq=False)
class StoredValues:
    """The values that are in memory however nodes are fused, and the rule for repeated ones."""

    groups: Groups
    delivered: set[Node]
    uses: Counter[Node] = field(factory=Counter, init=False)  # the number of readers
    kept: set[Node] = field(factory=set, init=False)  # operands that must be in memory
    hubs: set[Node] = field(factory=set, init=False)  # first members of loops
    folded: set[Node] = field(factory=set, init=False)  # operands of folds

    def count_readers(self, node: Node) -> None:
        """Record the reads of a node."""
        self.uses.update({source(x) for x in node.inputs})
        by_element = node.op in ELEMENTWISE or node.op in FOLDS
        if node.op in FOLDS and _rows(node) is None:
            self.folded.add(source(node.inputs[0]))
        self.kept.update(source(x) for x in (_operands_in_memory(node) if by_element else node.inputs))

    def reads_memory_anyway(self, node: Node, group: Group) -> bool:
        """Return whether everything that a node reads of a loop will be in memory anyway."""
        if group.kind != "loop":
            return False
        roots = [root for root in map(source, self.groups.leaves(node.inputs)) if self.groups.of.get(root) is group]
        stored = (self.hubs, self.folded, self.kept, self.delivered)
        return all(any(root in some for some in stored) for root in roots)

    def repetitions(self, node: Node) -> int:
        """Return the ops that repeat a node, or 0 if it moves fewer bytes in memory, or readers cannot repeat it."""
        stored = node in self.kept or node in self.delivered or node.dtype == "bool"
        if stored or node.op in COSTLY | NEVER_FREE or prod(node.shape) <= 1:
            return 0
        leaves, roots = self.groups.leaves(node.inputs), dict.fromkeys(map(source, node.inputs))
        ops = 1 + sum(self.groups.repeated.get(root, 0) for root in roots)
        read = sum(prod(leaf.shape) * BYTES[leaf.dtype] for leaf in leaves) / (prod(node.shape) * BYTES[node.dtype])
        readers = self.uses[node]
        fewer = readers * read <= read + WRITTEN + readers
        return ops if fewer and ops <= REPEATED else 0


@define(eq=False)
class Fusion:
    """Let elementwise nodes join the nest of their latest producer, or float until a node that does not reads them."""

    groups: Groups
    stored: StoredValues
    order: dict[Node, int]
    _floating: set[Node] = field(factory=set, init=False)
    _readers: dict[Node, list[Node]] = field(factory=dict, init=False)  # floating readers
    _late: set[Node] = field(factory=set, init=False)  # floating nodes that read a node that no longer floats
    _following: bool = field(default=False, init=False)

    def floats(self, root: Node) -> bool:
        """Return whether a node waits for its readers."""
        return root in self._floating

    def join(self, node: Node) -> None:
        """Add a node to the nest of its latest producer, repeat it in the nests of its readers, or let it float."""
        for x in _operands_in_memory(node):
            self.settle(source(x))
        group = self.groups.latest_producer(node)
        if group is None:
            self._float(node)
            return
        m = self._fit(node, group)
        if (m is None or self.stored.reads_memory_anyway(node, group)) and (ops := self.stored.repetitions(node)):
            self.groups.repeated[node] = ops
            return
        if m is None:
            self.stored.hubs.add(node)
            group = self._find_neighbour(node, group) or self.groups.new_group("loop", Space(sides(node.shape)))
            m = identity(node.shape)
        self._admit(node, group, group.space, m)

    def _find_neighbour(self, node: Node, latest: Group) -> Group | None:
        """Return a nest that has a node's reads and its sides, and comes after all of its operands."""
        read = (leaf for leaf in self.groups.leaves(node.inputs) if leaf.op == "slice" or prod(leaf.shape) >= BESIDE)
        groups = (self.groups.begun[leaf] for leaf in read if leaf in self.groups.begun)
        fits = (g for g in groups if g.rank > latest.rank and g.space.sides == sides(node.shape) and not g.space.full)
        return next(fits, None)

    def _fit(self, node: Node, group: Group) -> Map | None:
        """Return the map that a node would have in a group, or None if it cannot join."""
        if group.kind == "plain" or group.space.full:
            return None
        if any(self.groups.of.get(source(x)) is group for x in _operands_in_memory(node)):
            return None
        space = group.space
        if any(self.groups.of.get(source(x)) is group and source(x) not in space.maps for x in node.inputs):
            return None  # the operand of a fold is in another nest
        repeated = [x for x in node.inputs if source(x) in self.groups.repeated and source(x) not in space.maps]
        if group in self.groups.producers(repeated):
            return None
        m = map_through(node, space.maps, space.sides)
        return m if m is not None and (space.is_computed_once(m) or node not in self.stored.delivered) else None

    def _admit(self, node: Node, group: Group, space: Space, m: Map) -> None:
        """Add a node to a nest, and the floating nodes that it reads."""
        self.groups.enter(node, group, space, m)
        self.grant(self._wishes(node, group, space, m))

    # -- floating nodes ------------------------------------------------------------------------------------------------
    def _float(self, node: Node) -> None:
        """Postpone a node until its readers are known."""
        self._floating.add(node)
        for x in node.inputs:
            self._readers.setdefault(source(x), []).append(node)

    def settle(self, root: Node) -> None:
        """Make sure that a node is in memory: a floating one gets a group of its own."""
        self.grant([(root, None)])

    def _wishes(self, node: Node, group: Group, space: Space, m: Map) -> list[Wish]:
        """Return the operands of a member with the places at which they are needed; None means in memory."""
        entering = [(node.inputs[i], Place(group, space, operand(node, i, m))) for i in values(node)]
        return [*((x, None) for x in _operands_in_memory(node)), *entering]

    def grant(self, wishes: list[Wish]) -> None:
        """Place floating nodes where they are needed, readers first, so that all uses of a node are known.

        One that is needed at two places, or cannot be computed at its place, gets a group of its own before all others.
        """
        wanted: dict[Node, dict[Place | None, None]] = {}
        while True:
            for x, place in wishes:
                root, there = source(x), place and place.source_place(x)
                if root in self._floating or root in self.groups.repeated:
                    wanted.setdefault(root, {})[there] = None
                elif there is not None and root in there.group.repeated and there.space.maps.get(root) != there.map:
                    there.forget(root)  # it is in memory, too
            if not wanted:
                break
            root = max(wanted, key=self.order.__getitem__)
            places = [*wanted.pop(root)]
            if root in self.groups.repeated:
                wishes = self._repeat(root, places)
                continue
            group, space, m = self._choose_place(root, places)
            self._floating.discard(root)
            self.groups.enter(root, group, space, m)
            self._late |= {reader for reader in self._readers.pop(root, ()) if reader in self._floating}
            wishes = self._wishes(root, group, space, m)
        self._follow()

    def _repeat(self, root: Node, places: list[Place | None]) -> list[Wish]:
        """Compute a repeated value at all its places, or in memory if one cannot; return its operands."""
        fitting = {place.space: place for place in places if place is not None and self._repeats(root, place)}
        if all(place is not None and fitting.get(place.space) == place for place in places):
            new = [place for place in fitting.values() if root not in place.space.maps]
            return [wish for place in new for wish in self._repeated_at(root, place, place.map)]
        for place in places:
            if place is not None and place.space.maps.get(root, place.map) != place.map:
                place.forget(root)
        space, latest = Space(sides(root.shape)), self.groups.latest_producer(root)
        del self.groups.repeated[root]
        groups = self.groups
        group = groups.new_group("loop", space, first=True) if latest is None else groups.insert_loop(space, latest)
        self.groups.enter(root, group, space, identity(root.shape))
        return self._wishes(root, group, space, identity(root.shape))

    def _repeats(self, root: Node, place: Place) -> bool:
        """Return whether a nest can compute a repeated value at a place."""
        root_map = place.space.maps.get(root)
        return place.map is not None and (not place.space.full if root_map is None else root_map == place.map)

    def _repeated_at(self, root: Node, place: Place, m: Map | None) -> list[Wish]:
        """Compute a repeated value at a place as well; return what that needs."""
        if m is None:
            raise AssertionError("a value is repeated where a map fits")
        place.space.maps[root] = m
        place.group.repeated.add(root)
        self.groups.note_reads(root, place.group)
        return self._wishes(root, place.group, place.space, m)

    def _choose_place(self, root: Node, wanted: list[Place | None]) -> tuple[Group, Space, Map]:
        """Return where a floating node is computed: at its reader if that is cheap or computes each element once."""
        place, *others = wanted
        if place is not None and place.map is not None and not others and not place.space.full:
            cheap = root not in self.stored.delivered and root.op not in COSTLY
            if cheap or place.space.is_computed_once(place.map):
                return place.group, place.space, place.map
        space = Space(sides(root.shape))
        return self.groups.new_group("loop", space, first=True), space, identity(root.shape)

    def _follow(self) -> None:
        """Group the nodes that floated until one of their operands was placed."""
        if self._following:
            return
        self._following = True
        while self._late:
            node = min(self._late, key=self.order.__getitem__)
            self._late.discard(node)
            if node in self._floating:
                self._floating.discard(node)
                self._late |= {reader for reader in self._readers.pop(node, ()) if reader in self._floating}
                self.join(node)
        self._following = False


@define(eq=False)
class Grouping:
    """The groups of a form, and the group of each node except views, leaves and free scalars."""

    form: Form
    groups: Groups = field(factory=Groups, init=False)
    free: set[Node] = field(factory=set, init=False)
    _fusion: Fusion = field(init=False)
    _folds: dict[tuple[Any, ...], Group] = field(factory=dict, init=False)  # the latest group that folds a value

    def __attrs_post_init__(self) -> None:
        """Group all nodes."""
        outputs, order = self.form.outputs.values(), {node: i for i, node in enumerate(self.form.nodes)}
        every = [node for node in self.form.nodes if node.op not in LEAVES and node.op not in VIEWS]
        stored = StoredValues(self.groups, set(outputs))
        for node in every:
            stored.count_readers(node)
        self._fusion = Fusion(self.groups, stored, order)
        for node in every:
            self._place(node)
        for node in outputs:
            self._fusion.settle(node)
        for group in self.groups.every:
            for space in (group.space, *([group.head] if group.head else [])):
                space.maps = dict(sorted(space.maps.items(), key=lambda item: order[item[0]]))

    def _place(self, node: Node) -> None:
        if self._is_free(node):
            self.free.add(node)
        elif node.op in ("convolution", "mixed", "packed") or (node.op == "matmul" and node.dtype in FLOATS):
            self._core("product", node)
        elif node.op in FOLDS:
            self._reduce(node)
        elif node.op in ELEMENTWISE:
            self._fusion.join(node)
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

    def _core(self, kind: str, node: Node) -> None:
        for x in node.inputs:
            self._fusion.settle(source(x))
        group = self.groups.new_group(kind, Space(sides(node.shape)), core=node)
        self.groups.enter(node, group, group.space, identity(node.shape))

    def _reduce(self, node: Node) -> None:
        x, row = node.inputs[0], _rows(node)
        if row is None:
            self._fold(node)
            return
        root, group = source(x), self.groups.latest_producer(node)
        if not (group and self._takes_rows(group, x, row)):
            group = self.groups.new_group("loop", Space(sides(x.shape)), first=self._fusion.floats(root))
        space = group.space
        m = space.inner[node] = identity(x.shape)
        space.row = row
        self.groups.enter(node, group, space, tuple(None if node.shape[k] == 1 else axis for k, axis in enumerate(m)))
        self._fusion.grant([(x, Place(group, space, m))])

    def _takes_rows(self, group: Group, x: Node, row: int) -> bool:
        """Return whether a group computes all of an operand row by row."""
        space, m = group.space, identity(x.shape)
        if group.kind not in ("loop", "product") or space.sides != sides(x.shape) or space.row not in (None, row):
            return False
        if group.kind == "product" and (group.core is None or len(group.core.shape) != 2 or row != 1):
            return False
        source_map = space.maps.get(source(x))
        short = prod(space.sides[row:]) <= LONGEST_ROW and not space.full
        return short and source_map is not None and map_of_source(x, m) == source_map

    def _fold(self, node: Node) -> None:
        x = node.inputs[0]
        keys = [(leaf, x.shape, node.attrs["axis"]) for leaf in self.groups.leaves([x])]
        group = self._find_fold_group(keys, self.groups.latest_producer(node))
        if group is None:
            group = self.groups.new_group("fold", Space(sides(node.shape)), core=node, head=Space(sides(x.shape)))
        else:
            group.others.append(node)
        self._folds |= dict.fromkeys(keys, group)
        self.groups.enter(node, group, group.space, identity(node.shape))
        head = group.head
        if head is not None:
            self._fusion.grant([(x, Place(group, head, identity(x.shape)))])

    def _find_fold_group(self, keys: list[tuple[Any, ...]], latest: Group | None) -> Group | None:
        """Return a group that folds the same axes of a value that reads the same, and comes after all operands."""
        groups = (self._folds[key] for key in keys if key in self._folds and prod(key[0].shape) == prod(key[1]))
        free = (g for g in groups if len(g.cores) < TOGETHER and g.head is not None and not g.head.full)
        return next((g for g in free if latest is None or g.rank > latest.rank), None)


def _operands_in_memory(node: Node) -> list[Node]:
    """Return the operands that must be in memory."""
    return list(node.inputs[:1]) if node.op in INDEXING else []


def _rows(node: Node) -> int | None:
    """Return the number of axes around the rows that a reduction reduces, or None if it reduces no last axes."""
    shape, axes = node.inputs[0].shape, node.attrs["axis"]
    kept = tuple(k for k, side in enumerate(shape) if side != 1 and k not in axes)
    gone = tuple(k for k, side in enumerate(shape) if side != 1 and k in axes)
    in_rows = not (kept and gone) or kept[-1] < gone[0]
    return len(kept) if in_rows and gone else None
