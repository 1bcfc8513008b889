"""Schedule the groups in stages, and decide which values share storage.

Groups of one stage are independent of each other.  A group comes after the producers of what it reads; a group that
overwrites an input comes after all other groups that read this input.

A value may take the storage of another only if the other one has no more readers.  There are six cases:

- *The arena.*  The stage that computes the value comes after the last one that reads the other.  All groups of a stage
  may run at once, and a region runs within one stage.
- *An input that it replaces* (``updates``).  All other groups that read the input come before.  The group itself reads
  an element only at the place of its loop at which it writes it, with the same offset and strides (``_harmless``), and
  writes in the last pass over a row, because each pass reads again.  Otherwise the value is computed elsewhere and
  copied.  An input that no group reads is like an output.
- *A product and what follows it* (``loops.home``).  The product takes the storage of a value of its group with the same
  shape, dtype and map: each element is overwritten at the place at which it is read for the last time.
- *Memory for one sample* (``locals``).  All groups that write and read the value do so sample by sample
  (``sample_regions``).
- *An operand of a concat* (``within``) that nothing else reads is written to its place in the result: also a product,
  or a value that is reshaped, if operands lie one after another.  So is the value to which a ``scatter_add`` adds.
- *The carries of a scan.*  A step reads them from one buffer and writes them to another; the two alternate.

Equal shapes prove nothing: the elements of a square matrix and its transpose have different places, and so do swapped
samples and channels. The map (``axis_maps``) decides: which axis of the loop each axis follows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from itertools import chain
from math import inf, prod
from typing import TypeVar

from attrs import define, field

from sigma_backend_numba.lower.canonical import Form
from sigma_backend_numba.lower.layout import is_regular, regular, source
from sigma_backend_numba.plan.axis_maps import identity, operand, sides, values
from sigma_backend_numba.plan.fusion import Grouping
from sigma_backend_numba.plan.groups import Group, Space
from sigma_backend_numba.plan.sample_regions import Region, regions
from sigma_backend_numba.plan.strides import own_strides, strides
from sigma_kernel.graph import ALIGNMENT, BYTES, Arena, Node

Found = TypeVar("Found")
REPLACING: dict[str, int | None] = {"concat": None, "scatter_add": 1}  # operands that may be in the result


@define(eq=False)
class GroupSchedule:
    """The stages, the inputs that values overwrite, and the offsets of values in the arena."""

    form: Form
    grouping: Grouping
    groups: list[Group] = field(init=False)
    reads: dict[Group, list[Node]] = field(factory=dict, init=False)
    stored: set[Node] = field(factory=set, init=False)
    updates: dict[Node, int] = field(factory=dict, init=False)
    delivered: dict[Node, int] = field(factory=dict, init=False)  # the output that a value fills
    within: dict[Node, tuple[Node, int]] = field(factory=dict, init=False)  # the concat of an operand, and its place
    offsets: dict[Node, int] = field(factory=dict, init=False)
    arena_bytes: int = field(default=0, init=False)
    by_sample: bool = True
    stages: list[list[Region]] = field(init=False)
    regions: dict[Group, Region] = field(factory=dict, init=False)
    locals: dict[Node, int] = field(factory=dict, init=False)  # offsets in a thread's memory for one sample
    local_bytes: int = field(default=0, init=False)
    _before: dict[Group, list[Group]] = field(factory=dict, init=False)
    _followed: set[Group] = field(factory=set, init=False)  # groups that others come after
    _readers: dict[Node, list[Group]] = field(factory=dict, init=False)
    _lowest: float = field(default=inf, init=False)  # lowest level of a group that comes after one of a higher level
    _scalars: dict[Node, list[Node]] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        """Order the groups and place their values."""
        self.groups = self.grouping.groups.every
        for node in self.form.nodes:
            if node in self.grouping.free:
                self._scalars[node] = _unique(self._roots(source(x)) for x in node.inputs)
        for group in self.groups:
            self._note(group)
        self.stored |= set(self.form.outputs.values())
        self.stored |= {core for group in self.groups if group.kind != "product" for core in group.cores}
        self._levels(self._single_regions())
        for out in list(self.form.outputs):
            self._update(out)
        for out, node in self.form.outputs.items():
            self.delivered.setdefault(node, out)
        self.stages = self._order_regions()
        for group in self.groups:
            if group.core is not None and group.op in REPLACING:
                self._place_operands(group, group.core)
        self._allocate()

    # -- readers -------------------------------------------------------------------------------------------------------
    def _roots(self, root: Node) -> list[Node]:
        """Return the values that are read from memory for a value: a free scalar is computed from inputs."""
        return self._scalars.get(root, [root])

    def _note(self, group: Group) -> None:
        """Record which values a group reads from memory."""
        self.reads[group] = _unique(self._roots(source(x)) for x in group.operands)
        roots = [root for root in self.reads[group] if root in self.grouping.groups.of]
        for root in self.reads[group]:
            self._readers.setdefault(root, []).append(group)
        self._before[group] = _unique([[self.grouping.groups.of[root] for root in roots]])
        self._followed.update(self._before[group])
        self.stored.update(roots)

    # -- updates in place ----------------------------------------------------------------------------------------------
    def _update(self, out: int) -> None:
        """Let an output take its input's storage, or copy it there after all other reads of the input."""
        place, node = self.form.frame.targets[out], self.form.outputs[out]
        if place is None:
            return
        given = self.form.graph.inputs[place]
        group = self.grouping.groups.of[node]
        readers = self._other_readers(given, group)
        unread = not self._readers.get(given)  # like an output
        if not (unread or _harmless(group, node, given)) or self._depends(readers, {group}):
            copy = Node("copy", (node,), {}, node.shape, node.dtype)
            space = Space(sides(node.shape), {copy: identity(node.shape)})
            group = Group("loop", Fraction(0), space, level=group.level + 1)
            self.form.outputs[out] = copy
            self.groups.append(group)
            self.grouping.groups.of[copy] = group
            self._note(group)
            self.stored.add(copy)
            node, readers = copy, self._other_readers(given, group)
        self.updates[node] = place
        self._before[group] = _unique([self._before[group], readers])
        self._followed.update(readers)
        if any(reader.level > group.level for reader in readers):
            self._lowest = min(self._lowest, group.level)

    def _other_readers(self, given: Node, group: Group) -> list[Group]:
        return [reader for reader in self._readers.get(given, []) if reader is not group]

    def _depends(self, groups: Iterable[Group], on: Collection[Group]) -> bool:
        """Return whether some of these groups come after, or are among, some of the others.

        Few dependencies have higher levels: the search does not go below the lowest level of the others, nor of a group
        with such a dependency.
        """
        lowest, wanted = min([self._lowest, *(group.level for group in on)]), set(on)
        if self._followed.isdisjoint(wanted):
            return not wanted.isdisjoint(groups)
        seen: set[Group] = set()
        waiting = [*groups]
        while waiting:
            candidate = waiting.pop()
            if candidate in wanted:
                return True
            if candidate not in seen and candidate.level >= lowest:
                seen.add(candidate)
                waiting += self._before[candidate]
        return False

    # -- order ---------------------------------------------------------------------------------------------------------
    def _order_regions(self) -> list[list[Region]]:
        """Return the regions of each stage: sample regions unless they create a cycle, else single groups."""
        alone, self._lowest = self._levels(self._single_regions()), inf
        order = [region.groups[0] for stage in alone or () for region in stage]
        free = [group for group in order if not any(node in self.updates for node in group.members)]
        joined = regions(free, self.stored, self._before, self._depends) if self.by_sample else []
        self.regions = {group: region for region in joined for group in region.groups}
        stages = self._levels({group: self.regions.get(group) or Region(1, [group]) for group in self.groups})
        if stages is None:
            self.regions, stages = {}, self._levels(self._single_regions())  # the regions have changed levels
        if stages is None:
            raise AssertionError("the dependencies of the groups form a cycle")
        return stages

    def _single_regions(self) -> dict[Group, Region]:
        return {group: Region(1, [group]) for group in self.groups}

    def _levels(self, home: Mapping[Group, Region]) -> list[list[Region]] | None:
        """Return the regions by the length of the longest path to each, or None if there is a cycle."""
        every = list(dict.fromkeys(home[group] for group in self.groups))
        before = {r: {home[other] for group in r.groups for other in self._before[group]} - {r} for r in every}
        after: dict[Region, list[Region]] = {region: [] for region in every}
        for region, others in before.items():
            for other in others:
                after[other].append(region)
        left = {region: len(others) for region, others in before.items()}
        ready = [region for region in every if not left[region]]
        stages: list[list[Region]] = []
        while ready:
            stages.append(ready)
            following = []
            for region in ready:
                for group in region.groups:
                    group.level = len(stages) - 1
                for other in after[region]:
                    left[other] -= 1
                    if not left[other]:
                        following.append(other)
            ready = following
        return None if any(left.values()) else stages

    # -- memory --------------------------------------------------------------------------------------------------------
    def _place_operands(self, group: Group, whole: Node) -> None:
        """Let operands be written to their places in a result, if nothing else reads them."""
        axis, begin, each = whole.attrs["axis"], 0, regular(whole.shape).strides
        overwrites = whole in self.updates and bool(self._readers.get(self.form.graph.inputs[self.updates[whole]]))
        alone = group not in self.regions and not overwrites and whole not in self.within
        joined = _is_joined(whole)
        for part in whole.inputs[: REPLACING[whole.op]]:
            x = source(part) if joined and _shows_all(part) else part
            producer, place = self.grouping.groups.of.get(x), begin * each[axis]
            begin += part.shape[axis]
            if not alone or producer is None or x in self.delivered or x not in self.stored:
                continue
            fixed = x in {*producer.cores} and not (joined and producer.kind == "product")
            once = sum(source(y) is x for y in whole.inputs) == 1 and self._readers.get(x) == [group]
            if once and not fixed and producer.kind != "plain" and producer not in self.regions:
                self.within[x] = whole, place

    def spread(self, node: Node) -> Node:
        """Return the value whose strides a node has in memory: its own, unless its rows lie between those of others."""
        whole, _ = self.within.get(node, (node, 0))
        return node if whole is node or _is_joined(whole) else whole

    def _allocate(self) -> None:
        """Place everything but inputs and outputs in the arena: first fit by lifetime, large values first."""
        self._keep_near()
        elsewhere = {*self.delivered, *self.locals, *self.within}
        lives = {node: [self._born(node), self.grouping.groups.of[node].level] for node in self.stored - elsewhere}
        for group in self.groups:
            for root in self.reads[group]:
                if root in lives:
                    lives[root][1] = max(lives[root][1], group.level)
        order = {node: i for i, node in enumerate(self.form.nodes)}
        arena = Arena()
        for node in sorted(lives, key=lambda node: (-_bytes_of(node), order[node])):
            if node.dtype != "tuple":
                self.offsets[node] = arena.place(_bytes_of(node), *lives[node])
        self.arena_bytes = arena.size

    def _keep_near(self) -> None:
        """Reserve memory for one sample, per thread, for values that only their own region reads."""
        readers: dict[Node, set[Region | None]] = {}
        for group in self.groups:
            for root in self.reads[group]:
                readers.setdefault(root, set()).add(self.regions.get(group))
        for region in dict.fromkeys(self.regions.values()):
            end = 0
            nodes = (node for group in region.groups for node in group.own_nodes if node in self.stored)
            for node in nodes:
                own = node not in self.delivered and node.shape[:1] == (region.samples,)
                if own and node.op != "kernel_parts" and readers.get(node) == {region}:
                    self.locals[node] = end
                    end += -(-_bytes_of(node) // region.samples // ALIGNMENT) * ALIGNMENT + ALIGNMENT
            self.local_bytes = max(self.local_bytes, end)

    def _born(self, node: Node) -> int:
        """Return the stage in which a value is computed: for a part of a scan, that of the scan.

        A result is computed when the first of the operands is that is written to its place in it.
        """
        producer = node.inputs[0] if node.op == "part" else node
        operands = {*node.inputs, *map(source, node.inputs)} if node.op in REPLACING else ()
        placed = (x for x in operands if self.within.get(x, (None,))[0] is node)
        return min(self.grouping.groups.of[x].level for x in (producer, *placed))


def _is_joined(whole: Node) -> bool:
    """Return whether the operands of a concat lie one after another in memory."""
    return prod(whole.shape[: whole.attrs["axis"]]) == 1


def _shows_all(view: Node) -> bool:
    """Return whether a view shows all elements of its source in their order."""
    return is_regular(view) and prod(view.shape) == prod(source(view).shape)


def _bytes_of(node: Node) -> int:
    """Return the bytes that a value takes, in whole cache lines, plus one line that separates neighbours."""
    size = prod(node.shape) * BYTES.get(node.dtype, 0)
    return -(-(size + ALIGNMENT) // ALIGNMENT) * ALIGNMENT


def _unique(found: Iterable[Iterable[Found]]) -> list[Found]:
    """Return each item once, in order: programs must not depend on addresses in memory."""
    return [*dict.fromkeys(chain.from_iterable(found))]


def _harmless(group: Group, node: Node, given: Node) -> bool:
    """Return whether a group may write a node over an input: it reads each element only where it writes it.

    The nest of the operands of folds reads all of them, while another thread has begun to write.
    """
    space, head = group.space, group.head.maps if group.head else {}
    if group.kind == "plain" or node not in space.maps:
        return False
    wanted, cores = own_strides(node, space.maps[node], space.sides), {*group.cores}
    for member in group.members:
        for position, x in enumerate(member.inputs):
            if source(x) is not given:
                continue
            if node in cores or member in cores or member in head or member not in space.maps:
                return False
            if position not in values(member):
                return False
            m = space.inner[member] if member in space.inner else operand(member, position, space.maps[member])
            if strides(x, m, space.sides) != wanted:
                return False
    return True
