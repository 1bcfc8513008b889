"""The kernels around a step in a burst: read the rows of a minibatch and live values, keep state, record, go on.

``control`` holds the number of the iteration, and whether the burst has ended. ``table`` holds addresses of what
changes from burst to burst: blocks of data, rows, live values, records.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from sigma_backend_cupy.graphs.scalars import CTYPES, FLOATING
from sigma_backend_cupy.text.elements import ArrayPointer
from sigma_backend_cupy.text.kernels import THREADS, Kernel, build_kernel
from sigma_kernel.graph import Node

AT_ONCE = 4096  # elements that one block records


def _pointers(table: bool, *nodes: tuple[Node, str]) -> list[ArrayPointer]:
    listed = [ArrayPointer(f"p{k}", f"{CTYPES[node.dtype]}*", node, use) for k, (node, use) in enumerate(nodes)]
    return [*([ArrayPointer("table", "const uwide*", Node("table"), "table")] if table else []), *listed]


def gather(section: Node, number: int) -> Kernel:
    """Return the kernel that reads a minibatch; the table's entry ``number`` is the block, and 0 the rows."""
    batch, count = section.shape[0], prod(section.shape)
    width = count // batch
    kind = CTYPES[section.dtype]
    body = [
        f"const wide* rows = (const wide*)table[0] + (wide)control[0] * {batch};",
        f"const {kind}* block = (const {kind}*)table[{number}];",
        f"SIGMA_EACH({THREADS}) {{",
        f"const int e = SIGMA_BLOCK * {THREADS} + t;",
        f"if (e < {count}) p0[e] = block[rows[e / {width}] * {width} + e % {width}];",
        "}",
    ]
    return build_kernel(body, -(-count // THREADS), THREADS, _pointers(True, (section, "write")))


def live(values: Sequence[Node], first: int) -> Kernel:
    """Return the kernel that reads the live values of an iteration; their addresses begin at ``first``."""
    lines = [
        f"if (t == {k % 32}) p{k}[0] = ((const {CTYPES[x.dtype]}*)table[{first + k}])[control[0]];"
        for k, x in enumerate(values)
    ]
    return build_kernel(["SIGMA_EACH(32) {", *lines, "}"], 1, 32, _pointers(True, *((x, "write") for x in values)))


def keep(*nodes: Node) -> Kernel:
    """Return the kernel that copies results to where the next iteration reads them: all results, then all copies."""
    sizes, count = [prod(node.shape) for node in nodes], len(nodes)
    body = [
        f"SIGMA_EACH({THREADS}) {{",
        f"const int e = SIGMA_BLOCK * {THREADS} + t;",
        *(f"if (e < {size}) p{count + k}[e] = p{k}[e];" for k, size in enumerate(sizes)),
        "}",
    ]
    pointers = _pointers(False, *((x, "read") for x in nodes), *((x, "write") for x in nodes))
    return build_kernel(body, -(-max(sizes) // THREADS), THREADS, pointers)


def record(node: Node, number: int) -> Kernel:
    """Return the kernel that copies a long record to the ring."""
    count, kind = prod(node.shape), CTYPES[node.dtype]
    body = [
        f"{kind}* ring = ({kind}*)table[{number}] + (wide)control[0] * {count};",
        f"SIGMA_EACH({THREADS}) {{",
        f"const int e = SIGMA_BLOCK * {THREADS} + t;",
        f"if (e < {count}) ring[e] = p0[e];",
        "}",
    ]
    return build_kernel(body, -(-count // THREADS), THREADS, _pointers(True, (node, "read")))


def advance(records: Sequence[tuple[Node, int]], checked: Sequence[Node]) -> Kernel:
    """Return the kernel that copies short records, and ends the burst after a loss that is not finite."""
    nodes = {x: i for i, x in enumerate(dict.fromkeys([*(node for node, _ in records), *checked]))}
    body = [f"SIGMA_SHARED int ended[{THREADS}];", f"SIGMA_THREADS({THREADS}) {{", "ended[t] = 0;"]
    for node, number in records:
        kind, count = CTYPES[node.dtype], prod(node.shape)
        to = f"(({kind}*)table[{number}] + (wide)control[0] * {count})[e]"
        body.append(f"for (int e = t; e < {count}; e += {THREADS}) {to} = p{nodes[node]}[e];")
    for node in checked:
        if node.dtype in FLOATING:
            place = f"p{nodes[node]}[e]"
            loop = f"for (int e = t; e < {prod(node.shape)}; e += {THREADS})"
            body.append(f"{loop} if (!({place} - {place} == 0)) ended[t] = 1;")
    last = [
        "}",
        f"SIGMA_THREADS({THREADS}) {{",
        "if (t == 0) {",
        "int end = 0;",
        f"for (int k = 0; k < {THREADS}; ++k) end |= ended[k];",
        "((int*)control)[0] += 1;",
        "((int*)control)[1] = end;",
        "}",
        "}",
    ]
    return build_kernel([*body, *last], 1, THREADS, _pointers(True, *((x, "read") for x in nodes)))
