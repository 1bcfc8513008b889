"""Helpers of norms: their axes, scale and shift."""

from __future__ import annotations

from collections.abc import Sequence

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Parameter
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node


def standardise(x: Node, axes: Sequence[int], epsilon: float) -> Node:
    """Return x with mean 0 and variance 1 over axes."""
    centred = x - f.mean(x, axes, keepdims=True)
    return centred / f.sqrt(f.mean(f.square(centred), axes, keepdims=True) + epsilon)


def apply_scale_and_shift(context: Context, x: Node, shape: Sequence[int]) -> Node:
    """Return x times the scale, plus the shift, both reshaped; x itself if the layer has neither."""
    for name, combine in (("scale", f.mul), ("shift", f.add)):
        if name in context.parameters:
            x = combine(x, f.reshape(context.parameters[name], shape))
    return x


def scale_and_shift(shape: Sequence[int]) -> dict[str, Parameter]:
    """Return the declarations of a scale, at first 1, and a shift, at first 0."""
    return {"scale": Parameter(tuple(shape), 1.0), "shift": Parameter(tuple(shape))}


def trailing(where: str, shape: Sequence[int], axes: int) -> tuple[int, ...]:
    """Return the last sides of a sample; raises SigmaNetworkError if there are fewer."""
    if axes > len(shape):
        raise SigmaNetworkError(
            f"{where}({tuple(shape)}): there are no {axes} trailing axes to normalise, as a sample has {len(shape)}. "
            "Use fewer, or a Reshape before it."
        )
    return tuple(shape[len(shape) - axes :])


def require_several(where: str, shape: Sequence[int], values: int, what: str) -> None:
    """Raise SigmaNetworkError unless several values are normalised together: a single one becomes 0."""
    if values < 2:
        raise SigmaNetworkError(
            f"{where}({tuple(shape)}): {what} has a single value, which always normalises to 0. "
            "Normalise more of them together, or use batch_norm."
        )
