"""What a model is made of: layers, costs, and the values that parameters start from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from attrs import define, field

from sigma_kernel.graph.node import Node, Spec
from sigma_kernel.network.architecture import Architecture as Architecture
from sigma_kernel.network.tracing import (
    Context as Context,
    Outputs as Outputs,
    Parameter as Parameter,
    Totals as Totals,
    live as live,
)


@define(eq=False)
class Layer(Architecture):
    """One layer: its settings, the parameters it needs, and what it computes.  It holds no arrays.

    ``name`` may contain ``#``, which becomes the layer's place in the network; ``share`` maps a parameter of this
    layer to the address of another layer's (``{"weights": "2-dense.weights"}``).
    """

    name: str | None = field(default=None, kw_only=True)
    share: Mapping[str, str] = field(factory=dict, kw_only=True)

    role: ClassVar[str] = "hidden"  # or "input", "output", "cost"

    # ``*inputs: Any, **_: Any`` lets type checkers accept a layer that names its inputs: ``forward(self, context, x)``.

    def parameters(self, *inputs: Any, **_: Any) -> Mapping[str, Parameter]:
        """Return the trainable parameters, given the inputs' specs without the batch axis."""
        return {}

    def state(self, *inputs: Any, **_: Any) -> Mapping[str, Parameter]:
        """Return values that the layer itself updates while it trains (running statistics), given the same."""
        return {}

    @abstractmethod
    def forward(self, context: Context, *inputs: Any, **_: Any) -> Node | Outputs | Totals:
        """Return the output, built from graph functions, given nodes; axis 0 of every input is the batch."""


@define(eq=False, kw_only=True)
class CostLayer(Layer):
    """A layer whose output, a scalar, is minimised; its inputs are the prediction and the targets.

    ``run`` returns the mean over the rows of the batch, where all of them count alike; where they do not, it returns
    :class:`Totals`, from which the kernel makes the mean of a batch that is cut into shards, or of a whole split.
    ``targets`` names the section of the data with the targets; ``weight`` scales this cost among several.  A cost that
    ``chooses`` has predictions whose last axis holds the probability of each class; one that ``decides`` answers yes or
    no.  These two take words, and whole numbers of a table, as class indices; any other takes numbers as they are.
    """

    targets: str = "targets"
    weight: float = live(1.0, low=0.0)

    role: ClassVar[str] = "cost"
    chooses: ClassVar[bool] = False
    decides: ClassVar[bool] = False

    def prediction(self, output: Node) -> Node:
        """Return what a user wants to see for this output, such as probabilities for scores."""
        return output

    def check(self, targets: np.ndarray, output: Spec) -> None:
        """Raise SigmaDataError if targets (one row a sample) cannot belong to an output of this shape."""


class Draws(Protocol):
    """Random numbers of one parameter, the same on every backend; all are float64 arrays."""

    def uniform(self, shape: Sequence[int], low: float = 0.0, high: float = 1.0) -> np.ndarray:
        """Return uniform numbers of ``[low, high)``."""

    def normal(self, shape: Sequence[int], mean: float = 0.0, deviation: float = 1.0) -> np.ndarray:
        """Return normal numbers."""

    def truncated_normal(
        self, shape: Sequence[int], mean: float = 0.0, deviation: float = 1.0, bound: float = 2.0
    ) -> np.ndarray:
        """Return normal numbers, none of them more than ``bound`` deviations from the mean."""


class Initialiser(ABC):
    """Give a parameter its first values."""

    @abstractmethod
    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return values of the parameter's shape, in float64."""
