"""Other weights to evaluate with, such as averages: those that modifiers and optimisers keep in slots ``weights``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from sigma_kernel.errors import SigmaConfigError, suggest_name
from sigma_step.model import LAYERS, ONLY, OPTIMISERS

PLACE, SLOT = ".modifiers.", ".weights"  # optimiser.slots.1-dense.biases.modifiers.average.weights
OTHERS = ".transforms."  # which offer none


def weight_slots(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the slots of such weights among names of the state: by modifier, or ``optimiser``, by parameter."""
    slots: dict[str, dict[str, str]] = {}
    for name in names:
        slot = name.removesuffix(SLOT).partition(".slots.")[2] if name.startswith(OPTIMISERS) else ""
        if name.endswith(SLOT) and slot and OTHERS not in slot:
            address, _, modifier = slot.partition(PLACE)
            slots.setdefault(modifier or ONLY, {})[LAYERS + address] = name
    return slots


def check_weights(where: str, modifier: str, names: Iterable[str]) -> None:
    """Raise SigmaConfigError unless a modifier of this name keeps weights."""
    if modifier not in (slots := weight_slots(names)):
        hint = suggest_name(modifier, slots, "There are:") or " Add one: modifiers.average = 'average'."
        raise SigmaConfigError(f"{where}: no modifier {modifier!r} keeps weights to evaluate with.{hint}")


def apply_weights(arrays: Mapping[str, Any], modifier: str, host: Callable[[Any], np.ndarray]) -> dict[str, Any]:
    """Return a state with the weights that a modifier keeps in place of the parameters; of none, as it is.

    A parameter with a slot ``count`` of 0 has had no update, and stays.
    """
    if not modifier:
        return dict(arrays)
    check_weights("weights", modifier, arrays)
    slots = weight_slots(arrays)[modifier]
    counts = {a: arrays.get(name.removesuffix(SLOT) + ".count") for a, name in slots.items()}
    return {**arrays, **{a: arrays[name] for a, name in slots.items() if counts[a] is None or host(counts[a]) > 0}}
