"""Resolve settings, which are names, tables or objects, to components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from sigma_kernel.contracts.storing import Store
from sigma_kernel.network.tracing import Resolve
from sigma_kernel.plugins.catalogue import Catalogue
from sigma_kernel.plugins.components import component_names, kind_of
from sigma_kernel.plugins.loading import Loader
from sigma_kernel.scanning import OWN
from sigma_kernel.settings import is_table
from sigma_kernel.settings.mistakes import Faults, combine

STORE = "default:run"  # the store of runs


@frozen(eq=False, repr=False)
class Resolver:
    """Resolve names and tables to components of a catalogue."""

    catalogue: Catalogue

    def __call__(self, wanted: str | type, thing: Any, where: str = "") -> Any:
        """Return the component for a name, a table ``{"type": name, setting: value}``, a class or an object.

        It is of a kind, or fulfils a contract. Names and tables in its settings are resolved, too, if their types are
        contracts. For the name of a layer or a criterion, the result is its class, since the text form provides its
        settings. Raises one error for all mistakes, at the place ``where``.
        """
        kind = wanted if isinstance(wanted, str) else kind_of(wanted)
        if thing is None and kind == "backend":
            thing = self.catalogue.default_computation()
        if isinstance(thing, str) and kind in ("layer", "criterion", "command", OWN):
            return self.catalogue.load(kind, thing)
        faults, loader = Faults(), Loader(self.catalogue)
        with faults.locate():
            return loader.load_component(thing, wanted) if isinstance(wanted, str) else loader.load(thing, wanted)
        raise combine(where or (kind or "" if faults.found[0][0] else ""), faults.found)

    def in_full(self, kind: str, thing: str | Mapping[str, Any]) -> Any:
        """Return a name, or a table, with the full name ``distribution:name``; unknown ones stay."""
        if isinstance(thing, str):
            return self.catalogue.resolve(kind, thing).full_name if self.catalogue.offers(kind, thing) else thing
        return thing if OWN in thing else {**thing, "type": self.in_full(kind, thing["type"])}


def resolve_components(resolve: Resolve, where: str, contract: type, chosen: Any) -> dict[str, Any]:
    """Resolve several components by name; in a list they are named by type, duplicates by index as well."""
    if isinstance(chosen, Mapping) and not is_table(chosen):
        return {name: resolve(contract, thing, f"{where}.{name}") for name, thing in chosen.items()}
    every = chosen if isinstance(chosen, list | tuple) else [chosen]
    components = [resolve(contract, thing, where) for thing in every]
    return dict(zip(component_names(every), components, strict=True))


def default_store(catalogue: Catalogue) -> Store:
    """Return the store of runs; raise SigmaPluginError if no plugin offers one."""
    return Resolver(catalogue)("store", STORE)  # type: ignore[no-any-return]
