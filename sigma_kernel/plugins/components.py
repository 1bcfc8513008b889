"""The kinds of components among settings, and the names of those in a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, get_args, get_origin

from sigma_kernel import contracts
from sigma_kernel.network.architecture import component_name
from sigma_kernel.plugins import specs
from sigma_kernel.plugins.choice import Choice
from sigma_kernel.scanning import OWN

PARTS = ("split", "split_by", "seed")  # settings of a data set in parts, which every data set takes
KINDS: dict[type, str] = {getattr(contracts, n): kind for kind, names in specs.KINDS.items() for n in names.split()}


def contract(type_: Any) -> Any:
    """Return the contract that a setting of this type requires."""
    return get_args(type_)[0] if get_origin(type_) is Choice else type_


def kind_of(type_: Any) -> str | None:
    """Return the component kind of a contract, or of a class that fulfils one; None for other types."""
    wanted = contract(type_)
    return _kind_of(wanted) if isinstance(wanted, type) else None


@cache
def _kind_of(wanted: type) -> str | None:
    return next((kind for cls, kind in KINDS.items() if issubclass(wanted, cls)), None)


def divide_dataset(
    kind: str, made: Any, chosen: Mapping[str, str], table: Mapping[str, Any], known: Iterable[str]
) -> dict[str, Any] | None:
    """Return the table of a data set in parts if it has a ``split`` and no splits of its own, else None."""
    if kind != "dataset" or "split" not in {*table} - {*known} or issubclass(made, Mapping):
        return None
    parts = {key: value for key, value in table.items() if key in PARTS and key not in known}
    rest = {key: value for key, value in table.items() if key not in parts}
    return {"type": "default:parts", **parts, "dataset": {**chosen, **rest}}


def component_names(chosen: Sequence[Any]) -> list[str]:
    """Return names for the components of a list: their types, with the index in front if there was one before."""
    types = [display_name(thing) for thing in chosen]
    return [f"{place}-{name}" if name in types[:place] else name for place, name in enumerate(types)]


def display_name(chosen: Any) -> str:
    """Return a component's display name: the type in its table, or the name of its class."""
    thing = chosen.get("type", chosen.get(OWN)) if isinstance(chosen, Mapping) else chosen
    return thing.rpartition(":")[2] if isinstance(thing, str) else component_name(thing)
