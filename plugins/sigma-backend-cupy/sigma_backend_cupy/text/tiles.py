"""Products in tiles: convolutions and their gradients as implicit products of matrices, and products of integers.

A block computes one tile of the result, from pieces of both matrices in shared memory. The matrices of a convolution do
not exist: their entries are read in place from the samples and the kernels. Long sums are cut in ``splits`` pieces,
separate results, which a reduction adds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from attrs import frozen

from sigma_backend_cupy.graphs.scalars import CTYPES, literal
from sigma_backend_cupy.text.elements import ArrayPointer
from sigma_backend_cupy.text.kernels import Kernel, build_kernel
from sigma_backend_cupy.text.pulls import flatten_index
from sigma_kernel.graph import Node

SIDE = 16  # threads along each side of a tile
DEPTH = 16  # entries of a row that are in shared memory at once


@frozen
class MatrixEntry:
    """The place of an entry of a matrix: statements, a condition (or ""), the index."""

    lines: list[str]
    when: str
    index: str


@frozen
class Tiled:
    """A product of ``groups`` pairs of matrices, and the places of entries of the operands and of the result.

    Entries are at ``m``, ``k`` and ``n`` of group ``g``; ``along`` is whether neighbours in memory have successive
    ``k``, for each operand.
    """

    groups: int
    rows: int
    columns: int
    length: int
    left: MatrixEntry
    right: MatrixEntry
    result: MatrixEntry
    along: tuple[bool, bool]
    arrays: tuple[str, str] = ("p0", "p1")


def split(name: str, shape: Sequence[int], prefix: str) -> tuple[list[str], list[str]]:
    """Return statements that split a number into an index for each side, and the indices."""
    lines, names, stride = [], [], prod(shape)
    for k, side in enumerate(shape):
        stride //= side
        quotient = f"{name} / {stride}" if stride > 1 else name
        lines.append(f"const int {prefix}{k} = {quotient}{f' % {side}' if k else ''};")
        names.append(f"{prefix}{k}")
    return lines, names


def tiles_kernel(node: Node, splits: int = 1) -> Kernel:
    """Return the kernel of a convolution, of its gradients or of a product of integers."""
    form = _FORMS[node.op](node)
    each = [next(size for size in (4, 2, 1) if size * SIDE <= side or size == 1) for side in (form.rows, form.columns)]
    tile = [SIDE * size for size in each]
    down, across = -(-form.rows // tile[0]), -(-form.columns // tile[1])
    depth = -(-form.length // (splits * DEPTH)) * DEPTH
    kind = CTYPES[node.dtype]
    types = [CTYPES[x.dtype] for x in node.inputs]
    parameters = [ArrayPointer(f"p{k}", f"const {types[k]}*", x, "read") for k, x in enumerate(node.inputs)]
    parameters.append(ArrayPointer("p2", f"{kind}*", node, "write"))
    body = [
        f"SIGMA_SHARED {kind} left[{DEPTH}][{tile[0] + 1}];",
        f"SIGMA_SHARED {kind} right[{DEPTH}][{tile[1] + 1}];",
        f"SIGMA_OWN({kind}, sum, {prod(each)}, {SIDE * SIDE});",
        f"const int part = SIGMA_BLOCK / {down * across * form.groups}, tile = SIGMA_BLOCK % {down * across};",
        f"const int g = SIGMA_BLOCK / {down * across} % {form.groups};",
        f"const int top = tile / {across} * {tile[0]}, first = tile % {across} * {tile[1]};",
        f"const int begin = part * {depth}, rest = {form.length} - begin;",
        f"const int end = begin + (rest < {depth} ? rest : {depth});",
        f"SIGMA_EACH({SIDE * SIDE}) {{",
        f"for (int i = 0; i < {prod(each)}; ++i) {_thread_sums(each)}[i] = {literal(0, node.dtype)};",
        "}",
        f"for (int from = begin; from < end; from += {DEPTH}) {{",
        f"SIGMA_THREADS({SIDE * SIDE}) {{",
        *_fetch("left", "m", "top", form.rows, tile[0], form.left, form.along[0], form.arrays[0], node.dtype),
        *_fetch("right", "n", "first", form.columns, tile[1], form.right, form.along[1], form.arrays[1], node.dtype),
        "}",
        *_multiply(each, node.dtype),
        "}",
        *_store(each, form, prod(node.shape[1:] if splits > 1 else node.shape)),
    ]
    return build_kernel(body, splits * form.groups * down * across, SIDE * SIDE, parameters)


def _thread_sums(each: Sequence[int]) -> str:
    return f"SIGMA_MINE(sum, {prod(each)})"


def _fetch(
    name: str, index: str, first: str, side: int, tile: int, entry: MatrixEntry, along: bool, array: str, dtype: str
) -> list[str]:
    """Return the loop that reads a piece of a matrix into shared memory, zeros beyond its end."""
    k, other = (f"e % {DEPTH}", f"e / {DEPTH}") if along else (f"e / {tile}", f"e % {tile}")
    when = f" && {entry.when}" if entry.when else ""
    return [
        f"for (int e = t; e < {DEPTH * tile}; e += {SIDE * SIDE}) {{",
        f"const int k = from + {k}, {index} = {first} + {other};",
        *entry.lines,
        f"const bool inside = k < end && {index} < {side}{when};",
        f"{name}[{k}][{other}] = inside ? {array}[{entry.index}] : {literal(0, dtype)};",
        "}",
    ]


def _multiply(each: Sequence[int], dtype: str) -> list[str]:
    mine = f"{_thread_sums(each)}[i * {each[1]} + j]"
    product = f"left[k][down * {each[0]} + i] * right[k][across * {each[1]} + j]"
    total = f"{mine} + {product}"
    if dtype in ("int32", "int64"):
        total = f"sg_add({mine}, sg_mul({product.replace(' * right', ', right')}))"
    return [
        f"SIGMA_THREADS({SIDE * SIDE}) {{",
        f"const int across = t % {SIDE}, down = t / {SIDE};",
        "#pragma unroll",
        f"for (int k = 0; k < {DEPTH}; ++k)",
        "#pragma unroll",
        f"for (int i = 0; i < {each[0]}; ++i)",
        "#pragma unroll",
        f"for (int j = 0; j < {each[1]}; ++j) {mine} = {total};",
        "}",
    ]


def _store(each: Sequence[int], form: Tiled, size: int) -> list[str]:
    return [
        f"SIGMA_EACH({SIDE * SIDE}) {{",
        f"const int across = t % {SIDE}, down = t / {SIDE};",
        "#pragma unroll",
        f"for (int i = 0; i < {each[0]}; ++i) {{",
        "#pragma unroll",
        f"for (int j = 0; j < {each[1]}; ++j) {{",
        f"const int m = top + down * {each[0]} + i, n = first + across * {each[1]} + j;",
        f"if (m < {form.rows} && n < {form.columns}) {{",
        *form.result.lines,
        f"p2[part * {size} + {form.result.index}] = {_thread_sums(each)}[i * {each[1]} + j];",
        "}",
        "}",
        "}",
        "}",
    ]


# -- convolution: samples x (N, C, *S), kernels w (O, C / groups, *K), results y (N, O, *T) ----------------------------
def shapes(node: Node) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of x, w and y."""
    first, second = (x.shape for x in node.inputs)
    own = tuple(node.attrs.get("shape", node.shape))
    return {
        "convolution": (first, second, own),
        "convolution_input": (own, second, first),
        "convolution_kernel": (first, own, second),
    }[node.op]


