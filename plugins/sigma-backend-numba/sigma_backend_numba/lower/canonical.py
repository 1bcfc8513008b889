"""Rewrite a graph to its canonical form: each value is computed in place, or read from where it is stored.

It holds primitives only; minibatches are gathers from the resident block, unless only products need them that read its
rows in place (see ``resident``); operands of matrix products have strides that BLAS accepts, and those of plain kernels
are contiguous.  Four ops exist only here: ``gather`` (a row of the block for each sample), ``mixed`` (a product of
matrices that are rounded to bfloat16), ``copy``, and ``later`` (see ``barriers``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from attrs import define, evolve, field, frozen

from sigma_backend_numba.compiler.processor import AMX, DOTS, mixed_form
from sigma_backend_numba.lower import attention
from sigma_backend_numba.lower.barriers import lower_barriers
from sigma_backend_numba.lower.batch_chunks import CHUNKS as CHUNKS, cut
from sigma_backend_numba.lower.kernels import LOWERINGS, to_call
from sigma_backend_numba.lower.layout import VIEWS, is_regular, layout, source
from sigma_backend_numba.lower.packing import pack_matrices
from sigma_backend_numba.lower.paired_products import PAIRED, to_pairs
from sigma_backend_numba.lower.pieces import side_by_side
from sigma_backend_numba.lower.resident import read_in_place
from sigma_backend_numba.lower.running_sums import summed_later
from sigma_backend_numba.lower.tiled_convolutions import to_tiles
from sigma_backend_numba.scalars import SCALARS
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import Graph, Node, constant, map_nodes, rewrite, topological_order, with_inputs

WORK = 3e6  # minimum floating-point operations of a part of a sum of products, or of a piece for BLAS
PACKED = {AMX: 500_000, DOTS: 60_000}  # minimum floating-point operations of a product that packs bfloat16
NARROW = {AMX: to_tiles, DOTS: to_pairs}  # functions that return convolutions in bfloat16
LEAST = 16  # and its smallest side
MANY = 128  # and its rows, in a scan
ALL = 50_000  # minimum elements of a full reduction: a smaller one is done before a second thread has started
STATE, DATA, STEER = "state", "data", "steer"
FLOATS = frozenset({"float32", "float64"})
DTYPES = frozenset({*FLOATS, "int32", "int64", "uint32", "bool"})
LEAVES = frozenset({"input", "constant"})
ELEMENTWISE = frozenset({*SCALARS, "random_bits", "gather", "take"})
FOLDS = frozenset({"sum", "max"})
PLAIN = frozenset({
    "argmax", "cumsum", "pad", "concat", "scatter_add", "matmul", "mixed", "convolution", "convolution_input",
    "convolution_kernel", "kernel_parts", "max_pool", "pool_argmax", "pool_select", "pool_scatter", "sum_pool",
    "sum_unpool", "scan", "part", "packed", PAIRED, "rows", "python", "attend", "attend_back",
})  # fmt: skip  # (matmul of integers)
KNOWN = LEAVES | VIEWS | ELEMENTWISE | FOLDS | PLAIN | attention.FUSED


@frozen(eq=False)
class Wiring:
    """How each input of a graph arrives, and which input's storage each output takes (or None)."""

    kinds: tuple[str, ...]
    targets: tuple[int | None, ...]


