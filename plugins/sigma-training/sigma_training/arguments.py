"""Say where settings belong that other libraries take as arguments of ``fit`` and ``evaluate``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from sigma_kernel.contracts import Metric
from sigma_kernel.errors import SigmaConfigError, refuse_unknown

P = ParamSpec("P")
R = TypeVar("R")

DATA = "Set trainer.data = (x, y) before training."
BELONGS = {
    "x": DATA,
    "y": DATA,
    "batch_size": "Set trainer.batch_size before training.",
    "callbacks": "Add hooks to trainer.hooks before training.",
    "sample_weight": "Set trainer.data = (x, y, weights) before training.",
    "validation_data": "Set trainer.data = {'training': (x, y), 'validation': (a, b)} before training.",
    "validation_split": "Set trainer.validation_split before training.",
    "loss": "End the network with a cost, such as + SquaredDifference().",
    "learning_rate": "It is a setting of the optimiser: {'type': 'adam', 'learning_rate': 0.01}.",
    "verbose": "Write progress=True or progress=False in fit() or run().",
}


def check_metrics(metrics: Any) -> None:
    """Raise SigmaConfigError for metrics that are neither a table nor a list of metrics: they may be targets."""
    several = metrics if isinstance(metrics, list | tuple) else [{} if metrics is None else metrics]
    if not all(isinstance(metric, Mapping | Metric | str) for metric in several):
        raise SigmaConfigError("evaluate: metrics are a table by name. For other data, write evaluate((x, y)).")


def advise(data: str = DATA, takes: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of a method that raises SigmaConfigError, with a remedy, for unknown arguments.

    It does so for data as well, unless the method ``takes`` them.
    """

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        names = list(inspect.signature(method).parameters)[1:]

        @wraps(method)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            if not takes and args[1:] and hasattr(args[1], "__len__") and not isinstance(args[1], str):
                raise SigmaConfigError(f"{method.__name__}: takes no data (got {type(args[1]).__name__}). {data}")
            refuse_unknown(method.__name__, kwargs, names, remedies={**BELONGS, "x": data, "y": data})
            return method(*args, **kwargs)

        return wrapper

    return decorate
