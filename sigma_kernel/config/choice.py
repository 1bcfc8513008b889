"""A component as a configuration chooses it: its full name and its settings, before anything is made of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_type_hints

import attrs
from attrs import field, frozen

from sigma_kernel.clock import TimeStep
from sigma_kernel.errors import SigmaPluginError
from sigma_kernel.training.criteria import Criterion

REQUIRED: Any = attrs.NOTHING
_KEPT = (bool, int, float, str)
_SPOKEN = (Path, TimeStep, Criterion)  # these print as the text that they are read from


@frozen
class Setting:
    """One thing that can be set about a component; ``check`` raises for a value that does not do."""

    name: str
    type: Any
    default: Any = REQUIRED
    check: Callable[[Any, Any], None] | None = None


def plain(value: Any) -> Any:
    """Return a setting as TOML has it; TypeError for what no TOML file can say."""
    if isinstance(value, Choice):
        return {"type": value.name, **plain(value.settings)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, _SPOKEN):
        return str(value)
    if isinstance(value, _KEPT):
        return value
    if attrs.has(type(value)):
        return plain(attrs.asdict(value, recurse=False))
    raise TypeError(f"{value!r} has no place in a configuration")


@frozen
class Choice:
    """A component with its settings, defaults included; equal if it would be written in the same way."""

    name: str  # ``distribution:name``
    settings: Mapping[str, Any] = field(eq=plain)
    factory: Callable[..., Any] = field(eq=False, repr=False)

    def make(self) -> Any:
        """Return a new object; whatever the component's own checks raise passes through."""
        return self.factory(**{name: made(value) for name, value in self.settings.items()})


def made(value: Any) -> Any:
    """Return a setting with every choice in it replaced by what was chosen."""
    if isinstance(value, Choice):
        return value.make()
    if isinstance(value, Mapping):
        return {key: made(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(made(inner) for inner in value)
    return value


def settings(factory: Callable[..., Any]) -> dict[str, Setting]:
    """Return what can be set about a component, by name: the fields of an attrs class, or the arguments of a function.

    Raises SigmaPluginError if an annotation cannot be resolved.
    """
    try:
        if isinstance(factory, type) and attrs.has(factory):
            return _fields(factory, get_type_hints(factory))
        made = vars(factory)["__init__"] if isinstance(factory, type) and "__init__" in vars(factory) else factory
        return _arguments(factory, get_type_hints(made))
    except NameError as error:
        raise SigmaPluginError(f"{factory!r}: {error}. Its settings need annotations that exist at run time.") from None


def _fields(cls: type, hints: Mapping[str, Any]) -> dict[str, Setting]:
    found = [f for f in attrs.fields(cls) if f.init]
    return {f.alias: Setting(f.alias, _accepted(f, hints), _default(f.default), _checker(f)) for f in found}


def _accepted(attribute: Any, hints: Mapping[str, Any]) -> Any:
    """Return the type that may be given: what a converter takes, where there is one that says so."""
    if attribute.converter is None or isinstance(attribute.converter, type):
        return hints.get(attribute.name, Any)
    taken = [hint for name, hint in get_type_hints(attribute.converter).items() if name != "return"]
    return taken[0] if taken else hints.get(attribute.name, Any)


def _checker(attribute: Any) -> Callable[[Any, Any], None] | None:
    if attribute.converter is None and attribute.validator is None:
        return None

    def check(others: Any, value: Any) -> None:
        converted = attribute.converter(value) if attribute.converter else value
        if attribute.validator:
            attribute.validator(others, attribute, converted)

    return check


def _default(default: Any) -> Any:
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        return None if default.takes_self else default.factory()
    return default


def _arguments(function: Callable[..., Any], hints: Mapping[str, Any]) -> dict[str, Setting]:
    several = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    found = [p for p in inspect.signature(function).parameters.values() if p.kind not in several]
    defaults = {p.name: REQUIRED if p.default is p.empty else p.default for p in found}
    return {name: Setting(name, hints.get(name, Any), default) for name, default in defaults.items()}
