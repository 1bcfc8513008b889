"""Units of a parameter: slices along an axis, such as the columns of a dense layer's weights."""

from __future__ import annotations

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node, Shape


def other_axes(who: str, shape: Shape, axis: int) -> tuple[int, ...]:
    """Return all axes but that of the units; a vector is one unit.

    Raises SigmaNetworkError, naming the modifier, if there is no such axis.
    """
    rank = len(shape)
    if rank < 2:
        return tuple(range(rank))
    if not has(shape, axis):
        advice = f"Set axis to one from {-rank} to {rank - 1}, or narrow `match`"
        raise SigmaNetworkError(f"{who}({shape}): has no axis {axis}. {advice}.")
    return tuple(i for i in range(rank) if i != axis % rank)


def has(shape: Shape, axis: int) -> bool:
    """Return whether units lie along an axis of a shape; those of a vector need none."""
    return len(shape) < 2 or -len(shape) <= axis < len(shape)


def norms(who: str, parameter: Node, axis: int) -> Node:
    """Return the Euclidean norm of each unit, broadcastable to the parameter."""
    return f.norm(parameter, axis=other_axes(who, parameter.shape, axis), keepdims=True)
