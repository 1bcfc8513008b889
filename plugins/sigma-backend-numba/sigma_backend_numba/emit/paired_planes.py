"""Write the planes and kernels of convolutions as words of two numbers of bfloat16 (see ``lower.paired_products``).

A word of planes holds the numbers of two channels at one position, or those of one channel at two neighbours.  Samples
are laid out one or two channels at a time, so that numbers of float32 stay in the first cache.
"""

from __future__ import annotations

from math import prod

from sigma_backend_numba.emit import costs
from sigma_backend_numba.emit.planes import Planes, wrap_in_loops
from sigma_backend_numba.emit.single_ops import Writer, operands
from sigma_backend_numba.emit.task import Task
from sigma_backend_numba.lower.paired_products import PAIRED
from sigma_kernel.graph import Node


def pair_channels(
    task: Task, planes: Planes, sample: str, groups: int, channels: int, excess: int
) -> tuple[str, list[str]]:
    """Return room for planes of words of two channels of a group, and lines that fill it."""
    pairs, two = -(-channels // 2), _float_planes(task, planes, 2)
    words = task.room(groups * pairs * planes.size + excess, "float32")
    lines = [f"few = min(2, {channels} - 2 * p)", *_lay_out(planes, two, sample, f"g * {channels} + 2 * p", "few")]
    lines += [f"pair_rows(at({words}, (g * {pairs} + p) * {planes.size}), {two}, few, {planes.size})"]
    return words, wrap_in_loops([("g", groups), ("p", pairs)], lines)


def pair_positions(task: Task, planes: Planes, sample: str, channels: int) -> tuple[str, int, list[str]]:
    """Return planes of numbers of bfloat16, the distance between them, and lines that fill them."""
    each, alone = -(-planes.size // 2), _float_planes(task, planes, 1)
    words = task.room(channels * each, "float32")
    lines = _lay_out(planes, alone, sample, "p", "1")
    lines += [f"pair_neighbours(at({words}, p * {each}), {alone}, 0, 1, {planes.size})"]
    return f"as_i2(address({words}))", 2 * each, wrap_in_loops([("p", channels)], lines)


def _float_planes(task: Task, planes: Planes, channels: int) -> str:
    """Return room for the planes of some channels, and for zeros beyond them."""
    return task.room(channels * planes.size + max(planes.row_elements - planes.extent, 0), "float32")


def _lay_out(planes: Planes, room: str, sample: str, first: str, channels: str) -> list[str]:
    """Return lines that copy some channels of a sample to their planes."""
    side = prod(axis.side for axis in planes.axes)
    return [f"part = at({sample}, ({first}) * {side})", *planes.write_fill(room, "part", channels, "float32")]


def write_pairs(task: Task, node: Node) -> None:
    """Write the rows of words that a kernel becomes."""
    (x,), (groups, rows, columns) = operands(task, node), node.inputs[0].shape
    task.share(costs.loop(groups * rows * columns), groups)
    places = f"at({task.storage(node)}, g * {prod(node.shape[1:])}), at({x}, g * {rows * columns})"
    call = f"pair_neighbours({places}, 0, 1, {rows})" if columns == 1 else f"pair_rows({places}, {rows}, {columns})"
    task.lines += ["for g in range(lo, hi):", f"    {call}"]


WRITERS: dict[str, Writer] = {PAIRED: write_pairs}
