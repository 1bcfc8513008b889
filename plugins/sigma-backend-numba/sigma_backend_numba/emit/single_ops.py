"""Write ops that are not fused: loops over operands whose elements are contiguous."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod

from sigma_backend_numba.emit import costs
from sigma_backend_numba.emit.shifted_products import widest
from sigma_backend_numba.emit.task import Task, size
from sigma_backend_numba.lower.layout import regular, source
from sigma_backend_numba.scalars import SHORT, arithmetic, literal
from sigma_kernel.graph import Node

Writer = Callable[[Task, Node], None]
JOINED = 16  # operands of a concat per task: LLVM's compile time grows faster than the function
UNROLLED = 64  # elements of a window that is written out: compile time grows faster than their number
KERNEL = 8  # estimated cost per element of a plugin's kernel, as a multiple of an addition


def operands(task: Task, node: Node) -> list[str]:
    """Return pointers to the operands."""
    return [task.storage(source(x)) for x in node.inputs]


def core(task: Task) -> Node:
    """Return the op of a group of the kind "plain"."""
    if task.group.core is None:
        raise AssertionError("a plain group has a core")
    return task.group.core


def write_copy(
    shape: Sequence[int], target: Callable[[str], str], value: Callable[[str], str], to: Sequence[int],
    start: Sequence[int], line: str = "{0} = {1}",
) -> list[str]:  # fmt: skip
    """Return loops that copy elements between strided arrays: ``target[...] = value[...]``."""
    lines = [f"{'    ' * k}for i{k} in range({side}):" for k, side in enumerate(shape)]
    places = (" + ".join(f"i{k} * {step}" for k, step in enumerate(steps) if step) or "0" for steps in (to, start))
    filled = line.format(*(make(place) for make, place in zip((target, value), places, strict=True)))
    return [*lines, "    " * len(shape) + filled]


def argmax(task: Task, node: Node) -> None:
    """Write the index of the largest element along an axis; the first NaN counts as the largest."""
    (x,), out, shape, axis = operands(task, node), task.storage(node), node.inputs[0].shape, node.attrs["axis"]
    side, inner = shape[axis], prod(shape[axis + 1 :])
    task.lines += [
        f"for i in range({prod(shape[:axis])}):", f"    for j in range({inner}):",
        f"        best, place = {x}[i * {side * inner} + j], i4(0)", f"        for k in range({side}):",
        f"            v = {x}[(i * {side} + k) * {inner} + j]", "            if v > best or (v != v and best == best):",
        "                best, place = v, i4(k)", f"        {out}[i * {inner} + j] = place",
    ]  # fmt: skip


def cumsum(task: Task, node: Node) -> None:
    """Write the sums of the entries up to each along an axis: of all columns side by side, if there are several."""
    (x,), out, (side, inner) = operands(task, node), task.storage(node), _sides_along(node)
    at = f"(i * {side} + {f'{side - 1} - k' if node.attrs['reverse'] else 'k'}) * {inner} + j"
    total = arithmetic("add", node.dtype, "total", f"{x}[{at}]")
    before = f"{out}[{at} {'+' if node.attrs['reverse'] else '-'} {inner}]"
    rows = [f"for k in range(1, {side}):", f"    for j in range({inner}):"]
    rows += [f"        {out}[{at}] = {arithmetic('add', node.dtype, before, f'{x}[{at}]')}"]
    first = [f"for j in range({inner}):", "    k = i8(0)", f"    {out}[{at}] = {x}[{at}]"]
    row = [f"total, j = {literal(0, node.dtype)}, i8(0)", f"for k in range({min(side, inner * side)}):"]
    row += [f"    total = {total}", f"    {out}[{at}] = total"]
    lines = [*first, *rows] if side and inner > 1 else row
    task.share(costs.loop(2 * size(node)), prod(node.shape[: node.attrs["axis"]]))
    task.lines += ["for i in range(lo, hi):", *(f"    {line}" for line in lines)]


def _sides_along(node: Node) -> tuple[int, int]:
    """Return the side of the axis of a node, and how many entries there are after it."""
    axis = node.attrs["axis"]
    return node.shape[axis], prod(node.shape[axis + 1 :])


def pad(task: Task, node: Node) -> None:
    """Write the padding, then copy the operand into it."""
    (x,), out, attrs = operands(task, node), task.storage(node), node.attrs
    each, own = regular(node.shape).strides, node.inputs[0].shape
    steps = [(i + 1) * s for i, s in zip(attrs["interior"], each, strict=True)]
    offset = sum(a * s for a, s in zip(attrs["low"], each, strict=True))
    task.lines += [f"for q in range({size(node)}):", f"    {out}[q] = {literal(attrs['value'], node.dtype)}"]
    task.lines += write_copy(
        own, lambda i: f"{out}[{offset} + {i}]", lambda i: f"{x}[{i}]", steps, regular(own).strides
    )


def concat(task: Task, node: Node, first: int) -> None:
    """Write the operands one after another along an axis, from the first one on, as many as fit into one task.

    Those that are there already are left out.
    """
    axis, each = node.attrs["axis"], regular(node.shape).strides
    begin = sum(x.shape[axis] for x in node.inputs[:first]) * each[axis]
    out, offset = task.part(node, begin)
    for part in node.inputs[first : first + JOINED]:
        if source(part) not in task.schedule.within:
            x = task.storage(source(part))
            task.lines += write_copy(
                part.shape, lambda i, offset=offset: f"{out}[{offset} + {i}]", lambda i, x=x: f"{x}[{i}]",  # type: ignore[misc]
                each, regular(part.shape).strides,
            )  # fmt: skip
        offset += part.shape[axis] * each[axis]


def scatter_add(task: Task, node: Node) -> None:
    """Add updates at the given indices to a copy of the operand, unless it is already in place."""
    (x, indices, updates), out, axis = operands(task, node), task.storage(node), node.attrs["axis"]
    shape, count = node.shape, size(node.inputs[1])
    side, inner, fault = shape[axis], prod(shape[axis + 1 :]), task.argument("fault", 0, "int64")
    target = f"{out}[(i * {side} + place) * {inner} + j]"
    if node.inputs[0] not in task.schedule.within:
        task.lines += [f"for q in range({size(node)}):", f"    {out}[q] = {x}[q]"]
    task.lines += [
        f"for i in range({prod(shape[:axis])}):", f"    for k in range({count}):",
        f"        place = check_index(i8({indices}[k]), i8({side}), {fault})", f"        for j in range({inner}):",
        f"            u = {updates}[(i * {count} + k) * {inner} + j]",
        f"            {target} = {arithmetic('add', node.dtype, target, 'u')}",
    ]  # fmt: skip


def matmul(task: Task, node: Node) -> None:
    """Write a matrix product of integers."""
    (a, b), out, batch = operands(task, node), task.storage(node), node.shape[:-2]
    (rows, columns), inner = node.shape[-2:], node.inputs[0].shape[-1]
    places = []
    for x in node.inputs:
        lead, each = len(batch) - len(x.shape[:-2]), regular(x.shape).strides
        steps = [(k + lead, s) for k, s in enumerate(each[:-2]) if x.shape[k] != 1]
        places.append(" + ".join(f"i{k} * {s}" for k, s in steps) or "0")
    where = " + ".join(f"i{k} * {s}" for k, s in enumerate(regular(node.shape).strides[:-2])) or "0"
    lines = [f"{'    ' * k}for i{k} in range({side}):" for k, side in enumerate(batch)]
    element = f"{a}[{places[0]} + i * {inner} + k] * {b}[{places[1]} + k * {columns} + j]"
    inside = [
        f"for i in range({rows}):", f"    for j in range({columns}):", f"        total = {literal(0, node.dtype)}",
        f"        for k in range({inner}):", f"            total = {SHORT[node.dtype]}(total + {element})",
        f"        {out}[{where} + i * {columns} + j] = total",
    ]  # fmt: skip
    task.lines += [*lines, *("    " * len(batch) + line for line in inside)]


# -- external functions (see ``kernels``) ------------------------------------------------------------------------------
def rows(task: Task, node: Node) -> None:
    """Call a function for each row of the result and of every operand; operands may have a single row."""
    count, given = prod(node.shape[:-1]), []
    for x, pointer in zip((*node.inputs, node), [*operands(task, node), task.storage(node)], strict=True):
        width = x.shape[-1] if x.shape else 1
        moves = len(x.shape) > 1 or x is node
        given.append(f"at({pointer}, r * {width}), {width}" if moves else f"{pointer}, {width}")
    task.share(costs.loop(KERNEL * size(node)), count)
    task.lines += ["for r in range(lo, hi):", f"    {node.attrs['symbol']}({', '.join(given)})"]


def python(task: Task, node: Node) -> None:
    """Call a Python function for the whole result."""
    fault = task.argument("fault", 0, "int64")
    given = ", ".join(f"address({x})" for x in (fault, *operands(task, node), task.storage(node)))
    task.share(costs.PYTHON, 1)
    task.lines.append(f"{node.attrs['symbol']}({given})")


# -- pooling -----------------------------------------------------------------------------------------------------------
def _walk(node: Node, whole: Sequence[int], result: Sequence[int]) -> tuple[list[str], list[str], str]:
    """Return loops over results, then over a window, and the operand's index; positions outside it are skipped."""
    window, stride, padding = (node.attrs[name] for name in ("window", "stride", "padding"))
    outer = ["for c in range(lo, hi):"]
    outer += [f"{'    ' * (k + 1)}for o{k} in range({side}):" for k, side in enumerate(result)]
    inner: list[str] = ["slot = i8(-1)"]
    for k, side in enumerate(window):
        inner.append("    " * k + f"for w{k} in range({side}):")
    deep = "    " * len(window)
    inner.append(deep + "slot += i8(1)")
    tests = []
    for k, (low, _) in enumerate(padding):
        inner.append(deep + f"p{k} = o{k} * {stride[k]} + w{k} - {low}")
        tests.append(f"p{k} < 0 or p{k} >= {whole[k]}")
    inner += [deep + f"if {' or '.join(tests)}:", deep + "    continue"]
    place = "c"
    for k, side in enumerate(whole):
        place = f"({place}) * {side} + p{k}"
    inner.append(deep + f"q = {place}")
    return outer, inner, deep


