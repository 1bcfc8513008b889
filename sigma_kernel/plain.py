"""Plain values, as strict JSON has them."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any


def strict(value: Any) -> Any:
    """Return a value as strict JSON: a number that is not finite becomes None, and a tuple a list."""
    if isinstance(value, Mapping):
        return {name: strict(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [strict(inner) for inner in value]
    return None if isinstance(value, float) and not isfinite(value) else value
