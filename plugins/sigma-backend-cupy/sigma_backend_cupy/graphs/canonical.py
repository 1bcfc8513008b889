"""Rewrite a graph into the few forms that kernels are generated for.

- Results are nodes of their own: each is computed by a kernel that nothing else depends on its form.
- A reduction has a side of at least 2 to reduce; a long one with few results becomes two, with many.
- Products of 16 bits become casts to 16 bits and a product of their results.
- Operands that must be in memory are computed or copied there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from attrs import evolve

from sigma_backend_cupy.graphs.reads import LEAVES, LOOPS, MOVES, PULLED, REDUCTIONS
from sigma_backend_cupy.graphs.views import VIEWS, product
from sigma_kernel import Lowerings
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import INTEGERS, Graph, Node, map_nodes, ops, rewrite, with_inputs

KEPT = frozenset({"mixed_matmul"})  # composites with their own kernels
LOWERINGS = Lowerings("cupy")
DTYPES = frozenset({"float32", "float64", "int32", "int64", "uint32", "bool"})
CONVOLUTIONS = frozenset({"convolution", "convolution_input", "convolution_kernel"})
TILED = frozenset({*CONVOLUTIONS, "tiled_matmul"})
TILE = 64 * 64  # results of a block, at most
BLOCKS = 264  # that keep a device busy: two for each processor of a large one
DEEP = 256  # terms of a sum that are worth a block
ENOUGH = 2048  # results, for which one block each is enough to keep a device busy
LONG = 4096  # elements of a reduction that is worth cutting


class Whole:
    """The composites that are not expanded: they have kernels here, or a plugin's."""

    def __contains__(self, op: object) -> bool:
        return op in KEPT or op in LOWERINGS


def canonical(graph: Graph) -> Graph:
    """Return the graph for kernels; raises SigmaGraphError for unsupported dtypes."""
    small = rewrite(graph, keep=Whole())
    for node in (*small.inputs, *small):
        if node.dtype not in DTYPES and node.dtype != "tuple":
            raise SigmaGraphError(f"cupy: does not support {node.dtype}. Use one of: {', '.join(sorted(DTYPES))}.")
    plain = map_nodes(map_nodes(small, _simpler, lambda body: body), _in_memory, lambda body: body)
    return _with_results(plain)


def _with_results(graph: Graph) -> Graph:
    """Give each output a node of its own."""
    seen: set[Node] = set()
    outputs = []
    for node in graph.outputs:
        own = node.op in (*MOVES, *LEAVES, "input", "array", "part") or node in seen
        outputs.append(_copy(node) if own else node)
        seen.add(outputs[-1])
    return Graph(graph.inputs, tuple(outputs))


def _copy(node: Node) -> Node:
    return Node("copy", (node,), {}, node.shape, node.dtype)


def _simpler(node: Node, inputs: tuple[Node, ...]) -> Node:
    node = with_inputs(node, inputs)
    return _FORMS[node.op](node) if node.op in _FORMS else node


def _in_memory(node: Node, inputs: tuple[Node, ...]) -> Node:
    """Copy operands that a kernel of its own cannot compute while it reads them."""
    image = with_inputs(node, inputs)
    if node.op == "matmul":
        image = with_inputs(node, tuple(_copy(x) if _base(x).op in (*MOVES, *LEAVES) else x for x in inputs))
        return (
            image if product(image) else with_inputs(node, tuple(x if _is_in_memory(x) else _copy(x) for x in inputs))
        )
    if node.op in LOOPS and node.op not in (*PULLED, "take"):
        return image
    which = {"take": (0,), "scatter_add": (1, 2)}.get(node.op, range(len(inputs)))
    held = [_copy(x) if i in which and not _is_in_memory(x) else x for i, x in enumerate(inputs)]
    return with_inputs(node, tuple(held))


def _base(node: Node) -> Node:
    return _base(node.inputs[0]) if node.op in VIEWS else node


def _is_in_memory(node: Node) -> bool:
    """Return whether a node has elements in memory."""
    return node.op not in (*MOVES, *LEAVES)


# -- reductions --------------------------------------------------------------------------------------------------------
def _reduction(node: Node) -> Node:
    """Reduce only sides above 1; cut a long reduction with few results in two."""
    (x,) = node.inputs
    single = node.op == "argmax"
    axes = (node.attrs["axis"],) if single else node.attrs["axis"]
    wide = tuple(axis for axis in axes if x.shape[axis] != 1)
    if not math.prod(x.shape):
        return ops.full(0.0 if x.dtype.startswith("float") else 0, node.shape, node.dtype)
    if not wide:
        return ops.full(0, node.shape, "int32") if single else x
    if not single and (cut := _cut(x.shape, wide)):
        return _twice(node, x, wide, cut)
    return evolve(node, attrs={"axis": wide[0] if single else wide})


