"""Output layer: mark a network's prediction, optionally after a fully connected layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from attrs import define, evolve, field
from attrs.validators import optional

from sigma_kernel.contracts import Context, Layer, Parameter
from sigma_kernel.graph import Node, Spec
from sigma_layers.dense import Dense
from sigma_layers.settings import ACTIVATION, activation, count, flag


@define(eq=False)
class Output(Layer):
    """Mark the output of a network: ``Output(10)`` adds a dense layer of 10 units, ``Output()`` one that fits the data.

    ``Output(units, ...)`` has the parameters and values of ``Dense(units, ...)``.  ``Output()`` takes the units from
    the targets of the cost that follows: the number of classes, or of numbers to predict. It adds nothing if the last
    side of its input is that already, or if no targets say it.  Users see the ``prediction`` of the cost, such as
    probabilities.

    Shapes: those of ``Dense``, or the same.

    Args:
        units: Units of a dense layer that it adds; by default those that fit the targets.
        activation: Activation function of that layer: its name, or a function of a node.
        bias: Whether that layer adds biases.
    """

    units: int | None = field(default=None, validator=optional(count))
    activation: str | Callable[[Node], Node] = field(default="identity", validator=activation, metadata=ACTIVATION)
    bias: bool = field(default=True, validator=flag)

    role: ClassVar[str] = "output"

    @property
    def _dense(self) -> Dense | None:
        return None if self.units is None else Dense(self.units, self.activation, self.bias)

    @property
    def takes_size(self) -> bool:
        """Return whether its units are those that fit the targets."""
        return self.units is None

    def with_size(self, shape: tuple[int, ...]) -> Output:
        """Return the layer with so many units."""
        return evolve(self, units=shape[-1])

    def parameters(self, x: Spec) -> dict[str, Parameter]:
        """Return weights and biases, if there are units."""
        return self._dense.parameters(x) if self._dense else {}

    def forward(self, context: Context, x: Node) -> Node:
        """Return the weighted sums, or x if there are no units."""
        return self._dense.forward(context, x) if self._dense else x
