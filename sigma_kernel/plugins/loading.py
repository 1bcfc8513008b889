"""The engine of settings: load plain values as the types of settings; collect all mistakes, each with its path."""

from __future__ import annotations

import os
import types
from collections.abc import Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from functools import cache
from inspect import Parameter
from pathlib import Path
from types import NoneType
from typing import Any, Literal, Union, get_args, get_origin

import attrs
from attrs import define

from sigma_kernel.clock import TimeStep
from sigma_kernel.criteria import Criterion
from sigma_kernel.errors import SigmaError, SigmaPluginError, suggest_name
from sigma_kernel.plugins.catalogue import Catalogue
from sigma_kernel.plugins.choice import make_choices
from sigma_kernel.plugins.components import component_names, contract, divide_dataset, kind_of
from sigma_kernel.plugins.kinds import check_contract, fulfils
from sigma_kernel.scanning import OWN
from sigma_kernel.settings import is_table, signature
from sigma_kernel.settings.mistakes import Faults, Mismatch, Override, Place, Unknown, Wrong, format_value
from sigma_kernel.settings.records import REQUIRED, Setting, construct, explain, settings

# types that a plain TOML value can express: the accepted Python types, and the name for messages
_PLAIN: dict[Any, tuple[Any, str]] = {
    bool: (bool, "true or false"), int: (int, "a whole number"), float: (int | float, "a number"),
    str: (str, "a string"), Path: (str, "a path"), TimeStep: (str, 'a time step such as "1 epoch"'),
    Criterion: (str, 'a criterion such as "epoch reaches 10"'),
}  # fmt: skip
_LISTS = (list, tuple, Sequence, MutableSequence)
_TABLES = (dict, Mapping, MutableMapping)
_TOML = (str, bool, int, float, list, tuple, Mapping)
_UNIONS = (Union, types.UnionType)
ANYTHING = "a value"  # what plain values of other types are called


