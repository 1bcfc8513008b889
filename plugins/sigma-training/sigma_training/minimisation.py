"""Minimise a function of parameters, and of data if it has any, without layers, on the same compiled step.

::

    def rosenbrock(p):
        return (1 - p["x"]) ** 2 + 100 * (p["y"] - p["x"] ** 2) ** 2

    found = minimise(rosenbrock, {"x": -1.0, "y": 1.0}, optimiser=Adam(0.01), iterations=2000)

    def loss(p, batch):
        hidden = f.tanh(batch["inputs"] @ p["hidden"]["w"] + p["hidden"]["b"])
        return f.mean(f.square(hidden @ p["out"] - batch["targets"]))

    found = minimise(loss, start, {"inputs": x, "targets": y}, Adam(0.01), epochs=20)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.arrays import readable
from sigma_kernel.contracts import Optimiser, Parameter
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError, suggest_name
from sigma_kernel.graph.calculus import leaves
from sigma_kernel.graph.node import Node, Spec
from sigma_kernel.network.network import Forward
from sigma_kernel.network.tracing import Resolve, Shapes, Totals, Trace
from sigma_kernel.settings import is_whole
from sigma_training.data.dataset import dataset
from sigma_training.session.session import Session

Loss = Callable[..., Node | Totals]
Tree = Any  # arrays of numbers in dictionaries, lists and tuples
RUN = 10_000  # iterations without data that count as an epoch: a burst does not run across epochs


@frozen
class Plain:
    """A loss function of parameters and a batch, in place of a network."""

    loss: Loss
    start: Tree
    names: tuple[str, ...]  # the sections of the data; without any, the loss is a function of the parameters alone
    costs: tuple[Any, ...] = ()
    targeted_costs: tuple[Any, ...] = ()
    layers: tuple[Any, ...] = ()

    def sections(self, costs: bool = True, there: Collection[str] = ()) -> list[str]:
        """Return all sections of the data, since the function may read any of them."""
        return list(self.names)

    def declare(self, sections: Mapping[str, Spec], precision: str, resolve: Resolve) -> Shapes:
        """Declare the parameters, each initialised to its given value."""
        names = leaves(_Parameters.from_tree(self.start, str))
        return Shapes({n: Parameter(np.shape(x), _Given(x)) for n, x in zip(names, leaves(self.start), strict=True)})

    def forward(self, trace: Trace, sections: Mapping[str, Node]) -> Forward:
        """Return the loss."""
        parameters = _Parameters.from_tree(self.start, (trace.given or {}).__getitem__)
        given = [parameters, *([_Sections(sections)] if self.names else [])]
        _check_takes(self.loss, len(given))
        result = self.loss(*given)
        loss, totals = (result.mean(), {"loss": result}) if isinstance(result, Totals) else (result, {})
        if not isinstance(loss, Node) or loss.shape != ():
            shape = loss.shape if isinstance(loss, Node) else type(loss).__name__
            raise SigmaConfigError(f"minimise: the loss must be a scalar (got {shape}). Take the mean over the batch.")
        return Forward(values={}, predictions={}, costs={"loss": loss}, state={}, totals=totals)


def _check_takes(loss: Loss, count: int) -> None:
    """Raise SigmaConfigError unless the loss takes the parameters, and a batch if there is data."""
    try:
        inspect.signature(loss).bind(*range(count))
    except TypeError as error:
        takes = "with data, the loss takes two arguments, the parameters and a batch"
        takes = takes if count > 1 else "without data, the loss takes one argument, the parameters"
        raise SigmaConfigError(f"minimise: {takes}: {error}. Change it, or the data.") from None


class _Sections(dict[str, Any]):
    """Values by name; raises SigmaAddressError with a hint for unknown names."""

    what = "section"

    def __missing__(self, name: str) -> Any:
        raise SigmaAddressError(
            f"minimise: there is no {self.what} {name!r}.{suggest_name(str(name), self, 'There is')}"
        )


class _Parameters(_Sections):
    """Parameters by name; those that are nested are lists, and more of these."""

    what = "parameter"

    @classmethod
    def from_tree(cls, tree: Tree, value: Callable[[str], Any], head: str = "") -> Any:
        """Return the structure of a tree, with the value at its address in place of each array."""
        if isinstance(tree, Mapping):
            return cls({name: cls.from_tree(inner, value, f"{head}{name}.") for name, inner in tree.items()})
        if isinstance(tree, list):
            return [cls.from_tree(inner, value, f"{head}{number}.") for number, inner in enumerate(tree)]
        return value(head[:-1])


@frozen
class _Given:
    """An initialiser that returns given values."""

    value: Any

    def values(self, address: str, parameter: Parameter, draws: Any) -> np.ndarray:
        """Return the given values in float64."""
        return np.asarray(self.value, np.float64)


def _check_parameters(tree: Tree, name: str = "") -> Tree:
    """Return parameters with lists of numbers as arrays; raises SigmaConfigError for anything but arrays of numbers."""
    if not name and not isinstance(tree, Mapping):
        got = type(tree).__name__
        raise SigmaConfigError(f"minimise: parameters must be arrays by name: {{'w': np.zeros(3)}} (got {got}).")
    if isinstance(tree, Mapping):
        for inner in tree:
            if not isinstance(inner, str):
                raise SigmaConfigError(f"minimise: the name of a parameter must be a string (got {inner!r}).")
        return {inner: _check_parameters(value, f"{name}.{inner}".lstrip(".")) for inner, value in tree.items()}
    if isinstance(tree, list | tuple) and any(isinstance(x, np.ndarray | Mapping) for x in tree):
        return [_check_parameters(value, f"{name}.{number}") for number, value in enumerate(tree)]
    array = readable(tree)
    if array.dtype.kind not in "iuf":
        got = f"(got {type(tree).__name__})"
        raise SigmaConfigError(f"minimise: parameter {name!r} must be an array of numbers {got}. Convert it first.")
    return array


def minimise(
    loss: Loss,
    parameters: Mapping[str, Tree],
    data: Any = None,
    optimiser: Optimiser | str | Mapping[str, Any] | None = None,
    callback: Callable[..., bool | None] | None = None,
    *,
    epochs: int | None = None,
    iterations: int | None = None,
    every: int = 1,
    **settings: Any,
) -> dict[str, Any]:
    """Minimise ``loss`` and return the trained parameters, as host arrays of the same names and shapes.

    ``loss(parameters, batch)`` is written in graph functions. It returns a scalar, the mean over the rows of the batch;
    for weighted rows, Totals of the weighted sum and the sum of the weights. ``data`` is what a trainer accepts: arrays
    by section, blocks of them, a Dataset; without it, the loss is a function of the parameters alone. Parameters may be
    nested in dictionaries, lists and tuples.

    Training takes so many ``iterations``, or ``epochs`` of the data, 1 by default. ``callback(moment, loss)`` is called
    after ``every`` so many of them, with the parameters as well if it takes them; it ends training by returning True.
    ``settings`` are those of a trainer: batch_size, backend, precision, seed, ... Raises
    SigmaConfigError if the loss is not a scalar, and SigmaTrainingError if it is not finite.
    """
    count, scale = _length(data, epochs, iterations, every)
    start, alone = _check_parameters(parameters), data is None
    if optimiser is None:
        raise SigmaConfigError("minimise: an optimiser is missing. Pass one: optimiser=Adam(0.01).")
    rows = dataset({"iteration": np.zeros(max(1, min(count, RUN)))} if alone else data, "minimise")
    settings = {"batch_size": 1, **settings} if alone else settings
    network = Plain(loss, start, () if alone else tuple(rows.block(0)))
    with Environment("minimise", seed=settings.pop("seed", 0), precision=settings.pop("precision", "float32")) as sigma:
        trainer = sigma.create_trainer("trainer", optimiser=optimiser, data=rows, network=network, **settings)
        for done in range(0, count, every if callback else max(1, count)):
            trainer.fit(**{scale: min(every, count - done) if callback else count}, progress=False)
            if callback is not None and _call_back(callback, trainer.session, start):
                break
        result: dict[str, Any] = _current_parameters(trainer.session, start)
        return result


def _length(data: Any, epochs: int | None, iterations: int | None, every: int) -> tuple[int, str]:
    """Return how long to train, and in which scale."""
    if data is None and iterations is None:
        raise SigmaConfigError("minimise: without data, say how long: iterations=2000.")
    if epochs is not None and iterations is not None:
        raise SigmaConfigError("minimise: epochs and iterations exclude each other. Leave one out.")
    count, scale = (1 if epochs is None else epochs, "epochs") if iterations is None else (iterations, "iterations")
    for name, number, least in ((scale, count, 0), ("every", every, 1)):
        if not is_whole(number, least):
            raise SigmaConfigError(f"minimise: {name} must be a whole number from {least} on (got {number!r}).")
    return count, scale


def _call_back(callback: Callable[..., bool | None], session: Session, start: Tree) -> bool:
    """Call back with the moment and the loss, and with the parameters if there is a place for them."""
    arguments = session.moment, session.state.published["training.loss"]
    more = len(inspect.signature(callback).parameters) > len(arguments)
    return bool(callback(*arguments, *([_current_parameters(session, start)] if more else [])))


def _current_parameters(session: Session, start: Tree) -> Any:
    return _Parameters.from_tree(start, lambda address: session.host(f"network.layers.{address}"))