def _pooling(
    task: Task, node: Node, wide: Node, narrow: Node, start: Sequence[str], inside: Sequence[str], end: Sequence[str]
) -> None:
    """Write loops over all windows of all channels, with lines before, for each element, and after."""
    result = narrow.shape[2:]
    outer, inner, deep = _walk(node, wide.shape[2:], result)
    place = "c"
    for k, side in enumerate(result):
        place = f"({place}) * {side} + o{k}"
    depth = "    " * (1 + len(result))
    body = [f"r = {place}", *start, *inner, *(deep + line for line in inside), *end]
    task.share(costs.loop(size(narrow) * prod(node.attrs["window"]) * 2), prod(wide.shape[:2]))
    if wide is node:
        width = prod(wide.shape[2:])
        task.lines += [
            f"for z in range(lo * {width}, hi * {width}):",
            f"    {task.storage(node)}[z] = {literal(0, node.dtype)}",
        ]
    task.lines += [*outer, *(depth + line for line in body)]


def _has_small_tiles(node: Node, wide: Node) -> bool:
    """Return whether windows are small, and neither overlap nor reach outside."""
    attrs, whole = node.attrs, wide.shape[2:]
    fits = all(side % window == 0 for side, window in zip(whole, attrs["window"], strict=True))
    small = prod(attrs["window"]) <= UNROLLED
    return small and fits and attrs["stride"] == attrs["window"] and not any(map(any, attrs["padding"]))


