"""Shared by regression metrics: targets in the shape of predictions, and sums over rows."""

from __future__ import annotations

from math import prod

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node


def like(prediction: Node, targets: Node) -> Node:
    """Return the targets in the shape and dtype of the predictions; SigmaNetworkError if the sizes differ."""
    if prod(prediction.shape) != prod(targets.shape):
        raise SigmaNetworkError(
            f"metrics of numbers: predictions have shape {prediction.shape} and targets {targets.shape}. "
            "Give as many outputs as targets."
        )
    return f.cast(f.reshape(targets, prediction.shape), prediction.dtype)


def per_row(errors: Node) -> Node:
    """Return the sum over rows of the mean over each row, a scalar."""
    return f.sum(errors) * (errors.shape[0] / prod(errors.shape))
