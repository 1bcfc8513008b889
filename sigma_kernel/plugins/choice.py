"""Choices: the full name of a component and its settings, ready to be made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from attrs import define, field, fields, has

from sigma_kernel.settings.records import construct

T = TypeVar("T")


@define(eq=False)
class Choice(Generic[T]):
    """A component with its settings, defaults included."""

    name: str  # ``distribution:name``
    settings: Mapping[str, Any]
    factory: Callable[..., T] = field(repr=False)
    key: str = "type"  # or ``python``, for the path of one's own class
    _ready: list[T] = field(factory=list, init=False, repr=False)

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
    if isinstance(value, list | tuple):
        return type(value)(map(make_choices, value))
    if has(type(value)) and any(map(_holds_choice, (parts := _parts(value)).values())):
        return construct(type(value), make_choices(parts))
    return value


def _holds_choice(value: Any) -> bool:
    if isinstance(value, Choice):
        return True
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return any(map(_holds_choice, inner or (_parts(value).values() if has(type(value)) else ())))


def _parts(record: Any) -> dict[str, Any]:
    """Return the settings of a record, such as one of several parts of a component, by name."""
    return {part.alias: getattr(record, part.name) for part in fields(type(record)) if part.init}
