"""Describe components and their settings as plain data, for commands, documentation and forms."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc
from types import FunctionType
from typing import Any, Literal, get_args, get_origin

import attrs

from sigma_kernel.clock import TimeStep
from sigma_kernel.criteria import Criterion
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.network.architecture import Architecture, component_name
from sigma_kernel.plugins.catalogue import catalogue, load
from sigma_kernel.plugins.components import kind_of
from sigma_kernel.plugins.dumping import Dumper
from sigma_kernel.plugins.kinds import check_contract
from sigma_kernel.plugins.loading import words
from sigma_kernel.settings import OWNED, describe_limits, read_docs, requirements
from sigma_kernel.settings.records import REQUIRED, Setting, settings

NO_TABLES = (TimeStep, Criterion, Architecture)  # attrs classes that are written as text
LIMITS = ("low", "high", "above", "below")


def describe(kind: str, name: str) -> dict[str, Any]:
    """Import a component, and return its record, its documentation and its settings as JSON values.

    ``about`` is the first sentence of ``doc``. Each of the ``settings`` has its ``name``; its ``type`` in words;
    ``required``, or else its ``default``; ``doc``; ``must``, the accepted values in words, and ``limits``, the same for
    a number (``low``, ``high``, ``above``, ``below``); ``choices``, and whether this set is ``closed``; the ``kind`` of
    components that it takes, or None; whether it is ``live``; and the ``settings`` of the tables that it holds. Raises
    the errors of a name in a configuration.
    """
    component = catalogue().resolve(kind, name)
    thing: Any = load(component)
    check_contract(component, thing)
    doc = thing.__doc__ if isinstance(thing, type | FunctionType) else None  # other objects have that of their class
    text = cleandoc(doc or component.summary).partition("\nArgs:\n")[0].rstrip()
    record = component._asdict() | {"about": _sentence(text), "doc": text, "settings": []}
    if isinstance(thing, type):
        record["settings"] = _settings(thing, inherited_last=kind != "command")
    return record


def _settings(made: Any, inherited_last: bool = True) -> list[dict[str, Any]]:
    """Return the settings of a class, required ones first; inherited ones are last, or else in their place."""
    schema, docs = settings(made), read_docs(made) if made is not None else {}
    fields = [f for f in attrs.fields(made) if f.alias in schema and f.metadata != OWNED] if schema else []
    fields.sort(key=lambda f: (schema[f.alias].default is not REQUIRED, f.inherited and inherited_last))
    return [_setting(schema[f.alias], f, docs.get(f.alias, "")) for f in fields]


def _sentence(text: str) -> str:
    match = re.search(r"[.!?](?=\s|$)", text)
    return " ".join((text[: match.end()] if match else text.partition("\n\n")[0]).split())


def _setting(setting: Setting, attribute: Any, doc: str) -> dict[str, Any]:
    every, live = list(requirements(attribute.validator)), attribute.metadata.get("live")
    limits = {name: limit for rule in every for name, limit in rule.limits.items()}
    limits |= {name: getattr(live, name) for name in LIMITS if getattr(live, name, None) is not None}
    choices = [] if setting.type is bool else [choice for rule in every for choice in rule.choices]
    named = [choice for choice in _literals(setting.type) if choice not in choices]
    return {
        "name": setting.name,
        "type": words(setting.type),
        "required": setting.default is REQUIRED,
        "default": _default(setting.default),
        "doc": doc,
        "must": ", ".join(filter(None, [*(rule.words for rule in every), describe_limits(limits)])),
        "limits": limits,
        "choices": [*choices, *named],
        "closed": bool(choices) or get_origin(setting.type) is Literal,
        "kind": attribute.metadata.get("kind") or _kind(setting.type),
        "live": live is not None,
        "settings": _settings(_record(setting.type)),
    }


def _literals(type_: Any) -> tuple[Any, ...]:
    """Return the choices that a type names, alone or as one of several types."""
    inner = get_args(type_)
    return inner if get_origin(type_) is Literal else tuple(x for argument in inner for x in _literals(argument))


def _kind(type_: Any) -> str | None:
    """Return the kind of the components that a type takes, alone, in a list or in a table."""
    if isinstance(type_, list):  # the arguments of a function
        return None
    return kind_of(type_) or next(filter(None, map(_kind, get_args(type_))), None)


def _record(type_: Any) -> Any:
    """Return the class of the tables that a type takes, alone, in a list or by name; None if they may have any keys."""
    if attrs.has(type_):
        return type_ if kind_of(type_) is None and type_ not in NO_TABLES else None
    inner = () if get_origin(type_) is Callable else get_args(type_)
    return next(filter(None, map(_record, inner)), None)


def _default(default: Any) -> Any:
    """Return a default as a JSON value; None if there is none, or if TOML cannot express it."""
    if kind_of(type(default)) is not None:
        return component_name(default)
    try:
        return None if default is REQUIRED else Dumper(place=str).dump(default)
    except SigmaConfigError:
        return None
