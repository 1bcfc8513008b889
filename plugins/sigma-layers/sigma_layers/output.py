"""Mark what the network predicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from attrs import define, field
from attrs.validators import optional

from sigma_kernel.contracts import Context, Layer, Parameter
from sigma_kernel.graph.node import Node, Spec
from sigma_layers.dense import Dense
from sigma_layers.settings import ACTIVATION, activation, count


@define(eq=False)
class Output(Layer):
    """Mark what the network predicts: ``Output(10)`` after ten weighted sums, ``Output()`` as it comes.

    ``Output(units, ...)`` computes what ``Dense(units, ...)`` does, and has its parameters and its shapes.  What a user
    sees of it is the :meth:`prediction` of the cost behind it, such as probabilities.
    """

    units: int | None = field(default=None, validator=optional(count))
    activation: str | Callable[[Node], Node] = field(default="identity", validator=activation, metadata=ACTIVATION)
    bias: bool = True

    role: ClassVar[str] = "output"

    @property
    def _dense(self) -> Dense | None:
        return None if self.units is None else Dense(self.units, self.activation, self.bias)

    def parameters(self, x: Spec) -> dict[str, Parameter]:
        """Return weights and biases, if there are units."""
        return self._dense.parameters(x) if self._dense else {}

    def forward(self, context: Context, x: Node) -> Node:
        """Return the weighted sums, or x if there are no units."""
        return self._dense.forward(context, x) if self._dense else x