@define(eq=False)
class Form:
    """A graph in canonical form.  ``places`` numbers the inputs; ``outputs`` holds the node computed for each."""

    graph: Graph
    frame: Wiring
    places: dict[Node, int] = field(init=False)
    outputs: dict[int, Node] = field(factory=dict, init=False)
    nodes: tuple[Node, ...] = field(init=False)
    rows: int = field(init=False)  # of a minibatch, 0 without data
    parts: dict[Node, list[Node]] = field(factory=dict, init=False)  # parts of each scan
    _new: dict[Node, Node] = field(factory=dict, init=False)
    _pools: dict[Node, list[Node]] = field(factory=dict, init=False)  # by operand
    _delivered: set[Node] = field(factory=set, init=False)
    _gradients: dict[tuple[object, ...], Node] = field(factory=dict, init=False)  # of attention, by operands
    _inverse: dict[Node, Node] = field(factory=dict, init=False)  # one over a root

    def __attrs_post_init__(self) -> None:
        """Rewrite the graph."""
        _check(self.graph)
        self.places = {node: i for i, node in enumerate(self.graph.inputs)}
        data = [node for node, kind in zip(self.graph.inputs, self.frame.kinds, strict=True) if kind == DATA]
        self.rows = data[0].shape[0] if data else 0
        self._new = {node: node for node in self.graph.inputs}
        self._new |= {x: _gather(x, self.places[x]) for x in {*data} - read_in_place(self.graph, data)}
        for node in self.graph:
            if node not in self._new:
                self._new[node] = image = self._adapt(node)
                if image.op == "max_pool":
                    self._pools.setdefault(image.inputs[0], []).append(image)
        for out, node in enumerate(self.graph.outputs):
            self._deliver(out, self._new[node])
        self.nodes = tuple(topological_order(tuple(self.outputs.values())))
        for node in self.nodes:
            if node.op == "part":
                self.parts.setdefault(node.inputs[0], []).append(node)

    def _adapt(self, node: Node) -> Node:
        """Return a node whose operands have the layouts that it needs."""
        operands = tuple(self._new[x] for x in node.inputs)
        if node.op in attention.FUSED:
            return self._attend(node, operands)
        if node.op == "mixed" or (node.op == "matmul" and node.dtype in FLOATS):
            operands = tuple(x if _fit_for_blas(x) else _copy(x) for x in operands)
        elif node.op == "take":
            operands = (operands[0] if _in_memory(operands[0]) else _copy(operands[0]), operands[1])
        elif node.op == "random_bits":
            operands = (operands[0] if _in_memory(operands[0]) else _copy(operands[0]), *operands[1:])
        elif node.op in PLAIN and node.op != "part":
            operands = tuple(x if _in_memory(x) and is_regular(x) else _copy(x) for x in operands)
        if node.op == "pool_argmax":
            operands += self._find_maxima(node, operands[0])
        image = with_inputs(node, operands)
        if image.op == "convolution_kernel":
            return _in_parts(image)
        if image.op == "div" and _has_few_roots(image):
            return evolve(image, op="mul", inputs=(image.inputs[0], self._invert(image.inputs[1])))
        if image.op == "sum" and _adds_up_scattered(image):
            image = evolve(image, inputs=image.inputs[0].inputs[:1])
        if image.op in FOLDS and _reduces_much(image):
            return _in_rows(image)
        if image.op in VIEWS and layout(image) is None:
            image = evolve(image, inputs=(_copy(image.inputs[0]),))
        return image

    def _invert(self, x: Node) -> Node:
        """Return one over a root, or over a view of one: a product is faster than a quotient."""
        if x.op in VIEWS:
            return evolve(x, inputs=(self._invert(x.inputs[0]),))
        if x not in self._inverse:
            self._inverse[x] = Node("div", (constant(1.0, x.dtype), x), {}, x.shape, x.dtype)
        return self._inverse[x]

    def _attend(self, node: Node, operands: tuple[Node, ...]) -> Node:
        """Return an attention, or the part of one's gradients."""
        if node.op == "attention":
            return attention.attend(node, [_readable_rows(x) for x in operands])
        key = (operands, node.attrs["causal"])
        if key not in self._gradients:
            rows = [_readable_rows(x) for x in operands]
            self._gradients[key] = attention.gradients(node, rows)
        return attention.part(self._gradients[key], node.attrs["of"])

    def _find_maxima(self, node: Node, x: Node) -> tuple[Node, ...]:
        """Return the maxima of the windows, if the graph computes them anyway."""
        return tuple(pool for pool in self._pools.get(x, ()) if pool.attrs == node.attrs)[:1]

    def _deliver(self, out: int, node: Node) -> None:
        """Record the node that fills an output; one that already fills another, or has no storage, is copied."""
        target = self.frame.targets[out]
        if target is not None and node is self.graph.inputs[target]:
            return  # unchanged
        own = node.op not in VIEWS and node.op not in LEAVES and node.op != "part" and prod(node.shape) > 1
        self.outputs[out] = node if own and node not in self._delivered else _copy(node)
        self._delivered.add(self.outputs[out])


