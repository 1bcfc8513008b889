"""From the parameters of an estimator to the settings of a trainer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from attrs import evolve
from sklearn.utils import check_random_state

RATE = 0.01  # of an optimiser that is given by name
BEGINS = re.compile(r"\s*+input\s*+\(")


def architecture(network: Any, inputs: int, outputs: int, cost: str) -> Any:
    """Return a whole architecture: the layers in ``network`` between an input and an output layer, and the cost.

    A text that begins with ``input(...)``, and layers of Python, are whole already.
    """
    if not isinstance(network, str | None) or (network and BEGINS.match(network)):
        return network
    between = [network.strip()] if network and network.strip() else []
    cost = cost if "(" in cost else f"{cost}()"
    return " + ".join([f"input({inputs})", *between, f"output({outputs})", cost])


def optimiser(chosen: Any, rate: float | None) -> Any:
    """Return an optimiser with a learning rate: ``rate``, or else its own, or RATE if it is only a name."""
    if isinstance(chosen, str):
        return {"type": chosen, "learning_rate": RATE if rate is None else rate}
    if rate is None:
        return chosen
    return {**chosen, "learning_rate": rate} if isinstance(chosen, Mapping) else evolve(chosen, learning_rate=rate)


def hooks(given: Mapping[str, Any] | None, patience: int | None) -> dict[str, Any]:
    """Return the given hooks, and with ``patience``, those that stop once the validation loss improves no more."""
    stop = {"type": "early_stop", "value": "validation.loss", "patience": patience, "restore": True}
    measure = {"type": "evaluate", "on": "validation"}
    return {**({} if patience is None else {"validation": measure, "early_stop": stop}), **(given or {})}


def seed(random_state: Any) -> int:
    """Return the seed of a ``random_state``: a whole number is the seed itself, generators and None draw one."""
    if isinstance(random_state, Integral) and int(random_state) >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