def _cut(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, int] | None:
    """Return the axis to cut and the number of pieces, if there are too few results for a device to share."""
    length = math.prod(shape[axis] for axis in axes)
    results = math.prod(shape) // length
    axis = axes[0]
    if length < LONG or results >= ENOUGH:
        return None
    pieces = min(shape[axis], max(2, min(ENOUGH // results, length // 512)))
    return (axis, pieces) if pieces > 1 else None


def _twice(node: Node, x: Node, axes: Sequence[int], cut: tuple[int, int]) -> Node:
    """Reduce pieces of an axis, then their results; the last piece is filled with what changes no result."""
    axis, pieces = cut
    each = -(-x.shape[axis] // pieces)
    rank = len(x.shape)
    if extra := pieces * each - x.shape[axis]:
        sides = {"low": (0,) * rank, "interior": (0,) * rank}
        high = tuple(extra if i == axis else 0 for i in range(rank))
        x = ops.pad(x, **sides, high=high, value=0 if node.op == "sum" else _lowest_value(x.dtype))
    split = ops.reshape(x, shape=(*x.shape[:axis], pieces, each, *x.shape[axis + 1 :]))
    make = ops.sum if node.op == "sum" else ops.max
    inner = [axis + 1, *(a + 1 if a > axis else a for a in axes if a != axis)]
    first = _reduction(make(split, axis=tuple(sorted(inner))))
    return ops.reshape(_reduction(make(first, axis=(axis,))), shape=node.shape)


def _lowest_value(dtype: str) -> float:
    return INTEGERS[dtype][0] if dtype in INTEGERS else -math.inf


def _cumsum(node: Node) -> Node:
    """Add the sums of twice as many entries each time: in the same order always, unlike CUDA's own scans."""
    (total,), (axis, reverse) = node.inputs, (node.attrs["axis"], node.attrs["reverse"])
    side, step, none = node.shape[axis], 1, (0,) * len(node.shape)
    while step < side:
        start, stop = (step, side) if reverse else (0, side - step)
        room = tuple(step if i == axis else 0 for i in range(len(none)))
        low, high = (none, room) if reverse else (room, none)
        earlier = ops.narrow(total, axis, start, stop)
        total, step = total + ops.pad(earlier, low=low, high=high, interior=none, value=0), 2 * step
    return total


def _library(node: Node) -> Node:
    """Leave an op to CuPy's functions, unless there is nothing to compute."""
    return node if math.prod(node.shape) else ops.full(0, node.shape, node.dtype)


# -- products ----------------------------------------------------------------------------------------------------------
def _lower_mixed(node: Node) -> Node:
    """Round to 16 bits in memory, where a product reads half as much; a device multiplies them faster, too."""
    if node.dtype != "float32":
        return _product(ops.matmul(*(ops.reduce_precision(x, dtype=node.attrs["dtype"]) for x in node.inputs)))
    narrow = [Node("cast", (x,), {"dtype": node.attrs["dtype"]}, x.shape, node.attrs["dtype"]) for x in node.inputs]
    return _product(Node("matmul", tuple(narrow), {}, node.shape, node.dtype))


def _product(node: Node) -> Node:
    x, y = node.inputs
    if not math.prod(node.shape) or not x.shape[-1]:
        return ops.full(0.0 if node.dtype.startswith("float") else 0, node.shape, node.dtype)
    if len(x.shape) > 2 and math.prod(y.shape[:-2]) == 1:  # a single product, of all rows
        rows = ops.reshape(x, shape=(math.prod(x.shape[:-1]), x.shape[-1]))
        flat = ops.reshape(y, shape=y.shape[-2:]) if len(y.shape) > 2 else y
        flat_product = _product(Node("matmul", (rows, flat), {}, (rows.shape[0], y.shape[-1]), node.dtype))
        return ops.reshape(flat_product, shape=node.shape)
    return node if node.dtype.startswith("float") else evolve(node, op="tiled_matmul")


def _convolution(node: Node) -> Node:
    """Cut the long sums of a convolution with few results, as those of the gradient of kernels."""
    if not math.prod(node.shape) or not all(math.prod(x.shape) for x in node.inputs):
        return ops.full(0.0, node.shape, node.dtype)
    if node.op != "convolution_kernel":
        return node
    length = node.inputs[1].shape[0] * math.prod(node.inputs[1].shape[2:])
    splits = min(length // DEEP, BLOCKS // -(-math.prod(node.shape) // TILE))
    if splits < 2:
        return node
    parts = evolve(node, attrs={**node.attrs, "splits": splits}, shape=(splits, *node.shape))
    return ops.reshape(_reduction(ops.sum(parts, axis=(0,))), shape=node.shape)


def _first_input(node: Node) -> Node:
    return node.inputs[0]


_FORMS: dict[str, Callable[[Node], Node]] = {
    **dict.fromkeys(REDUCTIONS, _reduction),
    **dict.fromkeys(CONVOLUTIONS, _convolution),
    **dict.fromkeys(("argsort", "cholesky", "irfft", "rfft", "solve", "svd"), _library),
    "cumsum": _cumsum,
    "matmul": _product,
    "mixed_matmul": _lower_mixed,
    "stop": _first_input,
    "barrier": _first_input,
}
