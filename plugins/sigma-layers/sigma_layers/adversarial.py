"""Adversarial cost, for a critic that tells real samples from generated ones, and for the generator that fools it."""

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
    """Minimise how far a critic is from taking its input for real, or for generated: ``judged + Adversarial("real")``.

    The critic minimises it with ``real`` for samples of the data and with ``generated`` for those of a generator; the
    generator with ``real`` for its own, by another optimiser.  With a sign ``s`` of 1 for ``real`` and -1 for
    ``generated``, it is the mean of ``softplus(-s x)`` for ``logistic`` (non-saturating, of Goodfellow and others),
    ``(x - 1)^2`` or ``x^2`` for ``least_squares``, ``max(0, 1 - s x)`` for ``hinge`` and ``-s x`` for ``wasserstein``,
    which is that of a generator against a critic with ``hinge``, too.  There are no targets.  Predictions are
    ``sigmoid(x)``, the probability of real, for ``logistic``, and ``x`` for others.

    Shapes: what a critic says, ``(batch, ...)`` -> scalar, the mean over all elements, or Totals if samples have
    weights.

    Goodfellow and others, Generative Adversarial Networks, arXiv:1406.2661; Mao and others, Least Squares Generative
    Adversarial Networks, arXiv:1611.04076; Lim and Ye, Geometric GAN, arXiv:1705.02894; Arjovsky, Chintala and Bottou,
    Wasserstein GAN, arXiv:1701.07875.

    Args:
        side: What the critic's input should be taken for.
        form: Function of what the critic says.
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
        """Return the probability of real if the form is logistic, else what the critic says."""
        return f.sigmoid(output) if self.form == "logistic" else output
