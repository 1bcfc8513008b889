"""Contracts of models: layers, costs, rewritings of their graphs, initialisers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from attrs import define, field

from sigma_kernel.graph.node import Node, Spec
from sigma_kernel.graph.random import Draw
from sigma_kernel.network.architecture import Architecture as Architecture, place
from sigma_kernel.network.outline import Outline, outline
from sigma_kernel.network.tracing import (
    WEIGHTS,
    Context as Context,
    Outputs as Outputs,
    Parameter as Parameter,
    Totals as Totals,
    live as live,
    live_settings as live_settings,
)
from sigma_kernel.settings import Settled, must

ADDRESSES = "addresses of parameters by name, such as {'weights': '2-dense.weights'}"


def _are_addresses(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for pair in value.items() for text in pair)


@define(eq=False)
class Layer(Architecture):
    """One layer: its settings, its parameters, its computation. It holds no arrays.

    Three traits say what one does on purpose, and conformance suites test what then remains. A ``surrogate`` has
    gradients that are not the slopes of its output, such as those of rounding. One that ``couples_rows`` computes a row
    from others of the batch, in training. One that ``augments`` draws, in training, around other values than those of
    evaluation, such as mixtures of rows.

    Args:
        name: Name of the layer in addresses; ``#`` is replaced by its index in the network. By default ``#-`` and its
            kind.
        share: Parameters of other layers to use instead of its own, by name: ``{"weights": "2-dense.weights"}``.
        recompute: Whether training computes the values inside the layer, and inside the layers that it owns, again in
            the backward pass, in place of keeping them: less memory, more time, the same numbers.
    """

    name: str | None = field(default=None, kw_only=True)
    share: Mapping[str, str] = field(factory=dict, kw_only=True, validator=must(_are_addresses, ADDRESSES))
    recompute: bool = field(
        default=False, kw_only=True, validator=must(lambda value: isinstance(value, bool), "true or false")
    )

    role: ClassVar[str] = "hidden"  # or "input", "output", "cost"
    reshapes: ClassVar[bool] = False  # whether it gives the numbers of a sample another shape, and nothing else
    surrogate: ClassVar[bool] = False
    couples_rows: ClassVar[bool] = False
    augments: ClassVar[bool] = False

    @property
    def reads(self) -> str:
        """Return which of its source's other outputs it reads; the empty string for the value."""
        return ""

    @property
    def takes_size(self) -> bool:
        """Return whether its settings leave a size open, which is then that of the data."""
        return False

    def with_size(self, shape: tuple[int, ...]) -> Layer:
        """Return an output layer whose samples have this size on their last axis, in place of one that takes it."""
        return self

    # ``*inputs: Any, **_: Any`` lets type checkers accept a layer that names its inputs: ``forward(self, context, x)``.

    def parameters(self, *inputs: Any, **_: Any) -> Mapping[str, Parameter]:
        """Declare the trainable parameters, given the inputs' specs without the batch axis."""
        return {}

    def state(self, *inputs: Any, **_: Any) -> Mapping[str, Parameter]:
        """Declare values that the layer updates itself in training (running statistics), given the same specs."""
        return {}

    def _outline(self, end: Architecture) -> Outline:
        return outline(place([end]))

    @abstractmethod
    def forward(self, context: Context, *inputs: Any, **_: Any) -> Node | Outputs | Totals:
        """Build the output from the input nodes with graph functions; axis 0 of every input is the batch."""


