"""Positions in sequences: where an input begins, tables by position, and rotations."""

from __future__ import annotations

import numpy as np

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node


def check_sequence(where: str, shape: tuple[int, ...]) -> None:
    """Raise SigmaNetworkError unless a sample is a sequence of vectors."""
    if len(shape) != 2:
        raise SigmaNetworkError(
            f"{where}({shape}): a sample must be a sequence, (time, features). "
            "Put Embedding or Reshape(time, features) before it."
        )


def by_position(context: Context, table: Node, count: int) -> Node:
    """Return the rows ``(count, ...)`` of a table ``(length, ...)`` for the positions of an input."""
    if context.continuation is None:
        return f.narrow(table, 0, 0, count)
    return f.take(table, context.continuation.position + f.iota((count,)))


def length_of(context: Context, count: int) -> int:
    """Return the length of whole sequences, given that of an input."""
    return count if context.continuation is None else context.continuation.length


def angles(length: int, features: int, base: float) -> np.ndarray:
    """Return the angle ``t / base**(2i / features)`` of each position t and pair i, ``(length, pairs)``."""
    pairs = np.arange((features + 1) // 2)
    return np.asarray(np.arange(length)[:, None] * base ** (-2.0 * pairs / features))


def rotate_pairs(context: Context, x: Node, base: float) -> Node:
    """Rotate pairs of neighbouring features of ``(..., time, features)`` by angles that grow with the position.

    Products of two rotated vectors depend on the distance of their positions alone (Su et al., RoFormer,
    arXiv:2104.09864).
    """
    *lead, count, features = x.shape
    turns = angles(length_of(context, count), features, base)
    cos, sin = (by_position(context, f.constant(part, x.dtype), count) for part in (np.cos(turns), np.sin(turns)))
    pairs = f.reshape(x, (*lead, count, features // 2, 2))
    first, second = (f.squeeze(half, -1) for half in f.split(pairs, 2))
    return f.reshape(f.stack(first * cos - second * sin, first * sin + second * cos, axis=-1), x.shape)
