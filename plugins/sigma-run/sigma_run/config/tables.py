"""Write components as the tables that stand for them in files: names, settings, and the paths of one's own code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from attrs import fields, frozen, has

from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.network.architecture import Architecture, Own, name_of, write
from sigma_kernel.plugins.catalogue import Catalogue
from sigma_kernel.plugins.choice import dump
from sigma_kernel.plugins.components import kind_of
from sigma_kernel.plugins.paths import path_of
from sigma_kernel.plugins.specs import Component
from sigma_kernel.scanning import OWN


@frozen
class Writer:
    """Write components of a catalogue, and objects of one's own code; SigmaConfigError for what a file cannot hold."""

    catalogue: Catalogue
    place: Callable[[Path], str] = lambda path: str(path.absolute())

    def architecture(self, ends: Any) -> str:
        """Return the text form of architectures, with full names."""
        return write(ends, self.component_name, self.value)

    def component_name(self, kind: str, component: Any) -> str:
        """Return the full name of a component, a layer or a name itself, or the path of a layer of one's own code."""
        if isinstance(component, str) or component._called:
            return self.catalogue.resolve(kind, name_of(kind, component)).full_name
        _check_shown(component)
        record = self._record(type(component))
        return Own(_path(type(component))) if record is None else record.full_name

    def table(self, component: Any) -> Any:
        """Return the table of a component, or just its name if it has no settings."""
        cls = type(component)
        record, settings = self._record(cls), self._settings(component)
        if record is None:
            return {OWN: _path(cls), **settings}
        return {"type": record.full_name, **settings} if settings else record.full_name

    def value(self, value: Any) -> Any:
        """Return a setting as plain values: tables, lists, numbers, strings."""
        return dump(value, self._object, self.place)

    def _object(self, value: Any) -> Any:
        """Return an object as plain values: an architecture, a component, or an object of own code."""
        if isinstance(value, Architecture):
            return self.architecture([value])
        cls: Any = type(value)
        if kind_of(cls) or self._record(cls):
            return self.table(value)
        if has(type(value)) and not callable(value):
            return self._settings(value)
        component = self._record(value)
        return {OWN: _path(value)} if component is None else component.full_name

    def _settings(self, component: Any) -> dict[str, Any]:
        """Return the settings of an attrs object, defaults included; those that are None are left out."""
        cls = type(component)
        _check_shown(component)
        settings = {}
        for f in fields(cls) if has(cls) else ():
            value = getattr(component, f.name)
            if f.init and value is None and f.default not in (None, attrs.NOTHING):
                raise SigmaConfigError(f"{cls.__qualname__}.{f.alias} is None, which a file cannot hold.")
            if isinstance(value, np.ndarray) and not self.is_component(cls):
                raise SigmaConfigError(f"{cls.__qualname__}.{f.alias} is an array, which a file cannot hold.")
            if f.init and value is not None:
                settings[f.alias] = self.value(value)
        return settings

    def is_component(self, made: Any) -> bool:
        """Return whether a class or a function is a component of the catalogue."""
        return self._record(made) is not None

    def _record(self, thing: Any) -> Component | None:
        """Return the record of the component that a class or a function is; only what is imported is looked at."""
        for component in self.catalogue.components():
            module, _, name = component.path.partition(":")
            if getattr(sys.modules.get(module), name, None) is thing and thing is not None:
                return component
        return None


def _check_shown(component: Any) -> None:
    """Raise SigmaConfigError for an object of a class that attrs did not make, if it may have settings of its own."""
    cls = type(component)
    base = next(c for c in cls.__mro__ if c is object or "__attrs_attrs__" in vars(c))
    names = {f.name for f in fields(base)} if has(base) else set()
    rest = {*getattr(component, "__dict__", ())} - names
    if base is not cls and (rest or cls.__init__ is not base.__init__):  # type: ignore[misc]
        which = f" ({', '.join(sorted(rest))})" if rest else ""
        raise SigmaConfigError(
            f"{cls.__qualname__} does not show its settings{which}. Make it a class of attrs, with its settings as "
            "fields: decorate it with `attrs.define(eq=False)`."
        )


def _path(thing: Any) -> str:
    """Return the path of an object of one's own code; SigmaConfigError if it cannot be imported by one."""
    path = path_of(thing)
    if path is None:
        named = getattr(thing, "__qualname__", None) or f"an object of {type(thing).__qualname__}"
        raise SigmaConfigError(
            f"{named} cannot be imported by a name: it is defined in a script, a notebook or a function. Move it to a "
            "module."
        )
    return path
