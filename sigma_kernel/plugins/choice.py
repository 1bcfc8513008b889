"""Choices: a component's full name and settings, before construction; settings dumped as plain values."""

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
MOST_NUMBERS = 10_000  # of an array that is dumped as a list


def dump(value: Any, write: Callable[[Any], Any], place: Callable[[Path], str] = str) -> Any:
    """Return a value as tables, lists, numbers and strings; paths by ``place``, and other objects by ``write``.

    Small arrays become lists; None in a table is left out.
    """
    if getattr(getattr(value, "dtype", None), "kind", "-") in "biufU" and value.size <= MOST_NUMBERS:
        return value.tolist()
    match value:
        case None | bool() | int() | float():
            return value
        case str() | TimeStep() | Criterion():  # their str() parses back to the same value
            return str(value)
        case Path():
            return place(value)
        case list() | tuple():
            return [dump(item, write, place) for item in value]
        case Mapping() if not attrs.has(type(value)):
            return {str(name): dump(item, write, place) for name, item in value.items() if item is not None}
    return write(value)


def to_plain(value: Any, place: Callable[[Path], str] = str) -> Any:
    """Return a choice or a table of a file as plain values; raises TypeError for what TOML cannot express."""

    def write(thing: Any) -> Any:
        if isinstance(thing, Choice):
            own = thing.key == OWN
            return {thing.key: thing.name, **to_plain(thing.settings, place)} if thing.settings or own else thing.name
        if callable(thing) and (path := path_of(thing)):
            return {OWN: path}
        if attrs.has(type(thing)):
            values = {f.name: getattr(thing, f.name) for f in attrs.fields(type(thing)) if f.init}
            return _flat(thing, to_plain(values, place), place)
        raise TypeError(f"{thing!r} cannot be written in a configuration")

    return dump(value, write, place)


def _flat(record: Any, table: dict[str, Any], place: Callable[[Path], str]) -> dict[str, Any]:
    """Put the settings of a table's main component next to its name, so that ``--set data.folder=...`` works."""
    slot = getattr(record, "slot", "")
    if not slot or getattr(record, slot).key == OWN:
        return table
    inner = to_plain(getattr(record, slot).settings, place)
    return table if inner.keys() & table.keys() else {**table, slot: getattr(record, slot).name, **inner}


@define
class Choice(Generic[T]):
    """A component with its settings, defaults included; equal if its TOML is equal."""

    name: str  # ``distribution:name``
    settings: Mapping[str, Any] = field(eq=lambda settings: to_plain(settings))
    factory: Callable[..., T] = field(eq=False, repr=False)
    key: str = "type"  # or ``python``, for the path of one's own class
    _ready: list[T] = field(factory=list, init=False, eq=False, repr=False)

    def prepare(self) -> None:
        """Make the component that the first call of :meth:`make` returns; raises what its own validators raise."""
        self._ready.append(construct(self.factory, make_choices(self.settings)))

    def make(self) -> T:
        """Return a new component at each call, as two runs must not share one."""
        if not self._ready:
            self.prepare()
        return self._ready.pop()


def make_choices(value: Any) -> Any:
    """Return a setting with every choice in it replaced by the component made from it."""
    if isinstance(value, Choice):
        return value.make()
    if isinstance(value, Mapping):
        return {key: make_choices(inner) for key, inner in value.items()}
    return type(value)(map(make_choices, value)) if isinstance(value, list | tuple) else value