# -- tables and components ---------------------------------------------------------------------------------------------
@define(eq=False)
class Loader:
    """Load plain values as the types of settings; objects pass, with their contents loaded.

    Mistakes are raised together, as :class:`Wrong`. A relative path starts in ``folder``; one from the command line in
    the working directory.
    """

    catalogue: Catalogue
    folder: Path = Path()

    def load(self, value: Any, type_: Any) -> Any:
        """Load a value as a type; the same object is returned if nothing in it had to be loaded."""
        if type_ is Any:
            return value
        if isinstance(value, Criterion):
            return value.bound(self.look_up)
        origin, is_plain = get_origin(type_) or type_, isinstance(value, _TOML) and not attrs.has(type(value))
        if (kind := kind_of(type_)) is not None and not (type_ is Criterion and not isinstance(value, Mapping)):
            return self.load_component(value, kind, contract(type_))
        if origin in _UNIONS:
            return self.load_union(value, type_)
        if is_plain and type_ in _PLAIN:
            return self.load_plain(value, type_)
        if isinstance(value, Mapping) and value.keys() == {OWN}:
            return self.look_up(OWN, _name(value[OWN], OWN))
        if origin in _TABLES and (is_plain or kind_of(_inner(type_)) is not None):
            return self.load_table(value, type_)
        if is_plain and attrs.has(type_):
            return self.load_record(value, type_)
        if is_plain and origin in _LISTS:
            return self.load_list(value, type_)
        return _literal(value, type_) if is_plain and origin is Literal else self.accept(value, type_)

    def accept(self, value: Any, type_: Any) -> Any:
        """Return a value that is an object already, or that its class converts."""
        return value

    def load_plain(self, value: Any, type_: Any) -> Any:
        """Load a plain value: as itself, a path, or what its text parses to."""
        accepted, name = _PLAIN[type_]
        if not isinstance(value, accepted) or (isinstance(value, bool) and type_ is not bool):
            raise Mismatch(name, value)
        if type_ is Criterion:
            return Criterion.parse(value).bound(self.look_up)
        return self.load_path(value) if type_ is Path else getattr(type_, "parse", type_)(value)

    def load_path(self, text: str) -> Path:
        """Return a path in the folder, with ``~`` expanded, and without ``..``."""
        path = (Path.cwd() if isinstance(text, Override) else self.folder) / Path(text).expanduser()
        return path.resolve() if os.pardir in path.parts else path

    # -- components ----------------------------------------------------------------------------------------------------
    def load_component(self, value: Any, kind: str, wanted: Any = None) -> Any:
        """Load the component of a name, or of a table with a ``type`` and settings; ``wanted`` is its contract."""
        if isinstance(value, type):
            return self.make("", value, self.fill(value, {}), OWN)
        if not isinstance(value, str | Mapping) or attrs.has(type(value)):
            return self.complete(value, kind, wanted)
        table, faults = {"type": value} if isinstance(value, str) else dict(value), Faults()
        key = OWN if OWN in table else "type"
        with faults.locate(*([] if isinstance(value, str) else [key])):
            name = _name(table.pop(key, None), kind)
            factory = self.look_up(key if key == OWN else kind, name)
            if wanted is not None and not fulfils(factory, wanted):
                raise ValueError(f"must be of type {wanted.__name__} (got {name!r}).")
        faults.raise_all()
        if parts := divide_dataset(kind, factory, {key: name}, table, _parameters(factory)[0]):
            return self._load_parts(parts, kind, wanted)
        more = "" if key == OWN else f" See `sigma components {kind} {name}`."
        full = name if key == OWN else self.catalogue.resolve(kind, name).full_name
        values = self.fill(factory, table, more)
        return self.make(full, factory, values, key) if isinstance(factory, type) else factory

    def complete(self, value: Any, kind: str, wanted: Any) -> Any:
        """Return an object if it fulfils its contract, with the names and tables among its settings loaded."""
        also = (Mapping,) if kind == "dataset" else ()
        if wanted is not None and not isinstance(value, (wanted, *also)):
            raise Mismatch(component_words(kind), value)
        try:
            cls: Any = type(value)
            schema = _loadable_settings(cls)
        except SigmaPluginError:  # annotations that only type checkers can resolve
            return value
        faults, new = Faults(), dict[str, Any]()
        for name, setting in schema.items():
            with faults.locate(name):
                old = getattr(value, setting.attribute.name)
                if (loaded := self.load(old, setting.type)) is not old:
                    new[name] = loaded
        faults.raise_all()
        return attrs.evolve(value, **new) if new else value

    def make(self, name: str, factory: Any, values: Mapping[str, Any], key: str) -> Any:
        """Return the component of a class and its settings."""
        return construct(factory, values)

    def _load_parts(self, parts: dict[str, Any], kind: str, wanted: Any) -> Any:
        """Load a data set in parts; mistakes are reported where the table has the setting."""
        try:
            return self.load_component(parts, kind, wanted)
        except Wrong as wrong:
            errors = [(path[1:] if path[:1] == ("dataset",) else path, error) for path, error in wrong.found]
            raise Wrong(errors) from None

    def look_up(self, kind: str, name: str) -> Any:
        """Return a component's object; raises SigmaPluginError if it does not fulfil its contract."""
        thing = self.catalogue.load(kind, name)
        if kind != OWN:
            check_contract(self.catalogue.resolve(kind, name), thing)
        return thing

    # -- tables and lists ----------------------------------------------------------------------------------------------
    def fill(self, cls: Any, table: Mapping[str, Any], more: str = "") -> dict[str, Any]:
        """Return the settings of a class in a table.

        ``more`` is added to the message for a missing setting: where the settings are documented.
        """
        (schema, takes_any), faults, values = _parameters(cls), Faults(), dict[str, Any]()
        for name in table.keys() - schema.keys():
            with faults.locate(name):
                if not takes_any:
                    raise Unknown(name, schema)
                values[name] = table[name]
        for name, setting in schema.items():
            with faults.locate(name):
                if name in table:
                    values[name] = self.load(table[name], setting.type)
                elif setting.default is REQUIRED:
                    raise ValueError(f"is missing. Give it {words(setting.type)}.{more}")
                else:
                    values |= self.write_default(setting)
        if faults.found:
            explain(cls, values if kind_of(cls) is None else make_choices(values), faults)
        faults.raise_all(values)
        return values

    def write_default(self, setting: Setting) -> dict[str, Any]:
        """Return the default of an omitted setting, if it must be passed."""
        return {}

    def load_record(self, table: Any, cls: Any) -> Any:
        """Return an attrs object that is not a component; settings of its ``slot``, if any, may be next to it."""
        if not isinstance(table, Mapping):
            raise Mismatch("a table", table)
        schema, slot = settings(cls), getattr(cls, "slot", "")
        if not slot:
            return construct(cls, self.fill(cls, table))
        given, faults = table.get(slot), Faults()
        inner = given if isinstance(given, Mapping) else {} if given is None else {"type": given}
        rest = {name: value for name, value in table.items() if name not in schema}
        own = {name: value for name, value in table.items() if name in schema}
        for name in rest.keys() & inner.keys():
            with faults.locate(name):
                raise ValueError(f"is given twice, here and in `{slot}`.")
        try:
            whole = {**rest, **inner} if rest or isinstance(given, str | Mapping | None) else given
            read = construct(cls, self.fill(cls, {**own, slot: whole}))
        except Wrong as wrong:
            for path, error in wrong.found:
                faults.found.append(_relocate(path, error, given, rest, schema) if path[0] == slot else (path, error))
        faults.raise_all()
        return read

    def load_list(self, value: Any, type_: Any) -> list[Any] | tuple[Any, ...]:
        """Load a list or a tuple."""
        if not isinstance(value, list | tuple):
            raise Mismatch("a list", value)
        kinds, is_tuple = get_args(type_) or (Any, ...), (get_origin(type_) or type_) is tuple
        kinds = kinds if is_tuple and kinds[-1] is not Ellipsis else kinds[:1] * len(value)
        if len(value) != len(kinds):
            raise Mismatch(f"a list of {len(kinds)} values", value)
        row, wanted = self._load_items(enumerate(value), kinds), tuple if is_tuple else type(value)
        same = isinstance(value, wanted) and all(row[index] is old for index, old in enumerate(value))
        return value if same else wanted(row.values())

    def load_table(self, value: Any, type_: Any) -> Mapping[Any, Any]:
        """Load a table whose values have one type; a list of components is named by their types."""
        inner = _inner(type_)
        if kind_of(inner) is not None and (rows := self.list_unnamed(value, inner)) is not None:
            return dict(zip(component_names(rows), self.load_list(rows, list[inner]), strict=True))  # type: ignore[valid-type]
        if not isinstance(value, Mapping):
            raise Mismatch("a table with a name for each", value)
        table = self._load_items(value.items(), (inner,) * len(value))
        return value if all(table[key] is old for key, old in value.items()) else table

    def list_unnamed(self, value: Any, inner: Any) -> list[Any] | None:
        """Return components given without names, several or one; None if they have names."""
        if isinstance(value, list | tuple):
            return list(value)
        return None if isinstance(value, Mapping) and not is_table(value) else [value]

    def _load_items(self, items: Iterable[tuple[Any, Any]], kinds: tuple[Any, ...]) -> dict[Any, Any]:
        faults, values = Faults(), dict[Any, Any]()
        for (key, value), kind in zip(items, kinds, strict=True):
            with faults.locate(key):
                values[key] = self.load(value, kind)
        faults.raise_all(values)
        return values

    def load_union(self, value: Any, type_: Any) -> Any:
        """Load a value as the first type of a union that accepts it; an object as the type of its contract."""
        if value is None and NoneType in get_args(type_):
            return self.accept(value, type_)
        deeper: Exception | None = None
        expected, hint = [], ""
        for member in sorted(get_args(type_), key=lambda one: (not _is_of(value, one), words(one) == ANYTHING)):
            if member is not NoneType:
                try:
                    return self.load(value, member)
                except Mismatch as error:
                    expected.append(error.expected)
                    hint = hint or error.hint
                except (Wrong, ValueError, SigmaError) as error:
                    deeper = deeper or error
        raise deeper or Mismatch(" or ".join(expected), value, hint)


