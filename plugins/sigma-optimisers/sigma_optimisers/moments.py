"""The two moments that Adam and its relatives keep of each gradient."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import GradientOptimiser, Slot
from sigma_kernel.graph import Node, Spec


@define(eq=False)
class Moments(GradientOptimiser):
    """An optimiser with a moving average of each gradient, and one of its square."""

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Return the two moments, in units of the gradient and of its square."""
        return {"first_moment": Slot(), "second_moment": Slot()}


def moments(gradient: Node, slots: Mapping[str, Node], hyper: Mapping[str, Node]) -> dict[str, Node]:
    """Return the two moments after one more gradient."""
    beta1, beta2 = hyper["beta1"], hyper["beta2"]
    first = beta1 * slots["first_moment"] + (1.0 - beta1) * gradient
    second = beta2 * slots["second_moment"] + (1.0 - beta2) * gradient * gradient
    return {"first_moment": first, "second_moment": second}


def direction(after: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]) -> Node:
    """Return the first moment over the root of the second, both corrected for their bias at this step."""
    # The bias corrections are applied to scalars and to one root, which saves a pass over the whole array.
    root = f.sqrt(after["second_moment"]) / f.sqrt(correction("beta2", step, hyper))
    return after["first_moment"] / correction("beta1", step, hyper) / (root + hyper["epsilon"])


def correction(decay: str, step: Node, hyper: Mapping[str, Node]) -> Node:
    """Return ``1 - decay^step``, the sum of the weights of an average that began at 0, to all digits near 1."""
    return -f.expm1(step * hyper[f"log_{decay}"])
