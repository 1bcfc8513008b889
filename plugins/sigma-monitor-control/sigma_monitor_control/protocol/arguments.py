"""Arguments of requests, checked against the annotations of the function that answers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from keyword import iskeyword
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import attrs

from sigma_kernel.contracts import Command
from sigma_kernel.errors import SigmaConfigError, refuse_unknown

WORDS = {str: "a string", int: "a whole number", float: "a number", bool: "true or false", dict: "an object"}


def check_arguments(do: str, function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a request if they fit a function, whose first parameter is its own.

    Raises SigmaConfigError for one that is unknown, missing or of another type; null means omitted, unless the argument
    is required and nullable.
    """
    return check_values(do, *parameters(function), given)


def check_values(
    do: str, expected: Mapping[str, Any], required: Sequence[str], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a request if they are of the types that are expected, as :func:`check_arguments` does."""
    refuse_unknown(do, given, expected)
    nullable = [name for name in required if NoneType in get_args(expected[name])]
    values = {name: value for name, value in given.items() if value is not None or name in nullable}
    for name in required:
        if name not in values:
            raise SigmaConfigError(f"{do}.{name}: is missing. Give it {words(expected[name])}.")
    for name, value in values.items():
        if not fits(value, expected[name]):
            raise SigmaConfigError(f"{do}.{name}: must be {words(expected[name])} (got {value!r:.100}).")
    return {f"{name}_" if iskeyword(name) else name: value for name, value in values.items()}


@cache
def parameters(function: Callable[..., Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the types of all parameters but the first by name, and the names of required ones."""
    types, signature = get_type_hints(function), [*inspect.signature(function).parameters.values()][1:]
    required = [_word(parameter.name) for parameter in signature if parameter.default is inspect.Parameter.empty]
    return {_word(parameter.name): types[parameter.name] for parameter in signature}, required


def fields_for_people(made: type[Command]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the types of the fields of a command by name, and their defaults, if any.

    Fields that only hooks, and Python, choose are left out.
    """
    types, fields = get_type_hints(made), [field for field in attrs.fields(made) if field.name not in made.by_hand]
    defaults = {field.name: field.default for field in fields if field.default is not attrs.NOTHING}
    return {field.name: types[field.name] for field in fields}, defaults


def _word(name: str) -> str:
    """Return the name of an argument: the parameter's, without the underscore that avoids Python's keywords."""
    return name.rstrip("_")


def fits(value: Any, type_: Any) -> bool:
    """Return whether a JSON value is of a type; a whole number is a number as well, true and false are none."""
    inner = get_args(type_)
    if type_ is Any:
        return True
    if isinstance(type_, UnionType):
        return any(fits(value, member) for member in inner)
    if get_origin(type_) is list:
        return isinstance(value, list) and all(fits(element, inner[0]) for element in value)
    if get_origin(type_) is dict:
        return isinstance(value, dict) and all(fits(element, inner[1]) for element in value.values())
    if type_ in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, int | float if type_ is float else type_)


def words(type_: Any) -> str:
    """Return a type in words."""
    inner = [member for member in get_args(type_) if member is not NoneType]
    if isinstance(type_, UnionType):
        return " or ".join(map(words, inner))
    if get_origin(type_) is list:
        return f"a list, each {words(inner[0])}" if inner[0] is not Any else "a list"
    if get_origin(type_) is dict:
        return f"an object, each value {words(inner[1])}" if inner[1] is not Any else "an object"
    return WORDS.get(type_, "a value")
