"""Elements that are computed by a loop over elements of arrays in memory: windows, and sums at indices.

Every element is computed by one thread, in the order of the window or of the indices, so that results do not depend on
the order of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from sigma_backend_cupy.graphs.points import Points
from sigma_backend_cupy.graphs.scalars import CTYPES, literal, lowest
from sigma_kernel.graph import Node

Lines = list[str]


def write_pull(
    node: Node, point: str, points: Points, arrays: Sequence[str], name: str, first: str, fault: str
) -> Lines:
    """Return statements that declare ``name``, the element at a point.

    ``arrays`` are the pointers of operands in memory, ``first`` is the element of the operand that ``scatter_add``
    adds to, ``fault`` is where it notes an index outside of its axis.
    """
    if node.op == "scatter_add":
        return _write_scatter(node, points.parts(point, node.shape), points.kind, arrays, name, first, fault)
    start, body = _WINDOWS[node.op]
    parts = points.parts(point, node.shape)
    begin = [f"{CTYPES[node.dtype]} {name} = {start(node)};"]
    if node.op == "pool_argmax":
        begin.append(f"{CTYPES[node.inputs[0].dtype]} best_{name} = {lowest(node.inputs[0].dtype)};")
    around = _scatters if node.op in ("pool_scatter", "sum_unpool") else _loop_over_window
    return [*begin, *around(node, parts, points.kind, body.format(name=name, **_operands(arrays)))]


def _operands(arrays: Sequence[str]) -> Mapping[str, str]:
    return dict(zip("xy", [*arrays, ""][:2], strict=True))


def _loop_over_window(node: Node, parts: Sequence[str], kind: str, body: str) -> Lines:
    """Loop over the elements of a window: ``at`` is the place in the operand, ``k`` that in the window."""
    attrs, sides = node.attrs, node.inputs[0].shape
    lines, close = ["{", f"{kind} k = -1;"], "}"
    for axis, window in enumerate(attrs["window"]):
        part, stride, (low, _) = parts[axis + 2], attrs["stride"][axis], attrs["padding"][axis]
        lines.append(f"for ({kind} w{axis} = 0; w{axis} < {window}; ++w{axis}) {{")
        lines.append(f"const {kind} s{axis} = {part} * {stride} + w{axis} - {low};")
        close += "}"
    inside = " && ".join(f"s{axis} >= 0 && s{axis} < {side}" for axis, side in enumerate(sides[2:]))
    places = [*parts[:2], *(f"s{axis}" for axis in range(len(attrs["window"])))]
    at = f"const {kind} at = {flatten_index(places, sides)}, out = {flatten_index(parts, node.shape)};"
    return [*lines, "++k;", f"if ({inside}) {{", at, body, "}", close]


def _scatters(node: Node, parts: Sequence[str], kind: str, body: str) -> Lines:
    """Loop over the windows that cover an element: ``at`` is the window, ``k`` the element's place in it."""
    attrs, sides = node.attrs, node.inputs[0].shape
    lines, close = ["{", f"{kind} k = -1;"], "}"
    tests = []
    for axis, window in enumerate(attrs["window"]):
        part, stride, (low, _) = parts[axis + 2], attrs["stride"][axis], attrs["padding"][axis]
        lines.append(f"for ({kind} w{axis} = 0; w{axis} < {window}; ++w{axis}) {{")
        lines.append(f"const {kind} v{axis} = {part} + {low} - w{axis}, s{axis} = v{axis} / {stride};")
        tests.append(f"v{axis} >= 0 && v{axis} % {stride} == 0 && s{axis} < {sides[axis + 2]}")
        close += "}"
    places = [*parts[:2], *(f"s{axis}" for axis in range(len(attrs["window"])))]
    at = f"const {kind} at = {flatten_index(places, sides)};"
    return [*lines, "++k;", f"if ({' && '.join(tests)}) {{", at, body, "}", close]


def flatten_index(parts: Sequence[str], shape: Sequence[int]) -> str:
    """Return the place of indices in an array, as an expression."""
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return " + ".join(f"{p} * {s}" for p, s in zip(parts, strides, strict=True) if p != "0") or "0"


def _write_scatter(
    node: Node, parts: Sequence[str], kind: str, arrays: Sequence[str], name: str, first: str, fault: str
) -> Lines:
    """Add the updates whose index is this element's, in order."""
    x, indices, _ = node.inputs
    axis, count = node.attrs["axis"], math.prod(indices.shape)
    flat = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    at = flatten_index([*parts[:axis], "k", *parts[axis + 1 :]], flat)
    add = f"sg_add({name}, {arrays[2]}[{at}])" if x.dtype in ("int32", "int64") else f"{name} + {arrays[2]}[{at}]"
    return [
        f"{CTYPES[node.dtype]} {name} = {first};",
        f"for ({kind} k = 0; k < {count}; ++k) {{",
        f"const wide there = {arrays[1]}[k];",
        f"if (there == {parts[axis]}) {name} = {add};",
        f"else sg_place(there, {x.shape[axis]}, {fault});",
        "}",
    ]


_ZERO = lambda node: literal(0, node.dtype)  # noqa: E731
_WINDOWS: dict[str, tuple[Callable[[Node], str], str]] = {
    "max_pool": (lambda node: lowest(node.dtype), "{name} = sg_maximum({name}, {x}[at]);"),
    "sum_pool": (_ZERO, "{name} += {x}[at];"),
    "pool_argmax": (_ZERO, "if (sg_beats({x}[at], k, best_{name}, {name})) {{ best_{name} = {x}[at]; {name} = k; }}"),
    "pool_select": (_ZERO, "if ({y}[out] == k) {name} = {x}[at];"),
    "pool_scatter": (_ZERO, "if ({y}[at] == k) {name} += {x}[at];"),
    "sum_unpool": (_ZERO, "{name} += {x}[at];"),
}
