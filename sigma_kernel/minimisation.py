"""Minimise a loss function of parameters and data, without layers, on the same compiled step.

::

    def loss(p, batch):
        hidden = f.tanh(batch["inputs"] @ p["w1"] + p["b1"])
        return f.mean(f.square(hidden @ p["w2"] + p["b2"] - batch["targets"]))

    found = minimise(loss, start, {"inputs": x, "targets": y}, Adam(0.01), epochs=20)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Optimiser, Parameter
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError, near
from sigma_kernel.graph.node import Node, Spec
from sigma_kernel.network.network import Forward
from sigma_kernel.network.tracing import Resolve, Shapes, Totals, Trace
from sigma_kernel.training.data.dataset import dataset

Loss = Callable[[Mapping[str, Node], Mapping[str, Node]], Node | Totals]


@frozen
class Plain:
    """A loss function of parameters and a batch, in place of a network."""

    loss: Loss
    start: Mapping[str, np.ndarray]
    names: tuple[str, ...]
    costs: tuple[Any, ...] = ()
    layers: tuple[Any, ...] = ()

    def sections(self, costs: bool = True, there: Collection[str] = ()) -> list[str]:
        """Return all sections of the data, since the function may read any of them."""
        return list(self.names)

    def declare(self, sections: Mapping[str, Spec], precision: str, resolve: Resolve) -> Shapes:
        """Declare the parameters, each initialised to its given value."""
        parameters = {name: Parameter(np.shape(value), _Given(value)) for name, value in self.start.items()}
        return Shapes(parameters)

    def forward(self, trace: Trace, sections: Mapping[str, Node]) -> Forward:
        """Return the loss."""
        found = self.loss(_Known("parameter", trace.given or {}), _Known("section", sections))
        loss, totals = (found.mean(), {"loss": found}) if isinstance(found, Totals) else (found, {})
        if not isinstance(loss, Node) or loss.shape != ():
            shape = loss.shape if isinstance(loss, Node) else type(loss).__name__
            raise SigmaConfigError(f"minimise: the loss must be a scalar (got {shape}). Take the mean over the batch.")
        return Forward(values={}, predictions={}, costs={"loss": loss}, state={}, totals=totals)


class _Known(dict[str, Node]):
    """Nodes by name; raises SigmaAddressError with a hint for unknown names."""

    def __init__(self, what: str, values: Mapping[str, Node]) -> None:
        super().__init__(values)
        self.what = what

    def __missing__(self, name: str) -> Node:
        raise SigmaAddressError(f"minimise: there is no {self.what} {name!r}.{near(str(name), self, 'There is')}")


@frozen
class _Given:
    """An initialiser that returns given values."""

    value: Any

    def values(self, address: str, parameter: Parameter, draws: Any) -> np.ndarray:
        """Return the given values in float64."""
        return np.asarray(self.value, np.float64)


def _check_start(parameters: Any) -> None:
    """Raise SigmaConfigError unless parameters are arrays of numbers by name."""
    if not isinstance(parameters, Mapping):
        got = type(parameters).__name__
        raise SigmaConfigError(f"minimise: parameters must be arrays by name: {{'w': np.zeros(3)}} (got {got}).")
    for name, value in parameters.items():
        if not isinstance(name, str):
            raise SigmaConfigError(f"minimise: the name of a parameter must be a string (got {name!r}).")
        if isinstance(value, Mapping) or _kind(value) not in "iuf":
            wrong = f"parameter {name!r} must be an array of numbers (got {type(value).__name__})"
            raise SigmaConfigError(f"minimise: {wrong}. Give each array its own name; parameters do not nest.")


def _kind(value: Any) -> str:
    try:
        return np.asarray(value).dtype.kind
    except ValueError:  # rows of different lengths
        return "O"


def minimise(
    loss: Loss,
    parameters: Mapping[str, np.ndarray],
    data: Any,
    optimiser: Optimiser,
    callback: Callable[[Moment, float], bool | None] | None = None,
    *,
    epochs: int = 1,
    **settings: Any,
) -> dict[str, np.ndarray]:
    """Minimise ``loss`` and return the trained parameters, as host arrays of the same names and shapes.

    ``loss(parameters, batch)`` is written in graph functions. It returns a scalar, the mean over the rows of the batch;
    for weighted rows, Totals of the weighted sum and the sum of the weights. ``data`` is what a trainer accepts: arrays
    by section, blocks of them, a Dataset. ``callback(moment, loss)`` is called after each epoch and ends training by
    returning True. ``settings`` are those of a trainer: batch_size, backend, precision, seed, ... Raises
    SigmaConfigError if the loss is not a scalar, and SigmaTrainingError if it is not finite.
    """
    _check_start(parameters)
    rows = dataset(data, "minimise")
    with Environment("minimise", seed=settings.pop("seed", 0), precision=settings.pop("precision", "float32")) as sigma:
        network = Plain(loss, parameters, tuple(rows.block(0)))
        trainer = sigma.create_trainer("trainer", optimiser=optimiser, data=rows, network=network, **settings)
        for _ in range(epochs):
            trainer.fit(epochs=1)
            session = trainer.session
            if callback is not None and callback(session.moment, session.state.published["training.loss"]):
                break
        return {name: trainer.session.host(f"network.layers.{name}") for name in parameters}