@define(eq=False, kw_only=True)
class CostLayer(Layer):
    """A layer whose output, a scalar, is minimised; its inputs are the prediction and the targets.

    If the data has the section that ``weights`` names, ``forward`` gets it as the keyword ``weights``, ``(batch,)``: a
    weight of at least 0 for each sample. It then returns Totals. A cost without this keyword refuses such data.

    :meth:`forward` returns the mean over the rows of the batch if all rows have equal weight; otherwise it returns
    :class:`Totals`, from which the kernel computes the mean of a batch cut into shards, or of a whole split. A cost
    whose ``targets`` are ``""`` receives only its inputs, such as several embeddings to compare. A cost that
    ``chooses`` is multi-class: the last axis of its predictions holds class probabilities; one that ``decides`` is
    binary. Both take words, and whole numbers of a table, as class indices; any other cost takes numbers unchanged, and
    so does one that ``ignores`` a label, if it is among the numbers. Predictions of any other cost are estimates of its
    targets, if they are as many: they are returned in the units of the data. A cost that ``estimates`` nothing, such as
    a cost of directions, declares it.

    Args:
        targets: Section of the data that holds the targets; ``""`` for a cost that reads none.
        weights: Section of the data that holds sample weights. It may be missing, if it is the default.
        weight: Factor on this cost in the sum of all costs.
    """

    targets: str = "targets"
    weights: str = WEIGHTS
    weight: float = live(1.0, low=0.0)

    role: ClassVar[str] = "cost"
    chooses: ClassVar[bool] = False
    decides: ClassVar[bool] = False
    estimates: ClassVar[bool] = True

    @property
    def ignores(self) -> int | None:
        """Return the label that does not count, or None."""
        return None

    def prediction(self, output: Node) -> Node:
        """Return the prediction for an output, such as probabilities for logits."""
        return output

    def predict(self, context: Context, output: Node) -> Node:
        """Return the prediction for an output, by default that of :meth:`prediction`.

        A cost whose own parameters predict, such as a cost of angles to the directions of classes, overrides this one.
        ``context`` has the values of its ``parameters``, ``state`` and ``live`` settings by name; targets are unknown,
        and nothing is random. A trained network that is loaded has no targets: :meth:`~Layer.parameters` and
        :meth:`~Layer.state` of such a cost then get the spec of the output alone.
        """
        return self.prediction(output)

    @property
    def _predicts(self) -> bool:
        """Return whether it overrides :meth:`predict`, for which its own values have to be known."""
        return type(self).predict is not CostLayer.predict

    def output_size(self, targets: Spec, classes: int = 0) -> int | None:
        """Return the last side of an output that fits targets of this spec; None if they do not say it.

        ``classes`` is the number of the classes that targets are indices of, 0 if it is unknown.
        """
        if self.chooses and ("int" in targets.dtype or targets.shape in ((), (1,))):
            return classes or None
        return targets.shape[-1] if targets.shape else 1

    def check(self, targets: np.ndarray, output: Spec) -> None:
        """Raise SigmaDataError if targets (one row per sample) do not fit an output of this shape."""


@define(eq=False)
class Rewriting(Settled):
    """Replace nodes in the graph of a network: of its layers, predictions and costs, before gradients are taken.

    All steps of a trainer are rewritten alike, those of training, evaluation and prediction, and what exporters get.
    One whose nodes have gradients that are not their slopes, such as those of rounding, is a ``surrogate``.

    Args:
        match: Pattern of the layers and costs whose nodes may be replaced, such as ``*<dense>``; by default all.
    """

    match: str = field(default="**", kw_only=True)

    surrogate: ClassVar[bool] = False

    @abstractmethod
    def replace(self, node: Node, inputs: tuple[Node, ...], training: bool) -> Node:
        """Return what takes the place of a node, of the same shape and dtype.

        Operands come before the nodes that read them: ``node.inputs`` are those that it had, ``inputs`` what has taken
        their place. To keep it, return ``with_inputs(node, inputs)``. Nodes in the bodies of loops are replaced before
        the loop, the op ``scan``.  What is replaced may read other nodes, but no inputs that the network does not have.
        """


Draws = Draw  # random numbers for one parameter, the same on every backend


class Initialiser(Settled):
    """Draw the initial values of a parameter, or of an entry of layer state.

    One whose values come from ``outside``, such as from a file that may change or go, declares that. A run folder then
    keeps the values, so that a resume, a replay and a reset do not need it any more. It also keeps those of one that
    reads rows of the data.
    """

    outside: ClassVar[bool] = False

    @property
    def learned(self) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """Return the ``columns`` and ``classes`` by section that the values were trained on; by default none.

        A run whose columns or classes are others, or in another order, is refused where the values belong to them.
        """
        return {}

    @property
    def reads_rows(self) -> int:
        """Return how many of the first rows of the training data :meth:`fit` is to see; by default none."""
        return 0

    @abstractmethod
    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return values of the parameter's shape, in float64."""

    def fit(
        self, address: str, parameter: Parameter, values: np.ndarray, run: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Return values fitted to data, given those that :meth:`values` has returned; called if it reads rows.

        ``run(values)`` returns the output of the parameter's layer, its activation included, for these rows, prepared
        and not augmented, with these values in evaluation: in float64, a row for each. Parameters are fitted in the
        order of the network, so that the layers before have their final values.
        """
        return values
