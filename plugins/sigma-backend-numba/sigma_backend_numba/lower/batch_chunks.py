"""Cut scans into chunks of the batch: a thread runs all steps of a chunk, and waits for no other.

A scan is cut if each row of its results depends on the same row of its carries and on no other: on those of sequences
and constants, or on whole ones, like the weights of products.  The number of chunks depends on the graph alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from math import prod
from operator import mul

from attrs import evolve

from sigma_backend_numba.scalars import SCALARS
from sigma_kernel.graph import Graph, Node, select_ops, symbol, topological_order

CHUNKS = 8  # maximum number of pieces of a task: the number of threads that can help
ROWS = 8  # minimum rows of a chunk: as many share one pass over the weights
CHUNK = 1e6  # minimum operations of a chunk
PRODUCTS = frozenset({"matmul", "mixed"})
REDUCTIONS = select_ops(entries="folded")
Wanted = dict[Node, set[int | None]]  # the axes at which nodes are cut; None: a whole node


def cut(scan: Node) -> Node:
    """Return a scan whose body computes one of several chunks, or the same node.

    New attributes are ``chunks``, and ``split``: whether the body gets a chunk of each operand.
    """
    attrs, body = scan.attrs, scan.attrs["body"]
    rows = {node.shape[0] if node.shape else 1 for node in body.outputs}
    chunks = _chunks(rows.pop(), attrs["length"] * work(body)) if len(rows) == 1 else 1
    wanted = _find_cuts(body, body.inputs[: attrs["carries"]]) if chunks > 1 else None
    if wanted is None:
        return scan
    split = tuple(wanted.get(node) == {0} for node in body.inputs)
    return evolve(scan, attrs={**attrs, "body": _smaller(body, wanted, chunks), "chunks": chunks, "split": split})


def work(body: Graph) -> int:
    """Return the approximate operations of a body."""
    inner = (2 * node.inputs[0].shape[-1] if node.op in PRODUCTS else 1 for node in body)
    return sum(prod(node.shape) * each for node, each in zip(body, inner, strict=True))


def _chunks(rows: int, work: int) -> int:
    """Return the number of chunks: the largest that divides the rows, and leaves each of them enough to do."""
    most = min(CHUNKS, rows // ROWS, int(work // CHUNK))
    return next((count for count in range(most, 1, -1) if rows % count == 0), 1)


def _find_cuts(body: Graph, carries: Sequence[Node]) -> Wanted | None:
    """Return the axes at which all nodes of a body are cut; None if rows depend on each other."""
    wanted: Wanted = {node: {0} for node in (*carries, *body.outputs)}
    for node in reversed(tuple(topological_order(body.outputs))):
        for axis in wanted[node] if node.op != "input" else ():
            axes = (None,) * len(node.inputs) if axis is None else _axes(node, axis)
            if axes is None:
                return None
            for x, at in zip(node.inputs, axes, strict=True):
                wanted.setdefault(x, set()).add(at)
    fits = all(wanted.get(node, {0}) in ({0}, {None}) for node in body.inputs)
    return wanted if fits and all(wanted[node] == {0} for node in carries) else None


# -- what a chunk of a node needs --------------------------------------------------------------------------------------
def _axes(node: Node, axis: int) -> Sequence[int | None] | None:
    """Return the axis at which each operand is cut for a chunk along an axis of a node; None if it needs more."""
    attrs, operands = node.attrs, node.inputs
    if node.op == "iota":  # which is in the table of scalars, too
        return () if axis != attrs["axis"] else None
    if node.op in SCALARS or node.op in ("stretch", "stop"):
        return [_operand_axis(node, x, axis) for x in operands]
    if node.op in REDUCTIONS:
        return [axis]
    match node.op:
        case "matmul" | "mixed":
            return _of_product(node, axis)
        case "reshape":
            return _before_reshape(operands[0].shape, node.shape, axis)
        case "permute":
            return [attrs["axes"][axis]]
        case "slice" | "pad":
            return [axis] if node.shape[axis] == operands[0].shape[axis] else None
        case "concat":
            return [axis] * len(operands) if axis != attrs["axis"] else None
        case "take":
            return _of_take(node, axis)
    return None


def _operand_axis(node: Node, x: Node, axis: int) -> int | None:
    """Return the axis of an operand that broadcasts along an axis of its node; None if it is repeated there."""
    own = axis - len(node.shape) + len(x.shape)
    return own if own >= 0 and x.shape[own] != 1 else None


def _of_product(node: Node, axis: int) -> Sequence[int | None]:
    x, y = node.inputs
    match len(node.shape) - axis:
        case 1:
            return None, len(y.shape) - 1
        case 2:
            return len(x.shape) - 2, None
    return [_operand_axis(node, x, axis), _operand_axis(node, y, axis)]


def _before_reshape(before: Sequence[int], after: Sequence[int], axis: int) -> list[int | None] | None:
    """Return the axis with the same place in the order of elements, if there is one."""
    parts = [1, *accumulate(before, mul)]
    places = [k for k, side in enumerate(before) if side == after[axis] and parts[k] == prod(after[:axis])]
    return [places[0]] if places else None


def _of_take(node: Node, axis: int) -> Sequence[int | None]:
    _, indices = node.inputs
    first, count = node.attrs["axis"], len(indices.shape)
    if first <= axis < first + count:
        return None, axis - first
    return axis if axis < first else axis - count + 1, None


# -- the smaller body --------------------------------------------------------------------------------------------------
def _smaller(body: Graph, wanted: Wanted, chunks: int) -> Graph:
    """Return the body for one chunk."""
    new: dict[tuple[Node, int | None], Node] = {}
    for node in body.inputs:
        (axis,) = wanted.get(node, {None})
        new[node, axis] = node if axis is None else symbol(_cut(node.shape, 0, chunks), node.dtype)
    for node in topological_order(body.outputs):
        for axis in _pending(node, wanted[node], new):
            axes = (None,) * len(node.inputs) if axis is None else _axes(node, axis) or ()
            operands = tuple(new[x, at] for x, at in zip(node.inputs, axes, strict=True))
            new[node, axis] = evolve(node, inputs=operands) if axis is None else _resize(node, operands, axis, chunks)
    inputs = tuple(new[node, axis] for node in body.inputs for axis in wanted.get(node, {None}))
    return Graph(inputs, tuple(new[node, 0] for node in body.outputs))


def _pending(
    node: Node, axes: Collection[int | None], known: Mapping[tuple[Node, int | None], Node]
) -> Iterator[int | None]:
    return (axis for axis in axes if (node, axis) not in known)


def _cut(shape: Sequence[int], axis: int, chunks: int) -> tuple[int, ...]:
    return tuple(side // chunks if k == axis else side for k, side in enumerate(shape))


def _resize(node: Node, operands: tuple[Node, ...], axis: int, chunks: int) -> Node:
    """Return a node of other operands, with a smaller side."""
    shape = _cut(node.shape, axis, chunks)
    named = {"reshape": "shape", "stretch": "shape", "iota": "shape"}.get(node.op)
    attrs = {**node.attrs, named: shape} if named else dict(node.attrs)
    if node.op == "slice":
        attrs["stop"] = _cut(node.attrs["stop"], axis, chunks)
    return evolve(node, inputs=operands, attrs=attrs, shape=shape)
