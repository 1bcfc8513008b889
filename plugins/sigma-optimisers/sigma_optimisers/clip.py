"""Parameter modifier: clip each element to a range."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import Modifier, live
from sigma_kernel.graph import Node


@define(eq=False)
class Clip(Modifier):
    """Clip every element of the matching parameters to ``[low, high]`` after each update.

    Same as ``torch.clamp``: if ``low`` is above ``high``, every element becomes ``high``.  Weight clipping of Arjovsky,
    Chintala and Bottou, Wasserstein GAN, 2017.

    Args:
        low: Minimum of an element, in units of the parameter.
        high: Maximum of an element, in units of the parameter.
    """

    low: float = live(-1.0)
    high: float = live(1.0)

    def modify(self, parameter: Node, settings: Mapping[str, Node]) -> Node:
        """Return the parameter with its elements clipped."""
        return f.minimum(f.maximum(parameter, settings["low"]), settings["high"])