def _lanes(node: Node, result: Node) -> int:
    """Return how many windows are computed side by side: more than one if they are two elements wide."""
    most = 1 << (result.shape[-1].bit_length() - 1)
    return min(widest(node.inputs[0].dtype), most) if node.attrs["window"][-1] == 2 else 1


def _tiles(
    task: Task, node: Node, wide: Node, narrow: Node, lanes: int, body: Callable[[list[str]], list[str]]
) -> None:
    """Write loops over windows that do not overlap; ``body`` gets all indices of the (first) window ``r``."""
    window, whole, result = node.attrs["window"], wide.shape[2:], narrow.shape[2:]
    each, last = regular(whole).strides, len(result) - 1
    task.share(costs.loop(size(wide) * 2), prod(wide.shape[:2]))
    lines = ["for c in range(lo, hi):"]
    lines += [f"{'    ' * (k + 1)}for o{k} in range({side}):" for k, side in enumerate(result)]
    q = " + ".join(
        [f"c * {prod(whole)}", *(f"o{k} * {w * s}" for k, (w, s) in enumerate(zip(window, each, strict=True)))]
    )
    r = " + ".join([f"c * {prod(result)}", *(f"o{k} * {s}" for k, s in enumerate(regular(result).strides))])
    begin = [f"r = {r}", f"q = {q}"]
    if lanes > 1:  # the last windows may be written twice
        lines[-1] = "    " * (last + 1) + f"for m in range(0, {result[-1]}, {lanes}):"
        begin.insert(0, f"o{last} = min(m, {result[-1] - lanes})")
    places = [sum(k * s for k, s in zip(at, each, strict=True)) for at in product(*map(range, window))]
    inside = [*begin, *body([f"q + {place}" for place in places])]
    task.lines += [*lines, *("    " * (1 + len(result)) + line for line in inside)]


