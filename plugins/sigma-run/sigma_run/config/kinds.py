"""Map contracts to component kinds, and check that a plugin's components fulfil their contracts."""

from __future__ import annotations

from typing import Any, get_args, get_origin

from sigma_kernel.plugins.resolver import kind_of as kind_of_contract
from sigma_run.config.choice import Choice


def contract(type_: Any) -> Any:
    """Return the contract that a setting of this type requires."""
    return get_args(type_)[0] if get_origin(type_) is Choice else type_


def kind_of(type_: Any) -> str | None:
    """Return the component kind of a contract, or of a class that fulfils one; None for other types."""
    return kind_of_contract(contract(type_))
