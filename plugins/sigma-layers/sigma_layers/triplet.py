"""Triplet loss, for embeddings with similar samples close together."""

from __future__ import annotations

from math import inf
from typing import Any

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Architecture, Context, CostLayer, Totals, live
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import ge
from sigma_layers.targets import mean

TINY = 1e-6  # is added to every difference, as PyTorch does


@define(eq=False, init=False)
class Triplet(CostLayer):
    """Minimise ``max(0, |anchor - positive| - |anchor - negative| + margin)``: ``anchor + Triplet(near, far)``.

    A positive sample is like its anchor, a negative one is not; all three are embeddings, as a rule of networks that
    ``share`` their parameters. ``1e-6`` is added to each difference, as in ``torch.nn.functional.triplet_margin_loss``,
    which this matches. There are no targets; predictions are the anchors' embeddings. The margin can be set live.

    Shapes: anchor, positive and negative ``(batch, ..., features)`` -> scalar, the mean over all triplets.

    Schroff, Kalenichenko and Philbin, FaceNet: A Unified Embedding for Face Recognition and Clustering,
    arXiv:1503.03832; Balntas, Riba, Ponsa and Mikolajczyk, Learning Local Feature Descriptors with Triplets, 2016.

    Args:
        branches: Architectures of the positive and of the negative embedding.
        margin: How much farther away negative samples should be than positive ones.
        norm: Order of the norm, along the last axis: 2 for Euclidean distances, 1 for sums, ``inf`` for maxima.
    """

    branches: tuple[Architecture, ...]
    margin: float = live(1.0, low=0.0)
    norm: float = field(default=2.0, validator=ge(1))

    def __init__(
        self, *branches: Architecture, margin: float = 1.0, norm: float = 2.0, weights: str = "weights",
        weight: float = 1.0, name: str | None = None,
    ) -> None:  # fmt: skip
        settings: dict[str, Any] = {"targets": "", "weights": weights, "weight": weight, "name": name}
        self.__attrs_init__(branches, margin, norm, **settings)

    def forward(self, context: Context, *inputs: Node, weights: Node | None = None) -> Node | Totals:
        """Return the mean, or Totals if samples have weights; raises SigmaNetworkError unless there are three."""
        if len(inputs) != 3 or len({x.shape for x in inputs}) > 1 or len(inputs[0].shape) < 2:
            shapes = ", ".join(str(x.shape[1:]) for x in inputs)
            raise SigmaNetworkError(
                f"triplet({shapes}): it compares three embeddings of one shape, (..., features). Write anchor + "
                "Triplet(positive, negative), and give the three the same units."
            )
        anchor, positive, negative = inputs
        nearer = self._distance(anchor, positive) - self._distance(anchor, negative)
        return mean(f.relu(nearer + context.live["margin"]), weights)

    def _distance(self, x: Node, y: Node) -> Node:
        apart = x - y + TINY
        if self.norm == 2:
            return f.norm(apart, axis=-1)
        sizes = f.abs(apart)
        if self.norm in (1, inf):
            return f.sum(sizes, axis=-1) if self.norm == 1 else f.max(sizes, axis=-1)
        total = f.sum(sizes**self.norm, axis=-1)
        return f.where(total > 0.0, f.where(total > 0.0, total, 1.0) ** (1.0 / self.norm), 0.0)