def _parameters(cls: Any) -> tuple[Mapping[str, Setting], bool]:
    """Return the settings of a class by name, and whether it takes any others as well."""
    if attrs.has(cls) or not isinstance(cls, type):
        return settings(cls), False
    every = signature(cls).parameters.values()
    named = [p for p in every if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)]
    return {p.name: Setting(p.name, Any, p) for p in named}, any(p.kind is p.VAR_KEYWORD for p in every)


def _inner(type_: Any) -> Any:
    """Return the type of the values of a table."""
    return (get_args(type_) or (Any,))[-1]


def _is_of(value: Any, type_: Any) -> bool:
    """Return whether a value is an object that fulfils the contract of a type."""
    return kind_of(type_) is not None and isinstance(value, contract(type_))


@cache
def _loadable_settings(cls: type) -> Mapping[str, Setting]:
    """Return the settings of a class that may hold names, tables or texts of objects."""
    return {name: setting for name, setting in settings(cls).items() if _is_loadable(setting.type)}


def _is_loadable(type_: Any) -> bool:
    """Return whether settings of a type may hold names, tables or texts of objects."""
    inner = [argument for argument in get_args(type_) if not isinstance(argument, list)]
    parsed = type_ in (TimeStep, Criterion, Path) or kind_of(type_) is not None or attrs.has(type_)
    return parsed or any(map(_is_loadable, inner))