def _window_entry(node: Node, places: Sequence[str], offsets: Sequence[str], sides: Sequence[int]) -> MatrixEntry:
    """Return the places in a sample that an offset in the window covers at places of the result."""
    attrs = node.attrs
    rows = zip(places, offsets, attrs["stride"], attrs["dilation"], attrs["padding"], strict=True)
    lines = [f"const int s{k} = {p} * {s} + {o} * {d} - {low};" for k, (p, o, s, d, (low, _)) in enumerate(rows)]
    tests = [f"s{k} >= 0 && s{k} < {side}" for k, side in enumerate(sides)]
    return MatrixEntry(lines, " && ".join(tests), "")


def _forward(node: Node) -> Tiled:
    x, w, y = shapes(node)
    groups = node.attrs["groups"]
    channels, outputs, axes = w[1], w[0] // groups, range(len(x) - 2)
    lines, at = split("m", (x[0], *y[2:]), "a")
    window, k = split("k", w[1:], "b")
    covered = _window_entry(node, at[1:], k[1:], x[2:])
    read = flatten_index([at[0], f"(g * {channels} + {k[0]})", *(f"s{a}" for a in axes)], x)
    left = MatrixEntry([*lines, *window, *covered.lines], covered.when, read)
    right = MatrixEntry([], "", f"(g * {outputs} + n) * {prod(w[1:])} + k")
    result = MatrixEntry(lines, "", flatten_index([at[0], f"(g * {outputs} + n)", *at[1:]], y))
    return Tiled(groups, x[0] * prod(y[2:]), outputs, prod(w[1:]), left, right, result, (False, True))


