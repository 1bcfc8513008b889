"""Convert plain TOML values to attrs objects and choices by the types of their fields; collect all mistakes."""

from __future__ import annotations

import os
import types
from collections.abc import Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Literal, Union, get_args, get_origin

import attrs
from attrs import define, field

from sigma_kernel.clock import TimeStep
from sigma_kernel.criteria import Criterion
from sigma_kernel.errors import SigmaError, near
from sigma_kernel.plugins.catalogue import Catalogue
from sigma_kernel.plugins.choice import Choice, made, plain
from sigma_kernel.plugins.components import component_names, contract, divided, kind_of
from sigma_kernel.plugins.kinds import check_contract, fulfils
from sigma_kernel.scanning import OWN
from sigma_kernel.settings.mistakes import Faults, Mismatch, Override, Place, Unknown, Wrong, shown
from sigma_kernel.settings.records import REQUIRED, construct, explain, settings

# types that a plain TOML value can express: the accepted Python types, and the name for messages
_PLAIN: dict[Any, tuple[Any, str]] = {
    bool: (bool, "true or false"), int: (int, "a whole number"), float: (int | float, "a number"),
    str: (str, "a string"), Path: (str, "a path"), TimeStep: (str, 'a time step such as "1 epoch"'),
    Criterion: (str, 'a criterion such as "epoch reaches 10"'),
}  # fmt: skip
_LISTS = (list, tuple, Sequence, MutableSequence)
_TABLES = (dict, Mapping, MutableMapping)
NAMED, MOST = (
    ("hook", "monitor"),
    1_000,
)  # kinds whose components need names, as their addresses and files begin with them
_UNIONS = (Union, types.UnionType)


# -- mistakes ----------------------------------------------------------------------------------------------------------


