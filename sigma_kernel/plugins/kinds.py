"""Check that components fulfil the contract of their kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sigma_kernel import contracts
from sigma_kernel.errors import SigmaPluginError
from sigma_kernel.plugins.catalogue import load
from sigma_kernel.plugins.components import KINDS
from sigma_kernel.plugins.rooms import install
from sigma_kernel.plugins.specs import Component


def fulfils(thing: Any, *wanted: Any) -> bool:
    """Return whether something is a class that fulfils one of the contracts; for datasets, a mapping of splits does."""
    also = (Mapping,) if contracts.Dataset in wanted else ()
    return isinstance(thing, type) and issubclass(thing, (*wanted, *also))


def check_contract(component: Component, thing: Any) -> None:
    """Raise SigmaPluginError if a component's object does not fulfil the contract of its kind."""
    classes = tuple(cls for cls, kind in KINDS.items() if kind == component.kind)
    if not classes or (component.kind == "layer" and not isinstance(thing, type)):  # a layer may be a factory function
        right = callable(thing)
    elif component.kind in ("recipe", "panel"):  # an instance, not a class
        right = isinstance(thing, classes)
    else:
        right = fulfils(thing, *classes)
    if not right:
        wanted = " or ".join(cls.__name__ for cls in classes) or "function"
        raise SigmaPluginError(
            f"{component.kind} {component.full_name!r}: expected {wanted} (got {thing!r}). "
            f"Update it: {install(component.distribution, '-U')}"
        )
    if component.kind == "command" and thing.command not in (component.name, component.full_name):
        name = getattr(thing, "command", None)
        raise SigmaPluginError(
            f"command {component.full_name!r}: journals would hold it as {name!r}, by which it is not found. Write "
            f"command = {component.full_name!r} in {component.path}."
        )
    if missing := ", ".join(sorted(getattr(thing, "__abstractmethods__", ()))):
        where = f"{component.kind} {component.full_name!r}: {component.path}"
        raise SigmaPluginError(f"{where} is abstract: it lacks {missing}. Define it, or leave the class out.")


def problems(components: Iterable[Component]) -> list[str]:
    """Import every component; return the errors of those that fail or do not fulfil their contract."""
    messages = []
    for component in components:
        try:
            check_contract(component, load(component))
        except SigmaPluginError as error:
            messages.append(str(error))
    return messages
