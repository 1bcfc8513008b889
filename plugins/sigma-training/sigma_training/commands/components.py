"""Components in commands: as the journal holds them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sigma_kernel import settings
from sigma_kernel.errors import SigmaConfigError


def hold_component(made: Any, attribute: Any, component: Any) -> None:
    """Hold a component as the journal does: a name, or a table of plain values with its type."""
    try:
        table = {"type": component} if isinstance(component, str) else dict(component)
        plain = json.loads(json.dumps(table, allow_nan=False))
    except (TypeError, ValueError):  # reported below
        plain = {}
    if not settings.is_table(plain):
        got = repr(component) if plain or isinstance(component, Mapping) else type(component).__name__
        raise SigmaConfigError(
            f"{type(made).__name__}.{attribute.name}: must be a name, or a table of plain values with its 'type', "
            f"for the journal and its replay (got {got}). Write {{'type': 'name', 'setting': 1}}."
        )
    object.__setattr__(made, attribute.name, component if isinstance(component, str) else plain)
