"""The semantics of each primitive, written once for any array namespace: the reference for every backend.

::

    run = interpret(graph, numpy_namespace())
    outputs = run(*arrays)

A meaning takes the namespace, the operands in order, and the attributes by name. That of an elementwise op is the
function of the array API standard that its row names, unless the table below gives another. An op without a meaning has
an expansion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import Any

from sigma_kernel.graph import matrices as matrices, ops as ops, spectra as spectra, windows  # rows with own meanings
from sigma_kernel.graph.namespace import Array, Namespace, interpret as interpret, meaning_of as meaning_of
from sigma_kernel.graph.node import MEANINGS as MEANINGS, Node
from sigma_kernel.graph.philox import random_bits

Meaning = Callable[..., Any]
Axes = tuple[int, ...]


def _iota(ns: Namespace, *, shape: Axes, axis: int, dtype: str) -> Array:
    row = ns.xp.reshape(ns.cast(ns.xp.arange(shape[axis]), dtype), (shape[axis], *(1,) * (len(shape) - axis - 1)))
    return ns.xp.broadcast_to(row, shape)


def _reduce_precision(ns: Namespace, x: Array, *, dtype: str) -> Array:
    """Round to nearest, ties to even; float64 is rounded to float32 first."""
    return ns.xp.astype(ns.narrow(ns, ns.cast(x, "float32"), dtype), x.dtype)


def _cumsum(ns: Namespace, x: Array, *, axis: int, reverse: bool) -> Array:
    total = ns.xp.cumulative_sum(ns.xp.flip(x, axis=axis) if reverse else x, axis=axis, dtype=x.dtype)
    return ns.xp.flip(total, axis=axis) if reverse else total


def argsort(ns: Namespace, x: Array, *, axis: int, descending: bool, by: Callable[..., Array] | None = None) -> Array:
    """Return the places of the entries in order, equal ones in theirs, NaN as the greatest; ``by`` sorts upwards."""
    sort = by or partial(ns.xp.argsort, stable=True)
    if not descending:
        return ns.cast(sort(x, axis=axis), "int32")
    places = ns.xp.flip(sort(ns.xp.flip(x, axis=axis), axis=axis), axis=axis)
    return ns.cast(x.shape[axis] - 1 - places, "int32")


def _take(ns: Namespace, x: Array, indices: Array, *, axis: int) -> Array:
    ns.inside("take", indices, x.shape[axis])
    taken = ns.xp.take(x, ns.xp.reshape(indices, (prod(indices.shape),)), axis=axis)
    return ns.xp.reshape(taken, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def _scatter_add(ns: Namespace, x: Array, indices: Array, updates: Array, *, axis: int) -> Array:
    """Move the axis to the front and reshape both arrays to matrices, so that the namespace adds rows."""
    ns.inside("scatter_add", indices, x.shape[axis])
    places, rank = len(indices.shape), len(updates.shape)
    order = (axis, *(i for i in range(len(x.shape)) if i != axis))
    named = tuple(range(axis, axis + places))
    front = ns.xp.permute_dims(x, order)
    rows = ns.xp.permute_dims(updates, (*named, *(i for i in range(rank) if i not in named)))
    width, count = prod(front.shape[1:]), prod(indices.shape)
    matrices = ns.xp.reshape(front, (x.shape[axis], width)), ns.xp.reshape(rows, (count, width))
    total = ns.scatter_add(ns.xp, matrices[0], ns.xp.reshape(indices, (count,)), matrices[1])
    return ns.xp.permute_dims(ns.xp.reshape(total, front.shape), sorted(range(len(order)), key=order.__getitem__))


def scan(
    ns: Namespace, *operands: Array, run: Callable[..., tuple[Array, ...]], wanted: Mapping[int, Node],
    carries: int, sequences: int, length: int, reverse: bool,
) -> dict[int, Array]:  # fmt: skip
    """Run a body over the leading axis of the sequences and return the wanted parts.

    ``run`` is the body as a function. ``wanted`` holds the nodes that read a part, by the number of the part: final
    carries, stacked outputs, stacked incoming carries.
    """
    carry, constants = operands[:carries], operands[carries + sequences :]
    stacks: dict[int, list[Array]] = {index: [None] * length for index in wanted if index >= carries}
    for t in reversed(range(length)) if reverse else range(length):
        results = run(*carry, *(x[t, ...] for x in operands[carries : carries + sequences]), *constants)
        passed = (*results, *carry)
        for index, stack in stacks.items():
            stack[t] = passed[index]
        carry = results[:carries]
    return {
        index: _stack_rows(ns, stacks[index], wanted[index]) if index in stacks else carry[index] for index in wanted
    }


def _stack_rows(ns: Namespace, rows: list[Array], part: Node) -> Array:
    return ns.xp.stack(rows) if rows else ns.xp.zeros(part.shape, dtype=ns.dtype(part.dtype))


MEANINGS |= {
    "erf": lambda ns, x: ns.erf(ns.xp, x),
    "stop": lambda ns, x: x,
    "barrier": lambda ns, x, gate: x,
    "cast": lambda ns, x, dtype: ns.cast(x, dtype),
    "reduce_precision": _reduce_precision,
    "sum": lambda ns, x, axis: ns.sum(ns.xp, x, axis),
    "max": lambda ns, x, axis: ns.xp.max(x, axis=axis, keepdims=True),
    "argmax": lambda ns, x, axis: ns.cast(ns.xp.argmax(x, axis=axis, keepdims=True), "int32"),
    "cumsum": _cumsum,
    "argsort": argsort,
    "reshape": lambda ns, x, shape: ns.xp.reshape(x, shape),
    "permute": lambda ns, x, axes: ns.xp.permute_dims(x, axes),
    "stretch": lambda ns, x, shape: ns.xp.broadcast_to(x, shape),
    "slice": lambda ns, x, start, stop, step: x[tuple(map(slice, start, stop, step))],
    "concat": lambda ns, *operands, axis: ns.xp.concat(operands, axis=axis),
    "array": lambda ns, value, dtype: ns.array(value.array, dtype),
    "iota": _iota,
    "take": _take,
    "scatter_add": _scatter_add,
    **windows.MEANINGS,
    "random_bits": random_bits,
    "scan": scan,
    "part": lambda ns, parts, index, shape, dtype: parts[index],
}
