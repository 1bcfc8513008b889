"""Say where settings belong that other libraries take as arguments of ``fit`` and ``evaluate``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from sigma_kernel.errors import SigmaConfigError, near

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
    "verbose": "Write progress=True or progress=False in fit() or run().",
}


def advise(data: str = DATA) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of a method that raises SigmaConfigError, with a remedy, for data and unknown arguments."""

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        known = list(inspect.signature(method).parameters)[1:]

        @wraps(method)
        def advised(*args: P.args, **kwargs: P.kwargs) -> R:
            _check(method.__name__, known, args[1:], kwargs, data)
            return method(*args, **kwargs)

        return advised

    return decorate


def _check(name: str, known: list[str], given: tuple[object, ...], named: dict[str, object], data: str) -> None:
    if given and hasattr(given[0], "__len__") and not isinstance(given[0], str):
        raise SigmaConfigError(f"{name}: takes no data (got {type(given[0]).__name__}). {data}")
    for argument in named:
        if argument not in known:
            remedy = data if argument in ("x", "y") else BELONGS.get(argument, near(argument, known, "It has").strip())
            raise SigmaConfigError(f"{name}: has no argument {argument!r}. {remedy}")
