"""From the parameters of an estimator to the settings of a trainer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from attrs import evolve, has
from sklearn.utils import check_random_state

from sigma_kernel import SigmaConfigError

RATES = {"adam": 0.01}  # of optimisers that are given by name; the rates of others are their own
BEGINS = re.compile(r"\s*+input\s*+\(")


def architecture(network: Any, inputs: int, outputs: int, cost: str) -> Any:
    """Return a whole architecture: the layers in ``network`` between an input and an output layer, and the cost.

    A text that begins with ``input(...)``, and layers of Python, are whole already.  Raises SigmaConfigError for a cost
    that is not text.
    """
    if not isinstance(network, str | None) or (network and BEGINS.match(network)):
        return network
    if not isinstance(cost, str) or not cost.strip():
        raise SigmaConfigError(
            f"cost: must be the name or the text of a cost, such as 'huber(delta=2.0)' (got {cost!r})."
        )
    between = [network.strip()] if network and network.strip() else []
    cost = cost if "(" in cost else f"{cost}()"
    return " + ".join([f"input({inputs})", *between, f"output({outputs})", cost])


def optimiser(chosen: Any, rate: float | None) -> Any:
    """Return an optimiser with a learning rate: ``rate``, or else that of RATES if it is only a name, or its own."""
    if isinstance(chosen, str):
        chosen, rate = {"type": chosen}, RATES.get(chosen) if rate is None else rate
    if rate is None or not (isinstance(chosen, Mapping) or has(type(chosen))):  # which a trainer refuses
        return chosen
    return {**chosen, "learning_rate": rate} if isinstance(chosen, Mapping) else evolve(chosen, learning_rate=rate)


def hooks(given: Mapping[str, Any] | None, patience: int | None) -> dict[str, Any]:
    """Return the given hooks, and with ``patience``, those that stop once the validation loss improves no more.

    Raises SigmaConfigError unless they are given by name.
    """
    if not isinstance(given, Mapping | None):
        raise SigmaConfigError(f"hooks: must be hooks by name, such as {{'score': 'accuracy'}} (got {given!r}).")
    stop = {"type": "early_stop", "value": "validation.loss", "patience": patience, "restore": True}
    measure = {"type": "evaluate", "on": "validation"}
    return {**({} if patience is None else {"validation": measure, "early_stop": stop}), **(given or {})}


def seed(random_state: Any) -> int:
    """Return the seed of a ``random_state``: a whole number is the seed itself, generators and None draw one."""
    if isinstance(random_state, Integral) and int(random_state) >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
