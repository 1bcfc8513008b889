"""Flatten each sample to a vector."""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, Layer
from sigma_kernel.graph import Node


@define(eq=False)
class Flatten(Layer):
    """Flatten each sample to a vector, last axis fastest: ``Flatten()``.

    Shapes: ``(batch, a, b, ...)`` -> ``(batch, a * b * ...)``; ``(batch,)`` -> ``(batch, 1)``.

    Same as ``torch.nn.Flatten``.
    """

    reshapes: ClassVar[bool] = True

    def forward(self, context: Context, x: Node) -> Node:
        """Return the rows."""
        return f.flatten(x)