def _elements(x: str, places: Sequence[str], lanes: int) -> list[str]:
    """Return lines that read a window, or several ones side by side."""
    if lanes == 1:
        return [f"v{k} = {x}[{place}]" for k, place in enumerate(places)]
    return [f"v{k} = {'odds' if k % 2 else 'evens'}{lanes}(at({x}, {places[k - k % 2]}))" for k in range(len(places))]


def _number(value: str, lanes: int) -> str:
    return value if lanes == 1 else f"spread{lanes}({value})"


def _read(x: str, lanes: int) -> str:
    return f"{x}[r]" if lanes == 1 else f"wide{lanes}(at({x}, r))"


def _write(to: str, value: str, lanes: int) -> str:
    return f"{to}[r] = {value}" if lanes == 1 else f"put(at({to}, r), {value})"


def _largest(count: int) -> list[str]:
    """Return lines that find the largest element of a window, or a NaN, without branches."""
    return ["best = v0", *(f"best = larger(best, v{k})" for k in range(1, count))]


def _write_first_maximum(count: int, lanes: int) -> list[str]:
    """Return lines that find the first position of the largest element in a window; NaN counts as the largest."""
    lines = [f"place = {_number(f'i4({count - 1})', lanes)}"]
    for k in reversed(range(count - 1)):
        lines.append(f"place = sel((v{k} == best) | (v{k} != v{k}), {_number(f'i4({k})', lanes)}, place)")
    return lines


def _scatter_tiles(task: Task, node: Node) -> None:
    (g, index), out, lanes = operands(task, node), task.storage(node), _lanes(node, node.inputs[0])
    zero = _number(literal(0, node.dtype), lanes)

    def body(places: list[str]) -> list[str]:
        values = [f"sel(named == {_number(f'i4({k})', lanes)}, v, {zero})" for k in range(len(places))]
        lines = [f"{out}[{place}] = {value}" for place, value in zip(places, values, strict=True)]
        if lanes > 1:
            pairs = zip(places[::2], values[::2], values[1::2], strict=True)
            lines = [f"zipped(at({out}, {place}), {x}, {y})" for place, x, y in pairs]
        return [f"v, named = {_read(g, lanes)}, {_read(index, lanes)}", *lines]

    _tiles(task, node, node, node.inputs[0], lanes, body)


