"""Choices: a component's full name and settings, ready to be made; conversion of settings to plain TOML values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

import attrs
from attrs import field, frozen

from sigma_kernel.clock import TimeStep
from sigma_kernel.criteria import Criterion
from sigma_kernel.errors import SigmaPluginError
from sigma_kernel.scanning import OWN
from sigma_run.config.paths import path_of

REQUIRED: Any = attrs.NOTHING
T = TypeVar("T")


@frozen
class Setting:
    """One setting of a component; ``check(others, value)`` raises for an invalid value."""

    name: str
    type: Any
    default: Any = REQUIRED
    check: Callable[[Any, Any], None] | None = None


def settings(cls: Any) -> dict[str, Setting]:
    """Return the settings of a class by name; raises SigmaPluginError if an annotation cannot be resolved."""
    try:
        hints = get_type_hints(cls) if attrs.has(cls) else {}
    except NameError as error:
        raise SigmaPluginError(f"{cls!r}: {error}. The annotations of settings must exist at run time.") from None
    found = [f for f in attrs.fields(cls) if f.init] if hints else []
    return {f.alias: Setting(f.alias, hints.get(f.name, Any), _default(f.default), _check(f)) for f in found}


def _default(default: Any) -> Any:
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        return None if default.takes_self else default.factory()
    return default


def _check(attribute: Any) -> Callable[[Any, Any], None] | None:
    def check(others: Any, value: Any) -> None:
        attribute.validator(others, attribute, value)

    return check if attribute.validator else None


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


@frozen
class Choice(Generic[T]):
    """A component with its settings, defaults included; equal if its TOML is equal."""

    name: str  # ``distribution:name``
    settings: Mapping[str, Any] = field(eq=lambda settings: plain(settings))
    factory: Callable[..., T] = field(eq=False, repr=False)
    key: str = "type"  # or ``python``, for the path of one's own class

    def make(self) -> T:
        """Make the component; raises what its own validators raise."""
        return self.factory(**made(self.settings))


def made(value: Any) -> Any:
    """Return a setting with every choice in it replaced by the component made from it."""
    if isinstance(value, Choice):
        return value.make()
    if isinstance(value, Mapping):
        return {key: made(inner) for key, inner in value.items()}
    return type(value)(map(made, value)) if isinstance(value, list | tuple) else value
