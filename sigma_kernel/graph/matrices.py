"""Ops of linear algebra: their meanings, their gradients, and their rows in the table.

A matrix for which there is no result (singular, not positive definite, or with entries that are not finite) has NaN
everywhere, and leaves the other matrices of a batch alone.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from sigma_kernel.graph import dtypes, shapes
from sigma_kernel.graph.namespace import Array, Namespace
from sigma_kernel.graph.node import Node
from sigma_kernel.graph.ops import Op, equal, iota, op, pieces, swap_axes, where

SHARE = 0.3  # of the largest entry of a left vector: the first entry of at least this size is positive


# -- meanings ----------------------------------------------------------------------------------------------------------
def _is_finite(ns: Namespace, x: Array) -> Array:
    """Return whether all entries of each matrix are finite, with two axes of side 1."""
    return ns.xp.all(ns.xp.isfinite(x), axis=(-2, -1), keepdims=True)


def keep_finite(ns: Namespace, run: Callable[..., Array], *operands: Array) -> Array:
    """Return the results of a function of matrices; NaN if an operand, or the result, has an entry that is not finite.

    The function gets zeros in place of such operands, as libraries refuse infinities.
    """
    fine = [_is_finite(ns, x) for x in operands]
    result = run(*(ns.xp.where(good, x, ns.full(x.shape, 0.0, x)) for good, x in zip(fine, operands, strict=True)))
    every = _is_finite(ns, result)
    for good in fine:
        every = every & good
    return ns.xp.where(every, result, ns.full(result.shape, float("nan"), result))


def _one_by_one(ns: Namespace, run: Callable[..., Array], *operands: Array) -> Array:
    """Return the results of a function of matrices that raises a library's error for some: they get NaN, no other."""
    try:
        return run(*operands)
    except Exception as error:
        if "LinAlgError" not in type(error).__name__:  # which each library has
            raise
        if operands[0].ndim == 2:
            return ns.full(operands[-1].shape, float("nan"), operands[-1])
        return ns.xp.stack([_one_by_one(ns, run, *(x[i, ...] for x in operands)) for i in range(operands[0].shape[0])])


def _solve(ns: Namespace, a: Array, b: Array, *, by: Callable[..., Array] | None = None) -> Array:
    """Return the solutions of linear equations; ``by`` is the library's function for matrices of equal leading axes."""
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    left, right = (ns.xp.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b))
    if not prod(right.shape):
        return right
    run = by or (lambda *x: _one_by_one(ns, ns.xp.linalg.solve, *x))
    return keep_finite(ns, run, left, right)


def _cholesky(ns: Namespace, a: Array, *, by: Callable[..., Array] | None = None) -> Array:
    """Return the lower Cholesky factors of the symmetric parts of matrices."""
    if not prod(a.shape):
        return a
    run = by or (lambda x: _one_by_one(ns, ns.xp.linalg.cholesky, x))
    return keep_finite(ns, lambda x: run((x + ns.xp.matrix_transpose(x)) * 0.5), a)


def _svd(ns: Namespace, x: Array) -> Array:
    """Return the singular value decompositions, each as rows of a left vector, its value and its right vector."""
    *lead, height, width = x.shape
    if not prod(x.shape):
        return ns.full((*lead, min(height, width), height + 1 + width), 0.0, x)
    return keep_finite(ns, lambda x: _decompose(ns, x), x)


def _decompose(ns: Namespace, x: Array) -> Array:
    u, s, right = ns.xp.linalg.svd(x, full_matrices=False)
    left = ns.xp.matrix_transpose(u)
    size = ns.xp.abs(left)
    large = ns.cast(size >= ns.xp.max(size, axis=-1, keepdims=True) * SHARE, "int32")
    first = ns.xp.argmax(large, axis=-1, keepdims=True) == ns.xp.arange(left.shape[-1])
    value = ns.xp.sum(ns.xp.where(first, left, ns.full(left.shape, 0.0, left)), axis=-1, keepdims=True)
    sign = ns.xp.where(value < 0, ns.full(value.shape, -1.0, value), ns.full(value.shape, 1.0, value))
    return ns.xp.concat([left * sign, s[..., None], right * sign], axis=-1)


# -- gradients ---------------------------------------------------------------------------------------------------------
def _solve_flow(g: Node, z: Node, a: Node, b: Node) -> tuple[Node, Node]:
    back = solve(swap_axes(a), g)
    return -(back @ swap_axes(z)), back


def _lower(x: Node, diagonal: float) -> Node:
    """Return the lower triangles of matrices, with a factor on the diagonal."""
    rank, side = len(x.shape), x.shape[-1]
    rows, columns = (iota(shape=(*(1,) * (rank - 2), side, side), axis=rank - k, dtype="int32") for k in (2, 1))
    return where(rows > columns, x, where(equal(rows, columns), x * diagonal, 0.0))


def _cholesky_flow(g: Node, z: Node, a: Node) -> Node:
    """Differentiate a Cholesky factor (Murray, arXiv:1602.07527, equation 10); the gradient is symmetric."""
    upper = swap_axes(z)
    inner = solve(upper, _lower(upper @ _lower(g, 1.0), 0.5))
    whole = solve(upper, swap_axes(inner))
    return (whole + swap_axes(whole)) * 0.5


def _divide(x: Node, y: Node) -> Node:
    """Return a quotient, and 0 for 0 / 0: what a loss does not depend on has no gradient."""
    none = equal(x, 0.0) & equal(y, 0.0)
    return where(none, 0.0, x / where(none, 1.0, y))


def _svd_flow(g: Node, z: Node, x: Node) -> Node:
    """Differentiate a reduced decomposition (Townsend, Differentiating the singular value decomposition, 2016)."""
    height, width = x.shape[-2:]
    (left, s, right), (gl, gs, gr) = (pieces(y, (height, 1, width), len(z.shape) - 1) for y in (z, g))
    row = swap_axes(s)
    gap = (row - s) * (row + s)
    turns = [_divide(_antisymmetric(y @ swap_axes(h)), gap) for y, h in ((left, gl), (right, gr))]
    sides = (s.shape[-2], 1), (1, s.shape[-2])
    diagonal = equal(*(iota(shape=side, axis=axis, dtype="int32") for axis, side in enumerate(sides)))
    inner = turns[0] * row + s * turns[1] + where(diagonal, gs, 0.0)
    result = swap_axes(left) @ inner @ right
    if height > width:
        result = result + swap_axes(_divide(gl - gl @ swap_axes(left) @ left, s)) @ right
    if width > height:
        result = result + swap_axes(left) @ _divide(gr - gr @ swap_axes(right) @ right, s)
    return result


def _antisymmetric(x: Node) -> Node:
    return x - swap_axes(x)


# -- rows --------------------------------------------------------------------------------------------------------------
def _count_solution(z: Node, a: Node, b: Node) -> int:
    side = a.shape[-1]
    return prod(z.shape[:-2]) * (2 * side**3 // 3 + 2 * side * side * z.shape[-1])


# fmt: off
solve: Op = op("solve", shapes.solution, dtypes.wide, _solve_flow, meaning=_solve,
               operations=_count_solution)
cholesky: Op = op("cholesky", shapes.square_matrix, dtypes.wide, _cholesky_flow, meaning=_cholesky,
                  operations=lambda z, a: z.size * z.shape[-1] // 3)
svd: Op = op("svd", shapes.decomposition, dtypes.wide, _svd_flow, meaning=_svd,
             operations=lambda z, x: 14 * z.size * min(x.shape[-2:]))