def max_pool(task: Task, node: Node) -> None:
    """Write the largest element of each window, or the first NaN."""
    (x,), out = operands(task, node), task.storage(node)
    if _has_small_tiles(node, node.inputs[0]):
        lanes = _lanes(node, node)

        def body(places: list[str]) -> list[str]:
            return [*_elements(x, places, lanes), *_largest(len(places)), _write(out, "best", lanes)]

        _tiles(task, node, node.inputs[0], node, lanes, body)
        return
    inside = [f"v = {x}[q]", "if v > best or v != v:", "    best = v"]
    _pooling(
        task, node, node.inputs[0], node, [f"best = {literal(-float('inf'), node.dtype)}"], inside, [f"{out}[r] = best"]
    )


def pool_argmax(task: Task, node: Node) -> None:
    """Write the index of the largest element of each window, which may be known already; padding is minus infinity."""
    (x, *maximum), out, low = operands(task, node), task.storage(node), literal(-float("inf"), node.inputs[0].dtype)
    if _has_small_tiles(node, node.inputs[0]):
        lanes = _lanes(node, node)

        def body(places: list[str]) -> list[str]:
            value = [f"best = {_read(maximum[0], lanes)}"] if maximum else _largest(len(places))
            lines = [*value, *_write_first_maximum(len(places), lanes), _write(out, "place", lanes)]
            return [*_elements(x, places, lanes), *lines]

        _tiles(task, node, node.inputs[0], node, lanes, body)
        return
    inside = [f"v = {x}[q]", "if v > best or (v != v and best == best):", "    best, place = v, i4(slot)"]
    _pooling(task, node, node.inputs[0], node, [f"best, place = {low}, i4(0)"], inside, [f"{out}[r] = place"])


def sum_pool(task: Task, node: Node) -> None:
    """Write the sum of each window."""
    (x,), out = operands(task, node), task.storage(node)
    start = [f"total = {literal(0, node.dtype)}"]
    _pooling(task, node, node.inputs[0], node, start, [f"total = total + {x}[q]"], [f"{out}[r] = total"])


def pool_select(task: Task, node: Node) -> None:
    """Write the element of each window at the given index."""
    (x, index), out = operands(task, node), task.storage(node)
    start = [f"total, named = {literal(0, node.dtype)}, i8({index}[r])"]
    inside = ["if slot == named:", f"    total = {x}[q]"]
    _pooling(task, node, node.inputs[0], node, start, inside, [f"{out}[r] = total"])


def pool_scatter(task: Task, node: Node) -> None:
    """Add each element at the given index in its window."""
    if _has_small_tiles(node, node):
        _scatter_tiles(task, node)
        return
    (g, index), out = operands(task, node), task.storage(node)
    inside = ["if slot == named:", f"    {out}[q] = {arithmetic('add', node.dtype, f'{out}[q]', f'{g}[r]')}"]
    _pooling(task, node, node, node.inputs[0], [f"named = i8({index}[r])"], inside, [])


def sum_unpool(task: Task, node: Node) -> None:
    """Add each element to its whole window."""
    (g,), out = operands(task, node), task.storage(node)
    _pooling(task, node, node, node.inputs[0], [], [f"{out}[q] = {out}[q] + {g}[r]"], [])


WRITERS: dict[str, Writer] = {
    "argmax": argmax, "cumsum": cumsum, "pad": pad, "scatter_add": scatter_add, "matmul": matmul,
    "max_pool": max_pool, "pool_argmax": pool_argmax, "sum_pool": sum_pool, "pool_select": pool_select,
    "pool_scatter": pool_scatter, "sum_unpool": sum_unpool, "rows": rows, "python": python,
}  # fmt: skip