# -- tables and components ---------------------------------------------------------------------------------------------
@define(eq=False)
class Structure:
    """Convert plain values to attrs objects, with components as choices.

    A relative path starts in ``folder``, the directory of the file; one from the command line in the working directory.
    """

    catalogue: Catalogue
    folder: Path = field(factory=Path.cwd)

    def read(self, value: Any, type_: Any) -> Any:
        """Convert a value to a type."""
        origin = get_origin(type_) or type_
        if type_ is Any:
            return value
        if type_ in _PLAIN and not (type_ is Criterion and isinstance(value, dict)):
            return self.plain(value, type_)
        if kind_of(type_) is not None:
            return self.component(value, type_)
        if origin in _UNIONS:
            return self.union(value, type_)
        if isinstance(value, dict) and value.keys() == {OWN}:
            return self.load(OWN, _name(value[OWN], OWN))
        if attrs.has(type_):
            return self.record(value, type_)
        if origin in _TABLES:
            return self.mapping(value, type_)
        if origin in _LISTS:
            return self.sequence(value, type_)
        if origin is Literal:
            return _literal(value, type_)
        raise Mismatch(f"{getattr(type_, '__name__', type_)}, which TOML cannot express: set it from Python", value)

    def plain(self, value: Any, type_: Any) -> Any:
        """Convert a plain value: to itself, a path, or what its text parses to."""
        accepted, name = _PLAIN[type_]
        if not isinstance(value, accepted) or (isinstance(value, bool) and type_ is not bool):
            raise Mismatch(name, value)
        if type_ is Criterion:
            return Criterion.parse(value).bound(self.load)
        return self.path(value) if type_ is Path else getattr(type_, "parse", type_)(value)

    def path(self, text: str) -> Path:
        """Return an absolute path, with ``~`` expanded, and without ``..``."""
        found = (Path.cwd() if isinstance(text, Override) else self.folder) / Path(text).expanduser()
        return found.resolve() if os.pardir in found.parts else found

    def filled(self, cls: Any, table: Mapping[str, Any], more: str = "") -> dict[str, Any]:
        """Return the settings of a class in a table, with defaults for those that it omits.

        ``more`` is added to the message for a missing setting; it says where the settings are documented.
        """
        known, faults, values = settings(cls), Faults(), dict[str, Any]()
        for name in table.keys() - known.keys():
            with faults.at(name):
                raise Unknown(name, known)
        for name, setting in known.items():
            with faults.at(name):
                if name in table:
                    values[name] = self.read(table[name], setting.type)
                elif setting.default is REQUIRED:
                    raise ValueError(f"is missing. Give it {words(setting.type)}.{more}")
                elif _written(setting.default):
                    values[name] = setting.default
        if faults.found:
            explain(cls, values if kind_of(cls) is None else made(values), faults)
        faults.done()
        return values

    def component(self, value: Any, type_: Any) -> Choice[Any]:
        """Return the choice for a name, or for a table with a ``type`` and settings."""
        kind, faults = kind_of(type_) or "", Faults()
        if not isinstance(value, str | dict):
            raise Mismatch(f"the name of {_article(kind)}, or a table with its `type`", value)
        table = {"type": value} if isinstance(value, str) else dict(value)
        key = OWN if OWN in table else "type"
        with faults.at(*([] if isinstance(value, str) else [key])):
            name = _name(table.pop(key, None), kind)
            factory = self.load(key if key == OWN else kind, name)
            if not fulfils(factory, contract(type_)):
                raise ValueError(f"must be of type {contract(type_).__name__} (got {name!r}).")
        faults.done()
        if parts := divided(kind, factory, {key: name}, table, settings(factory)):
            return self._divided(parts, type_)
        more = "" if key == OWN else f" See `sigma components {kind} {name}`."
        full = name if key == OWN else self.catalogue.resolve(kind, name).full_name
        choice = Choice(full, self.filled(factory, table, more), factory, key)
        choice.prepare()  # runs the component's own validators
        return choice

    def _divided(self, parts: dict[str, Any], type_: Any) -> Choice[Any]:
        """Return the choice of a data set in parts; mistakes are reported where the file has the setting."""
        try:
            return self.component(parts, type_)
        except Wrong as wrong:
            found = [(path[1:] if path[:1] == ("dataset",) else path, error) for path, error in wrong.found]
            raise Wrong(found) from None

    def load(self, kind: str, name: str) -> Any:
        """Load a component's object; raises SigmaPluginError if it does not fulfil its contract."""
        thing = self.catalogue.load(kind, name)
        if kind != OWN:
            check_contract(self.catalogue.resolve(kind, name), thing)
        return thing

    def record(self, table: Any, cls: Any) -> Any:
        """Return an attrs object that is not a component; settings of its ``slot``, if any, may be next to it."""
        if not isinstance(table, dict):
            raise Mismatch("a table", table)
        known, slot = settings(cls), getattr(cls, "slot", "")
        if not slot:
            return construct(cls, self.filled(cls, table))
        given, faults = table.get(slot), Faults()
        inner = given if isinstance(given, dict) else {} if given is None else {"type": given}
        rest = {name: value for name, value in table.items() if name not in known}
        own = {name: value for name, value in table.items() if name in known}
        for name in rest.keys() & inner.keys():
            with faults.at(name):
                raise ValueError(f"is given twice, here and in `{slot}`.")
        try:
            read = construct(cls, self.filled(cls, {**own, slot: {**rest, **inner}}))
        except Wrong as wrong:
            for path, error in wrong.found:
                faults.found.append(_beside(path, error, given, rest, known) if path[0] == slot else (path, error))
        faults.done()
        return read

    def sequence(self, value: Any, type_: Any) -> list[Any] | tuple[Any, ...]:
        """Convert to a list or a tuple."""
        if not isinstance(value, list):
            raise Mismatch("a list", value)
        kinds, is_tuple = get_args(type_), get_origin(type_) is tuple
        kinds = kinds if is_tuple and kinds[-1] is not Ellipsis else kinds[:1] * len(value)
        if len(value) != len(kinds):
            raise Mismatch(f"a list of {len(kinds)} values", value)
        return (tuple if is_tuple else list)(self._each(enumerate(value), kinds).values())

    def mapping(self, value: Any, type_: Any) -> dict[Any, Any]:
        """Convert a table whose values have one type; a list of components is named as in Python."""
        inner = get_args(type_)[1]
        if isinstance(value, list) and kind_of(inner) not in (None, *NAMED):
            return dict(zip(component_names(value), self.sequence(value, list[inner]), strict=True))  # type: ignore[valid-type]
        if not isinstance(value, dict):
            raise Mismatch("a table with a name for each", value)
        if len(value) > MOST and kind_of(inner) in NAMED:
            raise ValueError(f"{MOST:,} {kind_of(inner)}s are allowed at most (got {len(value):,}). Leave some out.")
        return self._each(value.items(), get_args(type_)[1:] * len(value))

    def _each(self, items: Iterable[tuple[Any, Any]], kinds: tuple[Any, ...]) -> dict[Any, Any]:
        faults, values = Faults(), dict[Any, Any]()
        for (key, value), kind in zip(items, kinds, strict=True):
            with faults.at(key):
                values[key] = self.read(value, kind)
        faults.done()
        return values

    def union(self, value: Any, type_: Any) -> Any:
        """Convert a value to the first type of a union that accepts it."""
        deeper: Exception | None = None
        expected, hint = [], ""
        for member in get_args(type_):
            if member is not NoneType:
                try:
                    return self.read(value, member)
                except Mismatch as error:
                    expected.append(error.expected)
                    hint = hint or error.hint
                except (Wrong, ValueError, SigmaError) as error:
                    deeper = deeper or error
        raise deeper or Mismatch(" or ".join(expected), value, hint)