def expand_graph(graph: Graph) -> Graph:
    """Return a graph in ops of this backend: primitives, and calls of functions for other ops.

    Its arrays of constants stay, as they become inputs; those in the body of a scan do not.
    """
    graph = _lower_mixed_products(attention.without_others(graph))
    graph = lower_barriers(rewrite(graph, keep=_Kept()))
    return _lower_scans(summed_later(side_by_side(_lower_to_calls(graph, KNOWN | {"array"}))))


class _Kept:
    """The composites that are not expanded."""

    def __contains__(self, op: object) -> bool:
        return op in attention.FUSED or op in LOWERINGS


def _lower_mixed_products(graph: Graph, within: bool = False) -> Graph:
    """Return a graph in which mixed products are products of bfloat16, or of rounded numbers.

    ``within`` a scan, products of few rows are of rounded numbers: their second operands are packed once (see
    ``packing``), while pairs would be packed in each step.
    """
    if _lacks(graph, "mixed_matmul", "reduce_precision"):
        return graph

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        if node.op != "mixed_matmul":
            narrow = NARROW[mixed_form()](node, inputs) if mixed_form() else None
            return with_inputs(node, inputs) if narrow is None else narrow
        if node.dtype == "float32" and node.attrs["dtype"] == "bfloat16" and _large(node, within):
            return evolve(node, op="mixed", inputs=inputs)
        return evolve(node, op="matmul", inputs=tuple(_round_operand(x, node.attrs) for x in inputs), attrs={})

    return map_nodes(graph, change, partial(_lower_mixed_products, within=True))


def _large(node: Node, within: bool) -> bool:
    """Return whether this processor multiplies numbers of bfloat16 faster, although both operands are packed."""
    if not mixed_form():
        return False
    (rows, columns), inner = node.shape[-2:], node.inputs[0].shape[-1]
    least = MANY if within else LEAST
    return min(rows, columns, inner) >= LEAST and rows >= least and 2 * rows * columns * inner >= PACKED[mixed_form()]


def _round_operand(x: Node, attrs: Mapping[str, Any]) -> Node:
    """Return an operand rounded before it is transposed, so that products of both forms share the rounding."""
    if x.op == "permute":
        return evolve(x, inputs=(_round_operand(x.inputs[0], attrs),))
    return Node("reduce_precision", (x,), attrs, x.shape, x.dtype)


def _lower_scans(graph: Graph) -> Graph:
    """Return a graph whose scans, those within scans included, are cut into chunks and multiply packed matrices."""
    if _lacks(graph):
        return graph

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        image = with_inputs(node, inputs)
        return pack_matrices(cut(image)) if image.op == "scan" else image

    return map_nodes(graph, change, _lower_scans)


def _lacks(graph: Graph, *ops: str) -> bool:
    """Return whether a graph has none of these ops, and no scans."""
    return {"scan", *ops}.isdisjoint(node.op for node in graph)


def _lower_to_calls(graph: Graph, known: Collection[str] = KNOWN) -> Graph:
    if _lacks(graph) and all(node.op in known for node in graph):
        return graph

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        image = with_inputs(node, inputs)
        return image if node.op in known else to_call(image)

    return map_nodes(graph, change, _lower_to_calls)


def _check(graph: Graph) -> None:
    used = {node.dtype for node in (*graph.inputs, *graph)} - {"tuple"}
    if foreign := ", ".join(sorted(used - DTYPES)):
        raise SigmaGraphError(f"numba: this backend does not compute in {foreign}. Use: {', '.join(sorted(DTYPES))}.")


def _gather(node: Node, place: int) -> Node:
    return Node("gather", (), {"input": place}, node.shape, node.dtype)


