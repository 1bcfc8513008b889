"""Muon: orthogonalised momentum for matrices, AdamW for other parameters."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Slot, live
from sigma_kernel.graph import Node, Shape, Spec
from sigma_kernel.settings import ge, in_, instance_of, le, whole
from sigma_optimisers.adamw import AdamW

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the quintic polynomial; Jordan's, as in PyTorch
SMALLEST = 1e-7  # of norms to divide by, as in PyTorch


@define(eq=False)
class Muon(AdamW):
    """Update matrices by Muon: momentum whose singular values are brought near 1; all other parameters by AdamW.

    ``b <- momentum * b + (1 - momentum) * g``, ``o = orthogonal(momentum * b + (1 - momentum) * g)``,
    ``p <- p * (1 - learning_rate * weight_decay) - learning_rate * scale * o``.
    ``orthogonal(x)`` starts from ``x / |x|`` and repeats ``x <- a * x + (b * y + c * y^2) x`` with ``y = x x^T``, the
    quintic Newton-Schulz iteration; its results have singular values from 0.7 to 1.2. ``scale`` is
    ``0.2 * sqrt(max(inputs, outputs))``, which gives updates the size of AdamW's, so that one learning rate suits all
    parameters; with ``scale = "original"``, ``sqrt(max(1, outputs / inputs))``.

    A matrix, ``(inputs, outputs)``, is a parameter of rank 2; one of a higher rank, such as the kernels of a
    convolution, is a matrix of its first axis, the outputs, and all others.  Vectors and scalars are updated by AdamW
    with the same learning rate and weight decay.  Jordan recommends AdamW for embeddings and for the last layer as
    well: give the trainer two optimisers.

    Jordan et al., Muon, https://kellerjordan.github.io/posts/muon/, 2024; Liu et al., Muon is Scalable for LLM
    Training, 2025, for the size of updates.  Defaults and arithmetic are those of ``torch.optim.Muon`` with
    ``adjust_lr_fn="match_rms_adamw"``, but nothing is rounded to bfloat16.

    Args:
        learning_rate: Step size.
        momentum: Decay rate of the momentum of matrices.
        beta1: Decay rate of the first moment of other parameters.
        beta2: Decay rate of the second moment of other parameters.
        epsilon: Avoids division by 0 for other parameters, in units of the gradient.
        weight_decay: Fraction of the parameter removed per unit of learning rate.
        nesterov: Look ahead by the momentum.
        steps: Iterations of the orthogonalisation.
        scale: Size of updates of matrices: ``"rms"``, as AdamW's, or ``"original"``.
    """

    momentum: float = live(0.95, low=0.0, below=1.0)
    weight_decay: float = live(0.1, low=0.0)
    nesterov: bool = field(default=True, kw_only=True, validator=instance_of(bool, "true or false"))
    steps: int = field(default=5, kw_only=True, validator=[whole, ge(1), le(100)])
    scale: str = field(default="rms", kw_only=True, validator=in_(("rms", "original")))

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the momentum of a matrix, or the two moments of another parameter."""
        return {"velocity": Slot()} if len(parameter.shape) > 1 else super().slots(parameter)

    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        """Return the parameter after one step."""
        if len(parameter.shape) < 2:
            return super().update(gradient, parameter, slots, step, hyper)
        momentum, rate = hyper["momentum"], hyper["learning_rate"]
        velocity = momentum * slots["velocity"] + (1.0 - momentum) * gradient
        ahead = momentum * velocity + (1.0 - momentum) * gradient if self.nesterov else velocity
        matrix = f.flatten(ahead)
        direction = f.reshape(orthogonal(matrix, self.steps), parameter.shape)
        kept = parameter * (1.0 - rate * hyper["weight_decay"])
        return kept - rate * self._size(parameter.shape, matrix.shape) * direction, {"velocity": velocity}

    def _size(self, shape: Shape, matrix: Shape) -> float:
        outputs, inputs = matrix[::-1] if len(shape) == 2 else matrix
        return 0.2 * sqrt(max(matrix)) if self.scale == "rms" else sqrt(max(1.0, outputs / inputs))


def orthogonal(matrix: Node, steps: int) -> Node:
    """Return a matrix with the same singular vectors, and singular values near 1."""
    a, b, c = COEFFICIENTS
    tall = matrix.shape[0] > matrix.shape[1]  # the smaller of the two products with itself is cheaper
    x = f.swap_axes(matrix, 0, 1) if tall else matrix
    x = x / f.maximum(f.norm(x), SMALLEST)
    for _ in range(steps):
        y = x @ f.swap_axes(x, 0, 1)
        x = a * x + (b * y + c * (y @ y)) @ x
    return f.swap_axes(x, 0, 1) if tall else x
