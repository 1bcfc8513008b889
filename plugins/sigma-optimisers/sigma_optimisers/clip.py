"""Keep parameters within a range."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel.contracts import Modifier, live
from sigma_kernel.graph import functions as f
from sigma_kernel.graph.node import Node


@define(eq=False)
class Clip(Modifier):
    """Keep every element of the parameters that match within ``low`` and ``high`` after each update.

    Same as ``torch.clamp``: where ``low`` lies above ``high``, everything becomes ``high``.  Arjovsky, Chintala and
    Bottou, Wasserstein GAN, 2017, clip so.
    """

    low: float = live(-1.0, doc="least value of an element, in units of the parameter")
    high: float = live(1.0, doc="greatest value of an element, in units of the parameter")

    def modify(self, parameter: Node, settings: Mapping[str, Node]) -> Node:
        """Return the parameter with its elements clipped."""
        return f.minimum(f.maximum(parameter, settings["low"]), settings["high"])
