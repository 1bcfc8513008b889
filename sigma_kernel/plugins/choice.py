"""Choices: a component's full name and settings, ready to be made; conversion of settings to plain TOML values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

import attrs
from attrs import define, field

from sigma_kernel.clock import TimeStep
from sigma_kernel.criteria import Criterion
from sigma_kernel.plugins.paths import path_of
from sigma_kernel.scanning import OWN
from sigma_kernel.settings.records import construct

T = TypeVar("T")


def plain(value: Any, place: Callable[[Path], str] = str) -> Any:
    """Convert a setting to plain TOML values, paths by ``place``; raises TypeError for what TOML cannot express."""
    if isinstance(value, Choice):
        own = value.key == OWN
        return {value.key: value.name, **plain(value.settings, place)} if value.settings or own else value.name
    if isinstance(value, Mapping):
        return {str(key): plain(inner, place) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [plain(inner, place) for inner in value]
    if isinstance(value, Path):
        return place(value)
    if isinstance(value, TimeStep | Criterion):  # their str() parses back to the same value
        return str(value)
    if isinstance(value, bool | int | float | str):
        return value
    if callable(value) and (path := path_of(value)):
        return {OWN: path}
    if attrs.has(type(value)):
        found = {f.name: getattr(value, f.name) for f in attrs.fields(type(value)) if f.init}
        return _flat(value, plain(found, place), place)
    raise TypeError(f"{value!r} has no place in a configuration")


def _flat(record: Any, table: dict[str, Any], place: Callable[[Path], str]) -> dict[str, Any]:
    """Put the settings of a table's main component next to its name, so that ``--set data.folder=...`` works."""
    slot = getattr(record, "slot", "")
    if not slot or getattr(record, slot).key == OWN:
        return table
    inner = plain(getattr(record, slot).settings, place)
    return table if inner.keys() & table.keys() else {**table, slot: getattr(record, slot).name, **inner}


@define
class Choice(Generic[T]):
    """A component with its settings, defaults included; equal if its TOML is equal."""

    name: str  # ``distribution:name``
    settings: Mapping[str, Any] = field(eq=lambda settings: plain(settings))
    factory: Callable[..., T] = field(eq=False, repr=False)
    key: str = "type"  # or ``python``, for the path of one's own class
    _ready: list[T] = field(factory=list, init=False, eq=False, repr=False)

    def prepare(self) -> None:
        """Make the component that the first call of :meth:`make` returns; raises what its own validators raise."""
        self._ready.append(construct(self.factory, made(self.settings)))

    def make(self) -> T:
        """Return the component, which is made once; another call makes another, as two runs must not share one."""
        if not self._ready:
            self.prepare()
        return self._ready.pop()


def made(value: Any) -> Any:
    """Return a setting with every choice in it replaced by the component made from it."""
    if isinstance(value, Choice):
        return value.make()
    if isinstance(value, Mapping):
        return {key: made(inner) for key, inner in value.items()}
    return type(value)(map(made, value)) if isinstance(value, list | tuple) else value
