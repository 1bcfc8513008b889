"""The settings of a class, and its construction from values that have been read: once, by its own validators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from inspect import Parameter
from typing import Any, TypeVar, get_type_hints

import attrs
from attrs import frozen

from sigma_kernel.errors import SigmaError, SigmaPluginError
from sigma_kernel.settings.mistakes import Faults, Wrong

REQUIRED: Any = attrs.NOTHING
T = TypeVar("T")


@frozen
class Setting:
    """One setting of a component; ``attribute`` is its field, or the parameter of a class that is none of attrs."""

    name: str
    type: Any
    attribute: Any

    @property
    def default(self) -> Any:
        """Return the default, REQUIRED if there is none, or None if it depends on other settings."""
        default = self.attribute.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
            return None if default.takes_self else default.factory()
        return REQUIRED if default is Parameter.empty else default


def settings(cls: Any) -> Mapping[str, Setting]:
    """Return the settings of a class by name; raises SigmaPluginError if an annotation cannot be resolved.

    If the converter of a field takes more than its type, its metadata has the type that it ``accepts``.
    """
    try:
        return _settings(cls) if isinstance(cls, type) and attrs.has(cls) else {}
    except NameError as error:
        raise SigmaPluginError(f"{cls!r}: {error}. The annotations of settings must exist at run time.") from None


@cache
def _settings(cls: type) -> Mapping[str, Setting]:
    hints = get_type_hints(cls)
    every = [f for f in attrs.fields(cls) if f.init]
    return {f.alias: Setting(f.alias, f.metadata.get("accepts", hints.get(f.name, Any)), f) for f in every}


def construct(make: Callable[..., T], values: Mapping[str, Any]) -> T:
    """Construct a class from values; if it refuses, raise the mistakes of all its settings at once."""
    try:
        return make(**values)
    except (Wrong, ValueError, TypeError, SigmaError):
        faults = Faults()
        explain(make, values, faults)
        faults.raise_all(values)
        raise


def explain(cls: Any, values: Mapping[str, Any], faults: Faults) -> Any:
    """Collect the errors of a class's validators for these values, on an object that holds only these.

    Return that object, or None if attrs did not make the class. A validator is skipped if it reads a missing setting,
    or if its own value cannot be converted.
    """
    if not (isinstance(cls, type) and attrs.has(cls)):
        return None
    bare = cls.__new__(cls)
    fields = {f.alias: f for f in attrs.fields(cls) if f.init}
    converted = [*_convert_values(bare, [(fields[name], values[name]) for name in fields if name in values])]
    for attribute, value in converted:
        object.__setattr__(bare, attribute.name, value)
    for attribute, value in converted:
        if attribute.validator is not None:
            with faults.locate(attribute.alias):
                _validate(bare, attribute, value)
    return bare


def _convert_values(bare: Any, values: Sequence[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """Yield the fields of a class with their converted values, except refused ones; not all fields can be hashed."""
    for attribute, value in values:
        with suppress(ValueError, TypeError, SigmaError):  # errors of the class itself
            yield attribute, _convert(bare, attribute, value)


def _convert(bare: Any, attribute: Any, value: Any) -> Any:
    convert = attribute.converter
    if convert is None:
        return value
    knows_object = type(convert) is attrs.Converter
    return convert(value, bare, attribute) if knows_object else convert(value)


def _validate(bare: Any, attribute: Any, value: Any) -> None:
    where = f"{type(bare).__name__}.{attribute.alias}: "
    try:
        attribute.validator(bare, attribute, value)
    except AttributeError:  # it reads a setting that is wrong or missing, which is reported already
        return
    except Wrong as wrong:
        raise Wrong([(path, _drop_place(where, error)) for path, error in wrong.found]) from None
    except SigmaError as error:
        raise _drop_place(where, error) from None


def _drop_place(where: str, error: Exception) -> Exception:
    """Return an error without the name of its setting, as its place has it."""
    is_prefixed = isinstance(error, SigmaError) and str(error).startswith(where)
    return type(error)(str(error).removeprefix(where)) if is_prefixed else error
