"""Sample regions: tasks that run one after another on one sample while it is in the cache, then on the next.

Convolutions and pooling compute sample by sample, and so do most loops around them.  If everything that a group leaves
in memory is computed sample by sample, and every reader within a region reads only from the same sample, the tasks of
the region alternate: a value with no other reader takes memory for one sample.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import prod

from attrs import define, field

from sigma_backend_numba.lower.layout import is_regular, require_layout, source
from sigma_backend_numba.plan.axis_maps import operand, values
from sigma_backend_numba.plan.groups import Group
from sigma_kernel.graph import Node, select_ops

POOLS = select_ops(entries="pooled")
BY_SAMPLE = {  # operands that are read sample by sample
    "convolution": (0,), "convolution_input": (0,), "kernel_parts": (0, 1), **dict.fromkeys(POOLS, (0, 1)),
}  # fmt: skip
Depends = Callable[[Iterable[Group], Collection[Group]], bool]  # whether any of the first depends on any of the second


@define(eq=False)
class Region:
    """Groups in the order in which they alternate; ``parts`` is set if each part of a batch has a partial sum."""

    samples: int
    groups: list[Group] = field(factory=list)
    parts: int | None = None

    def worthwhile(self) -> bool:
        """Return whether the region has a member that loop fusion could not have joined."""
        return len(self.groups) > 1 and any(group.op in BY_SAMPLE for group in self.groups)


def regions(
    groups: Sequence[Group], stored: set[Node], before: Mapping[Group, Sequence[Group]], depends: Depends
) -> list[Region]:
    """Return regions of two groups or more; ``groups`` are ordered, producers first."""
    candidates: list[Region] = []
    home: dict[Group, Region] = {}
    for group in groups:
        samples = _samples(group, stored)
        if samples is None:
            continue
        near = {id(home[other]): home[other] for other in before[group] if other in home}
        fitting = (r for r in near.values() if r.samples == samples and _joins(group, r, home, before, depends))
        region = next(fitting, None)
        if region is None:
            candidates.append(region := Region(samples))
        region.groups.append(group)
        region.parts = _parts(group) or region.parts
        home[group] = region
    return [region for region in candidates if region.worthwhile()]


def _parts(group: Group) -> int | None:
    core = group.core
    return int(core.attrs["parts"]) if core is not None and core.op == "kernel_parts" else None


def _samples(group: Group, stored: set[Node]) -> int | None:
    """Return the number of samples that a group computes one by one, or None if it does not."""
    core, space = group.core, group.space
    if group.op in BY_SAMPLE and core is not None:
        samples = core.inputs[1].shape[0] if core.op == "kernel_parts" else core.shape[0]
    elif group.kind == "loop" and space.sides and space.row != 0:
        samples = space.sides[0]
    else:
        return None
    nodes = [node for node in space.maps if node in stored and node not in group.repeated]
    around = [node for node in nodes if node is not core]  # the core of a group was checked above
    by_sample = all(node.shape[:1] == (samples,) and space.maps[node][0] == 0 for node in around)
    return samples if samples > 1 and by_sample and nodes else None


def _joins(
    group: Group,
    region: Region,
    home: Mapping[Group, Region],
    before: Mapping[Group, Sequence[Group]],
    depends: Depends,
) -> bool:
    """Return whether a group can alternate with the groups of a region."""
    if region.parts and _parts(group) not in (None, region.parts):
        return False
    inside = [other for other in before[group] if home.get(other) is region]
    outside = [other for other in before[group] if home.get(other) is not region]
    if depends(outside, region.groups):
        return False
    return all(_same_sample(group, node, region.samples) for other in inside for node in _read(group, other))


def _read(group: Group, other: Group) -> set[Node]:
    """Return the values that a group reads from another."""
    nodes = set(other.own_nodes)
    return {source(x) for node in group.members for x in node.inputs} & nodes


def _same_sample(group: Group, made: Node, samples: int) -> bool:
    """Return whether a group reads, of a value, only the sample that it is computing."""
    if made.shape[:1] != (samples,) or made.op == "kernel_parts":
        return False
    whole, space = prod(made.shape[1:]), group.space
    for node in group.members:
        for position, x in enumerate(node.inputs):
            if source(x) is not made:
                continue
            if node is group.core:
                whole_samples = is_regular(x) and x.shape[:1] == (samples,) and prod(x.shape[1:]) == whole
                if not whole_samples or position not in BY_SAMPLE.get(node.op, ()):
                    return False
            elif (
                node not in space.maps
                or position not in values(node)
                or not _is_within_sample(group, node, position, whole)
            ):
                return False
    return True


def _is_within_sample(group: Group, node: Node, position: int, whole: int) -> bool:
    """Return whether a nest reads an operand from a single sample at each index of its first axis."""
    space, x = group.space, node.inputs[position]
    m = space.inner.get(node) or operand(node, position, space.maps[node])
    placement, steps = require_layout(x), [0] * len(space.sides)
    for axis, stride in zip(m, placement.strides, strict=True):
        if axis is not None:
            steps[axis] += stride
    reach = placement.offset + sum((side - 1) * step for side, step in zip(space.sides[1:], steps[1:], strict=True))
    return steps[0] == whole and min(steps) >= 0 and placement.offset >= 0 and reach < whole
