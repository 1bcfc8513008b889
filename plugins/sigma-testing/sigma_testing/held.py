"""The attributes of a component: fields, slots and others, and the changed ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from sigma_kernel.graph.calculus import map_leaves
from sigma_kernel.network.architecture import Architecture, write

OWN = {"__weakref__", "__dict__"}  # slots that hold no values


def attributes(component: Any) -> dict[str, Any]:
    """Return the fields, slots and all other attributes of a component that have values."""
    declared = (vars(cls).get("__slots__", ()) for cls in type(component).__mro__)
    slots = {name for names in declared for name in ([names] if isinstance(names, str) else names)} - OWN
    return {name: getattr(component, name) for name in slots if hasattr(component, name)} | getattr(
        component, "__dict__", {}
    )


def changed_attributes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return the names of attributes that are new, gone, or have other values, also inside containers and arrays."""
    return [n for n in before | now if n not in before or n not in now or not _alike(before[n], now[n])]


def _alike(one: Any, other: Any) -> bool:
    try:
        np.testing.assert_equal(map_leaves(_text, one), map_leaves(_text, other))
    except AssertionError:
        return False
    return True


def _text(value: Any) -> Any:
    """Return an architecture as text, since layers are compared by identity; anything else is returned unchanged."""
    return write([value]) if isinstance(value, Architecture) else value
