"""Cosine distance, for embeddings compared by direction."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Architecture, Context, CostLayer, Totals
from sigma_kernel.errors import SigmaDataError, SigmaNetworkError
from sigma_kernel.graph import Node, Spec
from sigma_kernel.settings import and_, finite, ge, le
from sigma_layers.labels import are_labels
from sigma_layers.targets import alike, check_shape, check_signs, mean, signs

TINY = 1e-12  # is added to squared lengths, as PyTorch does


@define(eq=False, init=False)
class CosineDistance(CostLayer):
    """Minimise ``1 - cosine(output, targets)``, or compare pairs: ``left + CosineDistance(right, margin=0.2)``.

    The cosine is ``x . y / sqrt((x . x + e) (y . y + e))`` over the last axis, with ``e = 1e-12``. Alone, the layer
    before is compared with targets of its shape. With a branch, it is compared with that: pairs whose target is 1 cost
    ``1 - cosine``, and pairs whose target is -1 or 0 cost ``max(0, cosine - margin)``. Matches
    ``torch.nn.functional.cosine_embedding_loss``.

    Shapes: output ``(batch, ..., features)`` and targets of the same shape; or output and branch ``(batch, ...,
    features)`` and targets ``(batch, ...)`` or ``(batch, ..., 1)`` -> scalar.

    Hadsell, Chopra and LeCun, Dimensionality Reduction by Learning an Invariant Mapping, 2006 (pairs).

    Args:
        branches: Architecture of the other embedding of each pair; at most one.
        margin: Cosine up to which pairs that differ cost nothing.
    """

    estimates: ClassVar[bool] = False  # lengths mean nothing

    branches: tuple[Architecture, ...]
    margin: float = field(default=0.0, validator=and_(finite, ge(-1), le(1)))

    def __init__(
        self, *branches: Architecture, margin: float = 0.0, targets: str = "targets", weights: str = "weights",
        weight: float = 1.0, name: str | None = None,
    ) -> None:  # fmt: skip
        self.__attrs_init__(branches, margin, targets=targets, weights=weights, weight=weight, name=name)

    def forward(self, context: Context, *inputs: Node, weights: Node | None = None) -> Node | Totals:
        """Return the mean, or Totals if samples have weights; raises SigmaNetworkError if shapes do not fit."""
        match inputs:
            case [output, targets]:
                return mean(1.0 - cosine(output, alike("cosine_distance", self.targets, targets, output)), weights)
            case [output, other, targets] if other.shape == output.shape and are_labels(targets.shape, output.shape):
                pairs = signs(f.cast(f.reshape(targets, output.shape[:-1]), output.dtype))
                apart = cosine(output, other)
                return mean(f.where(pairs > 0.0, 1.0 - apart, f.relu(apart - self.margin)), weights)
        shapes = ", ".join(str(x.shape[1:]) for x in inputs)
        raise SigmaNetworkError(
            f"cosine_distance({shapes}): two embeddings of one shape and an answer for each pair, section "
            f"{self.targets!r}, are compared, or one embedding and targets of its shape. Change units or section."
        )

    def check(self, targets: np.ndarray, output: Spec) -> None:
        """Raise SigmaDataError if targets have another shape, or answers are not 1, 0 or -1."""
        if not self.branches:
            check_shape(self.targets, targets, output.shape)
        elif are_labels(targets.shape[1:], output.shape):
            check_signs(self.targets, targets)
        else:
            raise SigmaDataError(
                f"data: section {self.targets!r} has rows of shape {targets.shape[1:]}; expected {output.shape[:-1]}."
            )


def cosine(x: Node, y: Node) -> Node:
    """Return the cosine of the angle between vectors along the last axis; 0 where one of them is 0."""
    along = f.sum(x * y, axis=-1)
    return along / f.sqrt((f.sum(f.square(x), axis=-1) + TINY) * (f.sum(f.square(y), axis=-1) + TINY))