def _copy(node: Node) -> Node:
    return Node("copy", (node,), {}, node.shape, node.dtype)


def _in_parts(node: Node) -> Node:
    """Return the gradient of a kernel as a sum of parts, each over a fixed range of samples."""
    samples, work = node.inputs[1].shape[0], 2.0 * prod(node.inputs[1].shape) * prod(node.shape[1:])
    count = max(1, min(CHUNKS, int(work // WORK), samples))
    parts = Node("kernel_parts", node.inputs, {**node.attrs, "parts": count}, (count, *node.shape), node.dtype)
    total = Node("sum", (parts,), {"axis": (0,)}, (1, *node.shape), node.dtype)
    return Node("reshape", (total,), {"shape": node.shape}, node.shape, node.dtype)


def _reduces_much(node: Node) -> bool:
    """Return whether a large value is reduced to one number."""
    (x,) = node.inputs
    return prod(node.shape) == 1 and prod(x.shape) >= ALL and sum(side > 1 for side in x.shape) > 1


def _in_rows(node: Node) -> Node:
    """Split a full reduction into one over rows, which threads can share, and one of the rows' results."""
    (x,) = node.inputs
    first = next(k for k, side in enumerate(x.shape) if side > 1)
    shape = tuple(side if k == first else 1 for k, side in enumerate(x.shape))
    rows = Node(node.op, (x,), {"axis": tuple(k for k in range(len(shape)) if k != first)}, shape, node.dtype)
    return Node(node.op, (rows,), {"axis": node.attrs["axis"]}, node.shape, node.dtype)


def _adds_up_scattered(node: Node) -> bool:
    """Return whether a sum adds up whole images of values scattered in windows: each number once, and zeros."""
    (x,) = node.inputs
    inside = x.op == "pool_scatter" and not any(map(any, x.attrs["padding"]))
    return inside and {*range(2, len(x.shape))} <= {*node.attrs["axis"]}


def _has_few_roots(node: Node) -> bool:
    """Return whether a quotient divides by fewer roots than it has elements: one over a root overflows only at 0."""
    divisor = source(node.inputs[1])
    return divisor.op == "sqrt" and prod(divisor.shape) < prod(node.shape)


def _in_memory(node: Node) -> bool:
    """Return whether a value can be read from memory: constants and free scalars cannot."""
    return source(node).op != "constant" and (prod(source(node).shape) > 1 or source(node).op in {"input", *PLAIN})


def _readable_rows(node: Node) -> Node:
    """Return a value in memory, the rows of its last axis contiguous; a mask may have any strides."""
    placement = layout(node)
    fits = placement is not None and (node.dtype == "bool" or placement.strides[-1] == 1 or node.shape[-1] == 1)
    return node if fits and _in_memory(node) else _copy(node)


def _fit_for_blas(node: Node) -> bool:
    """Return whether the last two axes are a matrix that BLAS reads, as it is or transposed."""
    placement = layout(node)
    return _in_memory(node) and placement is not None and matrix(node.shape, placement.strides) is not None


def matrix(shape: Sequence[int], strides: Sequence[int]) -> tuple[bool, int] | None:
    """Return whether a matrix is transposed, and its leading dimension; None if BLAS cannot read it."""
    (rows, columns), (down, along) = shape[-2:], strides[-2:]
    if not rows * columns:
        return False, max(columns, 1)
    if (along == 1 or columns <= 1) and (down >= max(columns, 1) or rows <= 1):
        return False, down if rows > 1 else max(columns, 1)
    if (down == 1 or rows <= 1) and (along >= max(rows, 1) or columns <= 1):
        return True, along if columns > 1 else max(rows, 1)
    return None


def frame(inputs: Mapping[str, int], targets: Sequence[int | None], constants: int = 0) -> Wiring:
    """Return the frame of a graph with this many inputs of each kind, in order, and then constant arrays."""
    kinds = (kind for kind, count in inputs.items() for _ in range(count))
    return Wiring((*kinds, *(STATE,) * constants), tuple(targets))
