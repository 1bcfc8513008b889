"""Dump objects as the plain values that a loader reads: names, tables, texts, and the paths of one's own code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from attrs import fields, frozen, has

from sigma_kernel.clock import TimeStep
from sigma_kernel.criteria import Criterion
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.network.architecture import Architecture, Own, name_of, write
from sigma_kernel.plugins.catalogue import Catalogue
from sigma_kernel.plugins.choice import Choice
from sigma_kernel.plugins.components import kind_of
from sigma_kernel.plugins.paths import path_of
from sigma_kernel.plugins.specs import Component
from sigma_kernel.scanning import OWN

MOST_NUMBERS = 10_000  # of an array that is dumped as a list


@frozen
class Dumper:
    """Dump values, components of a catalogue and objects of one's own code; paths are written by ``place``.

    Its methods raise SigmaConfigError for what a file cannot hold.
    """

    catalogue: Catalogue = Catalogue(())
    place: Callable[[Path], str] = lambda path: str(path.absolute())

    def dump(self, value: Any) -> Any:
        """Return a value as tables, lists, numbers and strings; what is None in a table is left out."""
        if getattr(getattr(value, "dtype", None), "kind", "-") in "biufU" and value.size <= MOST_NUMBERS:
            return value.tolist()
        match value:
            case None | bool() | int() | float():
                return value
            case str() | TimeStep() | Criterion():  # their str() parses back to the same value
                return str(value)
            case Path():
                return self.place(value)
            case list() | tuple():
                return [self.dump(item) for item in value]
            case Mapping() if not has(type(value)):
                return {str(name): self.dump(item) for name, item in value.items() if item is not None}
            case Choice():
                return _name_or_table(value.key, value.name, self.dump(value.settings))
            case Architecture():
                return self.architecture([value])
        return self._dump_object(value)

    def _dump_object(self, value: Any) -> Any:
        cls: Any = type(value)
        if kind_of(cls) or self.find_record(cls):
            return self.table(value)
        if has(cls) and not callable(value):
            return _flatten(getattr(value, "slot", ""), self._settings(value))
        record = self.find_record(value)
        return {OWN: _path(value)} if record is None else record.full_name

    def table(self, component: Any) -> Any:
        """Return the table of a component, or just its name if it has no settings."""
        record, settings = self.find_record(type(component)), self._settings(component)
        key, name = (OWN, _path(type(component))) if record is None else ("type", record.full_name)
        return _name_or_table(key, name, settings)

    def architecture(self, ends: Sequence[Architecture]) -> str:
        """Return the text form of architectures, with full names."""
        return write(ends, self._name_in_text, self.dump)

    def _name_in_text(self, kind: str, component: Any) -> str:
        """Return the full name of a component, a layer or a name itself, or the path of a layer of one's own code."""
        if isinstance(component, str) or component._called:
            return self.catalogue.resolve(kind, name_of(kind, component)).full_name
        _check_shown(component)
        record = self.find_record(type(component))
        return Own(_path(type(component))) if record is None else record.full_name

    def _settings(self, component: Any) -> dict[str, Any]:
        """Return the settings of an attrs object, defaults included; those that are None are left out."""
        cls = type(component)
        _check_shown(component)
        settings = {}
        for f in fields(cls) if has(cls) else ():
            value = getattr(component, f.name, None)
            if f.init and value is None and f.default not in (None, attrs.NOTHING):
                raise SigmaConfigError(f"{cls.__qualname__}.{f.alias} is None, which a file cannot hold.")
            if isinstance(value, np.ndarray) and self.find_record(cls) is None:
                raise SigmaConfigError(f"{cls.__qualname__}.{f.alias} is an array, which a file cannot hold.")
            if f.init and value is not None:
                settings[f.alias] = self.dump(value)
        return settings

    def find_record(self, thing: Any) -> Component | None:
        """Return the record of the component that a class or a function is; only what is imported is looked at."""
        for component in self.catalogue.components():
            module, _, name = component.path.partition(":")
            if getattr(sys.modules.get(module), name, None) is thing and thing is not None:
                return component
        return None


def _name_or_table(key: str, name: str, settings: Mapping[str, Any]) -> Any:
    return {key: name, **settings} if settings or key == OWN else name


def _flatten(slot: str, table: dict[str, Any]) -> dict[str, Any]:
    """Put the settings of a table's main component next to its name, so that ``--set data.folder=...`` works."""
    main = table.get(slot)
    if not isinstance(main, dict) or OWN in main:
        return table
    rest = {name: value for name, value in main.items() if name != "type"}
    return table if rest.keys() & table.keys() else {**table, slot: main["type"], **rest}


def _check_shown(component: Any) -> None:
    """Raise SigmaConfigError for an object of a class that attrs did not make, if it may have settings of its own."""
    cls = type(component)
    base = next(c for c in cls.__mro__ if c is object or "__attrs_attrs__" in vars(c))
    names = {f.name for f in fields(base)} if has(base) else set()
    rest = {*getattr(component, "__dict__", ())} - names
    if base is not cls and (rest or cls.__init__ is not base.__init__):  # type: ignore[misc]
        which = f" ({', '.join(sorted(rest))})" if rest else ""
        remedy = "Make it a class of attrs, with its settings as fields: decorate it with `attrs.define(eq=False)`."
        raise SigmaConfigError(f"{cls.__qualname__} does not show its settings{which}. {remedy}")


def _path(thing: Any) -> str:
    """Return the path of an object of one's own code; SigmaConfigError if it cannot be imported by one."""
    path = path_of(thing)
    if path is None:
        named = getattr(thing, "__qualname__", None) or f"an object of {type(thing).__qualname__}"
        why = "it is defined in a script, a notebook or a function. Move it to a module."
        raise SigmaConfigError(f"{named} cannot be imported by a name: {why}")
    return path