def _relocate(
    path: Place, error: Exception, given: Any, rest: Mapping[str, Any], known: Mapping[str, Any]
) -> tuple[Place, Exception]:
    """Return a mistake with its path in the file: settings next to the slot are not in the slot's table."""
    if isinstance(error, Unknown) and path[-1] in rest:
        error = Unknown(error.key, [*known, *error.known])
    if len(path) == 1 or (isinstance(given, dict) and path[1] not in rest):
        return path, error
    return path[:1] if path[1:] == ("type",) else path[1:], error


def _name(name: Any, kind: str) -> str:
    if name is None:
        raise ValueError(f"is missing. Give it the name of {_article(kind)}; `sigma components {kind}` lists them.")
    if not isinstance(name, str):
        raise Mismatch(f"the name of {_article(kind)}", name)
    return name


# -- types -------------------------------------------------------------------------------------------------------------
def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def component_words(kind: str) -> str:
    """Describe the forms of a component, for messages."""
    return f"{_article(kind)}: its name, or a table with its `type`"


def words(type_: Any) -> str:
    """Describe a type in words, for messages: ``a number``, ``a table``, ``"keep" or "drop"``."""
    if type_ in _PLAIN:
        return _PLAIN[type_][1]
    origin = get_origin(type_) or type_
    if origin is Literal:
        return " or ".join(map(format_value, get_args(type_)))
    if origin in _UNIONS:
        return " or ".join(words(member) for member in get_args(type_) if member is not NoneType)
    if (kind := kind_of(type_)) is not None:
        return _article(kind)
    if attrs.has(type_) or origin in _TABLES:
        return "a table"
    return "a list" if origin in _LISTS else ANYTHING


def _literal(value: Any, type_: Any) -> Any:
    allowed = get_args(type_)
    if value not in allowed or isinstance(value, bool):
        hint = suggest_name(value, [a for a in allowed if isinstance(a, str)]) if isinstance(value, str) else ""
        raise Mismatch(words(type_), value, hint)
    return value
