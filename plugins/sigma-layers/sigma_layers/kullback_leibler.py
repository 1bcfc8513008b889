"""Kullback-Leibler divergence, for targets that are distributions."""

from __future__ import annotations

import numpy as np
from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, CostLayer, Totals
from sigma_kernel.graph import Node, Spec
from sigma_layers.targets import alike, check_distributions, check_shape, mean, warn_of_a_second


@define(eq=False)
class KullbackLeibler(CostLayer):
    """Minimise the divergence of ``softmax(output)`` from the targets: ``Output(10) + KullbackLeibler()``.

    It is the mean over all distributions of ``sum(t * (log t - log softmax(output)))`` over the last axis, where 0 log
    0 is 0. With one distribution for each sample it is ``torch.nn.functional.kl_div`` of ``log_softmax(output)`` with
    ``reduction="batchmean"``. Its gradients are those of softmax cross-entropy; its minimum is 0. Predictions are
    probabilities.

    Shapes: output and targets ``(batch, ..., classes)`` -> scalar.

    Kullback and Leibler, On Information and Sufficiency, 1951.
    """

    def forward(self, context: Context, output: Node, targets: Node, weights: Node | None = None) -> Node | Totals:
        """Return the mean, or Totals if samples have weights; raises SigmaNetworkError if the shapes differ."""
        warn_of_a_second("softmax", context.address, output)
        wanted = alike("kullback_leibler", self.targets, targets, output)
        apart = f.log(f.where(wanted > 0.0, wanted, 1.0)) - f.log_softmax(output)
        return mean(f.sum(wanted * apart, axis=-1), weights)

    def prediction(self, output: Node) -> Node:
        """Return the probabilities."""
        return f.softmax(output)

    def check(self, targets: np.ndarray, output: Spec) -> None:
        """Raise SigmaDataError if targets have another shape, or rows that are not distributions."""
        check_shape(self.targets, targets, output.shape)
        check_distributions(self.targets, targets.reshape(len(targets), *output.shape))
