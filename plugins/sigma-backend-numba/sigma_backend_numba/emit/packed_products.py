"""Write products with packed matrices (see ``packing``): a tile of a few rows and one panel stays in registers."""

from __future__ import annotations

from sigma_backend_numba.compiler.tile_sizes import AT_ONCE
from sigma_backend_numba.emit import costs
from sigma_backend_numba.emit.loops import epilogue, home
from sigma_backend_numba.emit.register_tiles import broadcast, covering, wide
from sigma_backend_numba.emit.single_ops import operands
from sigma_backend_numba.emit.task import Task, indent
from sigma_backend_numba.scalars import literal
from sigma_kernel.graph import BYTES, Node

DEPTHS = {1: (6, 5, 4, 3), 2: (8, 7, 6, 5)}  # rows of a tile, for panels of one vector and of two: the first that
# divides the number of rows, else the first


def write_packed_product(task: Task, node: Node) -> None:
    """Write the product and the elementwise work that follows it."""
    (rows, columns), inner = node.shape, node.inputs[0].shape[1]
    place = home(task, node)
    to = task.storage(place) if place is not None else task.room(rows * columns, node.dtype)
    left, panels = operands(task, node)
    task.share(costs.product(2.0 * rows * columns * inner), 1)
    task.lines += [f"left = {left}", f"panels = {panels}", f"to = {to}"]
    width = node.inputs[1].shape[2]
    lanes = AT_ONCE // BYTES[node.dtype]
    whole = [(place, lanes) for place in range(0, width, lanes)]
    for begin, end, parts in ((0, columns // width, whole), (columns // width, None, _narrow(columns % width, lanes))):
        last = end if end is not None else begin + bool(columns % width)
        if last > begin:
            task.lines += [f"for p in range({begin}, {last}):", *indent(_panel(node, parts))]
    task.lines += epilogue(task, node, to, "", {})


def _narrow(columns: int, lanes: int) -> list[tuple[int, int]]:
    """Split the columns of the last panel into starts and widths of vectors, which may overlap."""
    whole = [(place, lanes) for place in range(0, columns // lanes * lanes, lanes)]
    rest = columns % lanes
    return whole + [(columns // lanes * lanes + place, width) for place, width in covering(rest)] if rest else whole


def _panel(node: Node, parts: list[tuple[int, int]]) -> list[str]:
    """Return all rows of one panel."""
    rows, depths = node.shape[0], DEPTHS[node.inputs[1].shape[2] * BYTES[node.dtype] // AT_ONCE]
    deep = next((d for d in depths if rows % d == 0), depths[0])
    lines: list[str] = []
    if rows >= deep:
        lines += [f"for i in range(0, {rows // deep * deep}, {deep}):", *indent(_tile(node, deep, parts))]
    if rows % deep:
        lines += [f"for i in range({rows // deep * deep}, {rows}, {rows % deep}):"]
        lines += indent(_tile(node, rows % deep, parts))
    return lines


def _tile(node: Node, deep: int, parts: list[tuple[int, int]]) -> list[str]:
    """Return the lines of one tile: some rows from i on, panel p."""
    (_, columns), (_, inner, width), dtype = node.shape, node.inputs[1].shape, node.dtype
    sums = [(r, place, count, f"s{r}_{place}_{count}") for r in range(deep) for place, count in parts]
    start = [f"{name} = {broadcast(count, literal(0, dtype))}" for _, _, count, name in sums]
    body = [f"l{r} = left[(i + {r}) * {inner} + q]" for r in range(deep)]
    body += [
        f"b{place}_{count} = {wide(count, 'panels', f'(p * {inner} + q) * {width} + {place}')}"
        for place, count in parts
    ]
    body += [f"{name} += {broadcast(count, f'l{r}')} * b{place}_{count}" for r, place, count, name in sums]
    ends = [f"put(at(to, (i + {r}) * {columns} + p * {width} + {place}), {name})" for r, place, _, name in sums]
    return [*start, f"for q in range({inner}):", *indent(body), *ends]
