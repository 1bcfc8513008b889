"""Write convolutions and their gradients as products over planes, one sample at a time.

A convolution multiplies the kernel with its operand's planes.  The gradient of the operand is one convolution of the
result's gradient for each remainder of the stride, with those elements of the kernel that reach it.  The gradient of
the kernel sums, over all positions, the planes times the gradient, transposed so that filters lie side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from sigma_backend_numba.emit import costs
from sigma_backend_numba.emit.loops import epilogue
from sigma_backend_numba.emit.paired_planes import pair_channels, pair_positions
from sigma_backend_numba.emit.planes import Axis, Planes, wrap_in_loops
from sigma_backend_numba.emit.shifted_products import Dots, KernelSlopes, Shifts, rows, transpose_in_squares
from sigma_backend_numba.emit.single_ops import Writer, operands
from sigma_backend_numba.emit.task import Task, indent
from sigma_backend_numba.emit.windows import Windows, windows
from sigma_backend_numba.lower.paired_products import PAIRED
from sigma_backend_numba.lower.tiled_convolutions import TILED
from sigma_backend_numba.scalars import literal
from sigma_kernel.graph import BYTES, Node

ROW = 2  # estimated cycles to begin a row of a plane
MANY = 4  # channels of a group from which tiles of the gradient of a kernel have a single element of the windows: LLVM
# would keep the reads of one position for the next one, in registers that the sums need
FEW = 4  # filters of a group below which positions, not filters, are contiguous in the gradient of a kernel


def convolution(task: Task, node: Node) -> None:
    """Write the kernel times the planes of each sample, and the epilogue while the result is in the cache."""
    x, w = operands(task, node)
    how = windows(node, node.inputs[0].shape, _kernel_shape(node), node.shape)
    (channels, filters), samples, paired = how.group_sides, node.shape[0], PAIRED in node.attrs
    task.share(costs.product(samples * how.work), samples)
    deep = _term_count(channels, paired)

    def shifts_over(planes: Planes) -> Shifts:
        positions = planes.distances(how.result)
        return Shifts(node.dtype, filters, positions, deep, deep * how.taps, how.taps, planes.size, paired)

    planes = _quicker(how, how.planes(), how.copies(), shifts_over)
    product = shifts_over(planes)
    room, filled = _fill_planes(task, planes, product, how.groups, channels, "sample")
    far, sums = task.room(how.taps, "int64"), task.room(how.filters * product.row_length, node.dtype)
    lines = [f"sample = at({x}, n * {prod(node.inputs[0].shape[1:])})", *filled]
    lines += [*_distances(how, planes, far), f"for g in range({how.groups}):"]
    right, to = f"at({room}, g * {deep * planes.size})", f"at({sums}, g * {filters * product.row_length})"
    if node.attrs.get(TILED):
        lines += indent(_tile_lines(task, product, how, f"at({w}, g * {filters * channels})", right, to, "", far))
    else:
        left = f"at({w}, g * {filters * deep * how.taps})"
        lines += indent(product.lines(left, right, to, "t", far, str(how.taps)))
    if node in task.schedule.stored:
        result = f"at({task.storage(node)}, n * {prod(node.shape[1:])})"
        lines += [
            f"result = {result}",
            *_tight(planes, how).write_back(sums, product.row_length, "result", how.filters, node.dtype),
        ]
        lines += epilogue(task, node, task.storage(node), "", {0: ("n", "n + 1")})
    else:
        steps = (0, product.row_length, *planes.steps)
        lines += epilogue(task, node, sums, "", {0: ("n", "n + 1")}, steps)
    task.lines += ["for n in range(lo, hi):", *indent(lines)]


def convolution_input(task: Task, node: Node) -> None:
    """Write the gradient of the operand."""
    (g, w), out = operands(task, node), task.storage(node)
    how = windows(node, node.shape, _kernel_shape(node), node.inputs[0].shape)
    (channels, filters), samples, paired = how.group_sides, node.shape[0], PAIRED in node.attrs
    task.share(costs.product(samples * how.work), samples)
    deep = _term_count(filters, paired)

    def shifts_over(slopes: Planes) -> Shifts:
        positions = slopes.distances(how.remainder_sides)
        return Shifts(node.dtype, channels, positions, deep, how.taps, channels * how.taps, slopes.size, paired)

    slopes = _quicker(how, how.slopes(), how.slope_copies(), shifts_over)
    product, inside = shifts_over(slopes), how.operand(slopes)
    room, filled = _fill_planes(task, slopes, product, how.groups, filters, "slope")
    near, far = task.room(how.taps, "int64"), task.room(how.taps, "int64")
    sums = task.room(how.channels * product.row_length, node.dtype)
    right, to = f"at({room}, g * {deep * slopes.size})", f"at({sums}, g * {channels * product.row_length})"
    each = [*_reaching(how, slopes, near, far), f"for g in range({how.groups}):"]
    if node.attrs.get(TILED):
        each += indent(_tile_lines(task, product, how, f"at({w}, g * {filters})", right, to, near, far))
    else:
        left = f"at({w}, g * {deep * channels * how.taps})"
        each += indent(product.lines(left, right, to, f"{near}[t]", far, "taps"))
    each += inside.write_back(sums, product.row_length, "sample", how.channels, node.dtype)
    lines = [
        f"slope = at({g}, n * {prod(node.inputs[0].shape[1:])})",
        f"sample = at({out}, n * {prod(node.shape[1:])})",
    ]
    lines += filled
    lines += wrap_in_loops([(f"r{k}", side) for k, side in enumerate(how.stride)], each)
    task.lines += ["for n in range(lo, hi):", *indent(lines)]


def _kernel_shape(node: Node) -> Sequence[int]:
    """Return the shape of a kernel, whose elements of the windows come first for tiles of bfloat16."""
    shape = node.inputs[1].shape
    if not node.attrs.get(TILED):
        return node.attrs.get(PAIRED) or shape
    rows, inner = shape[-2:]
    return (rows, inner, *shape[:-2]) if node.op == "convolution" else (inner, rows, *shape[:-2])


def _term_count(rows: int, paired: bool) -> int:
    """Return the number of rows that a product sums over: rows of words, if they are paired."""
    return -(-rows // 2) if paired else rows


def _fill_planes(
    task: Task, planes: Planes, product: Shifts, groups: int, rows: int, sample: str
) -> tuple[str, list[str]]:
    """Return room for the planes of all groups, and lines that fill it."""
    if product.paired:
        return pair_channels(task, planes, sample, groups, rows, product.excess)
    room = _planes(task, planes, groups * rows, product.excess, product.dtype)
    return room, planes.write_fill(room, sample, groups * rows, product.dtype)


def _tile_lines(
    task: Task, product: Shifts, how: Windows, left: str, right: str, to: str, near: str, far: str
) -> list[str]:
    """Return lines that multiply in tiles of bfloat16; without ``near``, all elements of the windows in order."""
    rows, inner, back = product.rows, product.channels, bool(near)
    down = inner * how.groups if back else inner
    apart = rows * inner * how.groups
    high, deep = -(-rows // 32), -(-inner // 32)
    words = 16 + 5 * 256 + 512 * high * deep * how.taps  # of the tiles, see ``tile_shifts``
    words += 16 * deep * product.plane + product.excess + 64
    lines = list[str]()
    if not back:
        near = task.room(how.taps, "int64")
        lines += [f"for t in range({how.taps}):", f"    {near}[t] = t"]
    taps, room = "taps" if back else how.taps, task.room(words, "float32")
    given = f"{left}, {apart}, {down}, {near}, {right}, {product.plane}, {far}, {taps}"
    return [*lines, f"tile_shifts({given}, {to}, {product.row_length}, {room}, {rows}, {inner})"]


def kernel_parts(task: Task, node: Node) -> None:
    """Write the gradient of the kernel in parts: each sums over a range of samples."""
    (x, g), out = operands(task, node), task.storage(node)
    how = windows(node, node.inputs[0].shape, node.shape[1:], node.inputs[1].shape)
    samples, whole, dtype = node.inputs[1].shape[0], prod(node.shape[1:]), node.dtype
    task.cost = costs.product(samples * how.work)
    task.chunks = task.parts = node.attrs["parts"]
    task.extent = samples
    planes, each = how.planes(), how.planes().size
    if paired := PAIRED in node.attrs:
        room, each, filled = pair_positions(task, planes, "sample", how.channels)
    else:
        room = _planes(task, planes, how.channels, 0, dtype)
        filled = planes.write_fill(room, "sample", how.channels, dtype)
    if paired or how.group_sides[1] >= FEW:
        sums, last = _sums(task, how, planes, room, each, dtype, paired)
    else:
        sums, last = _add_channel_by_channel(task, how, planes, room, dtype)
    every, pieces = task.number(samples), task.number(task.chunks)
    begin, end = (f"({part}) * {every} // {pieces}" for part in ("ch", "ch + 1"))
    task.lines += [
        f"total = at({out}, ch * {whole})", f"if lo == {begin}:",
        f"    for q in range({whole}):", f"        total[q] = {literal(0, dtype)}", "for n in range(lo, hi):",
        f"    sample = at({x}, n * {prod(node.inputs[0].shape[1:])})",
        f"    slope = at({g}, n * {prod(node.inputs[1].shape[1:])})", *indent([*filled, *sums]),
        *([f"if hi == {end}:", *indent(last)] if last else []),
    ]  # fmt: skip


def _sums(
    task: Task, how: Windows, planes: Planes, room: str, plane: int, dtype: str, paired: bool
) -> tuple[list[str], list[str]]:
    """Return what adds a sample to sums of windows, filters side by side, and what puts these into order at the end."""
    (channels, filters), positions = how.group_sides, rows(how.result, planes.steps)
    last = how.rank - (channels < MANY)
    near = [how.number(planes, last, tap) for tap in range(how.kernel[last])] if last < how.rank else [0]
    outer = [(f"k{k}", side) for k, side in enumerate(how.kernel[:last])]
    product = KernelSlopes(dtype, filters, positions, channels, plane, how.taps, near, paired)
    turned, each = task.room(how.groups * product.blocks_size, dtype), channels * how.taps * filters
    left, slope = f"at({turned}, g * {product.blocks_size})", f"at(slope, g * {prod(how.result) * filters})"
    right = f"at({room}, {_sum(f'g * {channels * plane}', *_outer_distances(how, planes, last))})"
    to = f"at(total, g * {each} + {_number(outer)} * {len(near) * filters})"
    lines = list[str]()
    if paired:
        words = task.room(product.blocks_size, dtype)
        width = positions.width
        lines.append(f"pair_neighbours({words}, {slope}, {width}, {filters * positions.rows}, {width})")
        slope = words
    lines += [*product.write_blocks(left, slope), *wrap_in_loops(outer, product.lines(left, right, to))]
    sums, group = task.room(each, dtype), f"at(total, g * {each})"
    ends = [f"copied({sums}, {group}, {each * BYTES[dtype]})"]
    ends += transpose_in_squares(group, sums, channels * how.taps, filters, dtype)
    return wrap_in_loops([("g", how.groups)], lines), wrap_in_loops([("g", how.groups)], ends)


def _add_channel_by_channel(
    task: Task, how: Windows, planes: Planes, room: str, dtype: str
) -> tuple[list[str], list[str]]:
    """Return what adds a sample to the gradient, one filter and channel after another."""
    channels, filters = how.group_sides
    near = [how.number(planes, how.rank - 1, tap) for tap in range(how.kernel[-1])]
    product = Dots(dtype, rows(how.result, planes.steps), near)
    loops = [("g", how.groups), ("f", filters), ("c", channels)]
    loops += [(f"k{k}", side) for k, side in enumerate(how.kernel[:-1])]
    left = f"at(slope, (g * {filters} + f) * {prod(how.result)})"
    right = f"at({room}, {_sum(f'(g * {channels} + c) * {planes.size}', *_outer_distances(how, planes, how.rank - 1))})"
    to = f"at(total, {_number(loops)} * {how.kernel[-1]})"
    return wrap_in_loops(loops, product.lines(left, right, to, task.room(product.lanes, dtype))), []


def _sum(*terms: str) -> str:
    return " + ".join(terms)


def _number(loops: Sequence[tuple[str, int]]) -> str:
    """Return the text of the number of the current round of nested loops."""
    expression = "0"
    for name, count in loops:
        expression = f"({expression} * {count} + {name})"
    return expression


def _outer_distances(how: Windows, planes: Planes, rank: int) -> list[str]:
    """Return the terms of the distance of an element of a window, along the first axes."""
    return [how.distance(planes, k, f"k{k}") for k in range(rank)]


def _planes(task: Task, planes: Planes, channels: int, beyond: int, dtype: str) -> str:
    """Return room for the planes of a sample, and for reads and writes beyond them."""
    return task.room(channels * planes.size + max(planes.row_elements - planes.extent, 0) + beyond, dtype)


def _quicker(how: Windows, shared: Planes, copied: Planes, over: Callable[[Planes], Shifts]) -> Planes:
    """Return the planes that take fewer cycles to fill and to multiply: with zeros between rows, or copies without."""

    def cycles(planes: Planes) -> float:
        product = over(planes)
        rows = prod(axis.length * axis.remainders for axis in planes.axes[:-1]) * len(planes.shifts)
        filled = rows * (ROW + planes.axes[-1].length / product.lanes)
        return product.channels * (how.taps * product.cycles + filled)

    return min(shared, copied, key=cycles)


def _tight(planes: Planes, how: Windows) -> Planes:
    """Return the planes of a convolution's result: its positions, with the pitches of its operand's planes."""
    pairs = zip(how.result, planes.axes, strict=True)
    return Planes(
        tuple(Axis(side, 1, 0, 1, 1, side, axis.pitch if k else side) for k, (side, axis) in enumerate(pairs))
    )


def _distances(how: Windows, planes: Planes, far: str) -> list[str]:
    """Return loops that write the distances of all elements of a window."""
    loops = [(f"k{k}", side) for k, side in enumerate(how.kernel)]
    return wrap_in_loops(loops, [f"{far}[{_number(loops)}] = {_sum(*_outer_distances(how, planes, how.rank))}"])


def _reaching(how: Windows, slopes: Planes, near: str, far: str) -> list[str]:
    """Return loops that write the elements of a window that reach the current remainders, and their distances."""
    loops = [(f"k{k}", side) for k, side in enumerate(how.kernel)]
    tests, terms = list[str](), list[str]()
    for k, (stride, dilation, step) in enumerate(zip(how.stride, how.dilation, slopes.moves, strict=True)):
        away = f"(k{k} * {dilation} - r{k})"
        tests += [f"{away} % {stride} == 0"] if stride > 1 else []
        terms.append(f"({how.reach[k]} - {away} // {stride}) * {step}")
    body = [f"{near}[taps], {far}[taps] = {_number(loops)}, {_sum(*terms)}", "taps += 1"]
    return ["taps = 0", *wrap_in_loops(loops, [f"if {' and '.join(tests)}:", *indent(body)] if tests else body)]


WRITERS: dict[str, Writer] = {
    "convolution": convolution,
    "convolution_input": convolution_input,
    "kernel_parts": kernel_parts,
}
