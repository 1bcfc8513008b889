"""Write the tasks of loops and folds, and the epilogue of matrix products."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from sigma_backend_numba.emit import costs
from sigma_backend_numba.emit.addresses import Address
from sigma_backend_numba.emit.blocks import sums_many
from sigma_backend_numba.emit.loop_nest import Nest, starting
from sigma_backend_numba.emit.nest_loops import Fold
from sigma_backend_numba.emit.task import Task, short, size
from sigma_backend_numba.lower.layout import regular
from sigma_backend_numba.plan.axis_maps import identity
from sigma_backend_numba.plan.strides import nest_strides, own_strides
from sigma_backend_numba.scalars import COSTLY
from sigma_kernel.graph import Node

ALONE = 4096  # elements folded between writes to one cache line, so that threads may share it


def stored_members(task: Task) -> list[Node]:
    """Return the members that other groups read or that are outputs."""
    group = task.group
    return [node for node in group.space.maps if node in task.schedule.stored and node not in group.repeated]


def loop(task: Task) -> None:
    """Write a group of elementwise nodes and row reductions."""
    space = task.group.space
    costly = any(node.op in COSTLY for node in space.maps)
    extent = space.sides[0] if space.sides and space.row != 0 else 1
    task.share(costs.loop(prod(space.sides), costly), extent)
    ranges = {0: ("lo", "hi")} if space.sides and space.row != 0 else {}
    outs = stored_members(task)
    late = frozenset(node for node in outs if node in task.schedule.updates)
    task.lines += Nest(task, space, outs, ranges, late=late).lines()


def home(task: Task, core: Node) -> Node | None:
    """Return a value with the same map, whose storage a product may use before that value is written."""
    if core in task.schedule.stored:
        return core
    maps = task.group.space.maps
    fit = (
        node
        for node in stored_members(task)
        if (node.shape, node.dtype, maps[node]) == (core.shape, core.dtype, maps[core])
        and node not in task.schedule.updates
        and task.schedule.spread(node) is node
    )
    return next(fit, None)


def epilogue(
    task: Task, core: Node, pointer: str, offset: str, ranges: Mapping[int, tuple[str, str]],
    each: tuple[int, ...] | None = None,
) -> list[str]:  # fmt: skip
    """Return the epilogue of a product: its elementwise work, over ranges of its axes.

    ``each`` holds the distances between neighbours along the axes of the product, unless it is contiguous.
    """
    space, outs = task.group.space, [node for node in stored_members(task) if node is not core]
    if not outs:
        return []
    steps = nest_strides(each or regular(core.shape).strides, space.maps[core], space.sides)
    kept = [k for k, side in enumerate(core.shape) if side != 1]
    around = {kept.index(axis): ends for axis, ends in ranges.items() if axis in kept}
    return Nest(task, space, outs, around, {core: Address(pointer, offset, steps)}, frozenset(outs)).lines()


def fold(task: Task) -> None:
    """Write reductions over leading axes: they accumulate in memory, then their consumers are computed."""
    group, cores = task.group, task.group.cores
    if group.head is None:
        raise AssertionError("a fold has a head")
    space, head, shape = group.space, group.head, cores[0].inputs[0].shape
    m = tuple(None if cores[0].shape[k] == 1 else axis for k, axis in enumerate(identity(shape)))
    kept = [axis for axis in m if axis is not None]
    ranges = {kept[0]: ("lo", "hi")} if kept else {}
    run = prod(head.sides[kept[0] + 1 :]) if kept else 1  # elements folded before the next of the result is written
    least = max(1, min(16, ALONE // run)) if len(space.sides) == 1 else 1
    task.share(costs.loop(prod(head.sides)), space.sides[0] if kept else 1, least)
    width = prod(space.sides[1:])
    every = f"for q in range(lo * {width}, hi * {width}):"
    folds = [_fold(task, core, own_strides(core, m, head.sides)[1]) for core in cores]
    for fold in folds:
        sums, start = (fold.total, "f8(0)") if fold.total else (fold.to, starting(fold.core))
        task.lines += [every, f"    {sums.pointer}[q] = {start}"]
    outs = [node for node in head.maps if node in task.schedule.stored and node not in group.repeated]
    task.lines += Nest(task, head, outs, ranges, folds=folds).lines()
    for fold in folds:
        if fold.total:
            rounded = f"{short(fold.core)}({fold.total.pointer}[q])"
            task.lines += [every, f"    {task.storage(fold.core)}[q] = {rounded}"]
    outs = [node for node in stored_members(task) if node not in {*cores}]
    if outs:
        steps = [own_strides(core, space.maps[core], space.sides)[1] for core in cores]
        over = {core: Address(task.storage(core), "", each) for core, each in zip(cores, steps, strict=True)}
        task.lines += Nest(task, space, outs, {0: ("lo", "hi")} if kept else {}, over).lines()


def _fold(task: Task, core: Node, steps: tuple[int, ...]) -> Fold:
    """Return the places of a fold's sums: those of blocks, and their totals, in memory of the thread."""
    if not sums_many(core):
        return Fold(core, core.inputs[0], Address(task.storage(core), "", steps))
    part, total = (Address(task.room(size(core), dtype), "", steps) for dtype in (core.dtype, "float64"))
    return Fold(core, core.inputs[0], part, total)