def _to_input(node: Node) -> Tiled:
    x, w, y = shapes(node)
    attrs, groups = node.attrs, node.attrs["groups"]
    channels, outputs = w[1], w[0] // groups
    lines, at = split("m", (x[0], *x[2:]), "a")
    window, k = split("k", (outputs, *w[2:]), "b")
    rows = [*zip(at[1:], k[1:], attrs["stride"], attrs["dilation"], attrs["padding"], y[2:], strict=True)]
    moved = [
        f"const int v{i} = {p} + {low} - {o} * {d}, s{i} = v{i} / {s};"
        for i, (p, o, s, d, (low, _), _) in enumerate(rows)
    ]
    tests = [f"v{i} >= 0 && v{i} % {s} == 0 && s{i} < {t}" for i, (_, _, s, _, _, t) in enumerate(rows)]
    read = flatten_index([at[0], f"(g * {outputs} + {k[0]})", *(f"s{i}" for i in range(len(rows)))], y)
    left = MatrixEntry([*lines, *window, *moved], " && ".join(tests), read)
    right = MatrixEntry(window, "", flatten_index([f"(g * {outputs} + {k[0]})", "n", *k[1:]], w))
    result = MatrixEntry(lines, "", flatten_index([at[0], f"(g * {channels} + n)", *at[1:]], x))
    return Tiled(groups, x[0] * prod(x[2:]), channels, outputs * prod(w[2:]), left, right, result, (False, True))


def _to_kernel(node: Node) -> Tiled:
    x, w, y = shapes(node)
    groups = node.attrs["groups"]
    channels, outputs = w[1], w[0] // groups
    lines, at = split("k", (x[0], *y[2:]), "a")
    window, n = split("n", w[1:], "b")
    covered = _window_entry(node, at[1:], n[1:], x[2:])
    left = MatrixEntry(lines, "", flatten_index([at[0], f"(g * {outputs} + m)", *at[1:]], y))
    read = flatten_index([at[0], f"(g * {channels} + {n[0]})", *(f"s{a}" for a in range(len(x) - 2))], x)
    right = MatrixEntry([*lines, *window, *covered.lines], covered.when, read)
    result = MatrixEntry([], "", f"(g * {outputs} + m) * {prod(w[1:])} + n")
    return Tiled(groups, outputs, prod(w[1:]), x[0] * prod(y[2:]), left, right, result, (True, True), ("p1", "p0"))


def _matrices(node: Node) -> Tiled:
    """Return the product of matrices of integers, whose leading sides are broadcast."""
    x, y = (operand.shape for operand in node.inputs)
    lead = node.shape[:-2]
    lines, at = split("g", lead, "a")

    def place(shape: Sequence[int], row: str, column: str) -> str:
        parts = at[len(lead) - len(shape) + 2 :]
        return flatten_index(
            [*("0" if s == 1 else p for p, s in zip(parts, shape[:-2], strict=True)), row, column], shape
        )

    left, right = MatrixEntry(lines, "", place(x, "m", "k")), MatrixEntry(lines, "", place(y, "k", "n"))
    result = MatrixEntry(lines, "", place(node.shape, "m", "n"))
    return Tiled(prod(lead), x[-2], y[-1], x[-1], left, right, result, (True, False))


_FORMS: dict[str, Callable[[Node], Tiled]] = {
    "convolution": _forward,
    "convolution_input": _to_input,
    "convolution_kernel": _to_kernel,
    "tiled_matmul": _matrices,
}
