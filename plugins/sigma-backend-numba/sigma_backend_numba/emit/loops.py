"""Write the tasks of loops and folds, and the epilogue of matrix products."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from sigma_backend_numba.emit import costs
from sigma_backend_numba.emit.addresses import Address
from sigma_backend_numba.emit.loop_nest import Fold, Nest, starting
from sigma_backend_numba.emit.task import Task
from sigma_backend_numba.lower.layout import regular
from sigma_backend_numba.plan.axis_maps import identity
from sigma_backend_numba.plan.strides import own_strides, spread
from sigma_backend_numba.scalars import COSTLY
from sigma_kernel.graph import Node


def stored(task: Task) -> list[Node]:
    """Return the members that other groups read or that are outputs."""
    return [node for node in task.group.space.maps if node in task.schedule.stored]


def loop(task: Task) -> None:
    """Write a group of elementwise nodes and row reductions."""
    space = task.group.space
    costly = any(node.op in COSTLY for node in space.maps)
    extent = space.sides[0] if space.sides and space.row != 0 else 1
    task.share(costs.loop(prod(space.sides) * (4 if costly else 1)), extent)
    ranges = {0: ("lo", "hi")} if space.sides and space.row != 0 else {}
    late = frozenset(task.schedule.updates)
    task.lines += Nest(task, space, stored(task), ranges, late=late).lines()


def home(task: Task, core: Node) -> Node | None:
    """Return a value with the same map, whose storage a product may use before that value is written."""
    if core in task.schedule.stored:
        return core
    maps = task.group.space.maps
    fit = (
        node
        for node in stored(task)
        if (node.shape, node.dtype, maps[node]) == (core.shape, core.dtype, maps[core])
        and node not in task.schedule.updates
        and node not in task.schedule.within
    )
    return next(fit, None)


def epilogue(
    task: Task, core: Node, pointer: str, offset: str, ranges: Mapping[int, tuple[str, str]],
    each: tuple[int, ...] | None = None,
) -> list[str]:  # fmt: skip
    """Return the epilogue of a product: its elementwise work, over ranges of its axes.

    ``each`` holds the distances between neighbours along the axes of the product, unless it is contiguous.
    """
    space, outs = task.group.space, [node for node in stored(task) if node is not core]
    if not outs:
        return []
    steps = spread(each or regular(core.shape).strides, space.maps[core], space.sides)
    kept = [k for k, side in enumerate(core.shape) if side != 1]
    around = {kept.index(axis): ends for axis, ends in ranges.items() if axis in kept}
    late = frozenset({*task.schedule.updates, *outs})
    return Nest(task, space, outs, around, {core: Address(pointer, offset, steps)}, late).lines()


def fold(task: Task) -> None:
    """Write a reduction over leading axes: it accumulates in memory, then its consumers are computed."""
    group, core = task.group, task.group.core
    if core is None or group.head is None:
        raise AssertionError("a fold has a core and a head")
    space, head, value = group.space, group.head, core.inputs[0]
    m = tuple(None if core.shape[k] == 1 else axis for k, axis in enumerate(identity(value.shape)))
    _, steps = own_strides(core, m, head.sides)
    target = task.storage(core)
    kept = [axis for axis in m if axis is not None]
    ranges = {kept[0]: ("lo", "hi")} if kept else {}
    task.share(costs.loop(prod(head.sides)), space.sides[0] if kept else 1, 16 if len(space.sides) == 1 else 1)
    width = prod(space.sides[1:])
    task.lines += [f"for q in range(lo * {width}, hi * {width}):", f"    {target}[q] = {starting(core)}"]
    outs = [node for node in head.maps if node in task.schedule.stored]
    task.lines += Nest(task, head, outs, ranges, fold=Fold(core, value, Address(target, "", steps))).lines()
    outs = [node for node in stored(task) if node is not core]
    if outs:
        over = {core: Address(target, "", own_strides(core, space.maps[core], space.sides)[1])}
        around = {0: ("lo", "hi")} if kept else {}
        task.lines += Nest(task, space, outs, around, over).lines()
