"""Adversarial cost of generative adversarial networks: for the critic, and for the generator."""

from __future__ import annotations

from typing import Literal

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, CostLayer, Totals
from sigma_kernel.graph import Node
from sigma_kernel.settings import in_
from sigma_layers.targets import mean

SIDES, FORMS = ("real", "generated"), ("logistic", "least_squares", "hinge", "wasserstein")


@define(eq=False)
class Adversarial(CostLayer):
    """Minimise the loss of a critic's scores against one label, real or generated: ``judged + Adversarial("real")``.

    The critic minimises it as ``real`` on samples of the data and as ``generated`` on samples of the generator. The
    generator, which has an optimiser of its own, minimises it as ``real`` on its own samples.  For a score ``x``, and
    ``s = 1`` for ``real`` and ``s = -1`` for ``generated``, the loss is the mean of

    - ``logistic``: ``softplus(-s x)``, non-saturating;
    - ``least_squares``: ``(x - 1)^2`` for ``real``, ``x^2`` for ``generated``;
    - ``hinge``: ``max(0, 1 - s x)``, for the critic only: its generator minimises ``wasserstein``;
    - ``wasserstein``: ``-s x``.

    There are no targets.  Predictions are probabilities of ``real``, ``sigmoid(x)``, for ``logistic``; else ``x``.

    Shapes: scores ``(batch, ...)`` -> scalar, the mean over all elements, or Totals if samples have weights.

    Goodfellow and others, Generative Adversarial Networks, arXiv:1406.2661; Mao and others, Least Squares Generative
    Adversarial Networks, arXiv:1611.04076; Lim and Ye, Geometric GAN, arXiv:1705.02894; Arjovsky, Chintala and Bottou,
    Wasserstein GAN, arXiv:1701.07875.

    Args:
        side: Label that the scores are compared with.
        form: Loss of a score.
    """

    side: Literal["real", "generated"] = field(validator=in_(SIDES))
    form: Literal["logistic", "least_squares", "hinge", "wasserstein"] = field(default="logistic", validator=in_(FORMS))
    targets: str = field(default="", init=False)

    def forward(self, context: Context, output: Node, weights: Node | None = None) -> Node | Totals:
        """Return the mean, or Totals if samples have weights."""
        real = self.side == "real"
        signed = output if real else -output
        match self.form:
            case "logistic":
                losses = f.softplus(-signed)
            case "least_squares":
                losses = f.square(output - 1.0 if real else output)
            case "hinge":
                losses = f.relu(1.0 - signed)
            case _:
                losses = -signed
        return mean(losses, weights)

    def prediction(self, output: Node) -> Node:
        """Return the probability of real if the form is logistic, else the critic's score."""
        return f.sigmoid(output) if self.form == "logistic" else output