def _beside(
    path: Place, error: Exception, given: Any, rest: Mapping[str, Any], known: Mapping[str, Any]
) -> tuple[Place, Exception]:
    """Return a mistake with its path in the file: settings next to the slot are not in the slot's table."""
    if isinstance(error, Unknown) and path[-1] in rest:
        error = Unknown(error.key, [*known, *error.known])
    if len(path) == 1 or (isinstance(given, dict) and path[1] not in rest):
        return path, error
    return path[:1] if path[1:] == ("type",) else path[1:], error


def _written(default: Any) -> bool:
    try:
        return default is not None and plain(default) is not None
    except TypeError:  # an object that TOML cannot express: left to the component's own default
        return False


def _name(name: Any, kind: str) -> str:
    if name is None:
        raise ValueError(f"is missing. Give it the name of {_article(kind)}; `sigma components {kind}` lists them.")
    if not isinstance(name, str):
        raise Mismatch(f"the name of {_article(kind)}", name)
    return name


# -- types -------------------------------------------------------------------------------------------------------------
def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def words(type_: Any) -> str:
    """Describe a type in words, for messages: ``a number``, ``a table``, ``"keep" or "drop"``."""
    if type_ in _PLAIN:
        return _PLAIN[type_][1]
    origin = get_origin(type_) or type_
    if origin is Literal:
        return " or ".join(map(shown, get_args(type_)))
    if origin in _UNIONS:
        return " or ".join(words(member) for member in get_args(type_) if member is not NoneType)
    if (kind := kind_of(type_)) is not None:
        return _article(kind)
    if attrs.has(type_) or origin in _TABLES:
        return "a table"
    return "a list" if origin in _LISTS else "a value"


def _literal(value: Any, type_: Any) -> Any:
    allowed = get_args(type_)
    if value not in allowed or isinstance(value, bool):
        hint = near(value, [a for a in allowed if isinstance(a, str)]) if isinstance(value, str) else ""
        raise Mismatch(words(type_), value, hint)
    return value
