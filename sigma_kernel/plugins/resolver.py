"""Resolve settings, which are names, tables or objects, to components."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from inspect import Parameter as Argument
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from attrs import evolve, fields, frozen, has

from sigma_kernel.clock import TimeStep
from sigma_kernel.contracts.storing import Store
from sigma_kernel.criteria import Criterion
from sigma_kernel.errors import SigmaConfigError, SigmaError, refuse_unknown
from sigma_kernel.network.tracing import Resolve
from sigma_kernel.plugins.catalogue import Catalogue
from sigma_kernel.plugins.components import component_names, divided, kind_of
from sigma_kernel.plugins.loading import words
from sigma_kernel.scanning import OWN
from sigma_kernel.settings import is_table, phrase, signature
from sigma_kernel.settings.mistakes import Wrong, dotted
from sigma_kernel.settings.records import construct

STORE = "default:run"  # the store of runs
# types that a text stands for, in tables as in files
PARSED: dict[Any, Callable[[str], Any]] = {TimeStep: TimeStep.parse, Criterion: Criterion.parse, Path: Path}


@frozen(eq=False, repr=False)
class Resolver:
    """Resolve names and tables to components of a catalogue."""

    catalogue: Catalogue

    def __call__(self, kind: str, thing: Any) -> Any:
        """Return the component for a name, a table ``{"type": name, setting: value}``, a class or an object.

        Names and tables in its settings are resolved, too, if their types are contracts. For the name of a layer or a
        criterion, the result is its class, since the text form provides its settings.
        """
        if thing is None and kind == "backend":
            thing = self.catalogue.default_backend()
        if isinstance(thing, str):
            called = kind in ("layer", "criterion", "command", OWN)
            return self.catalogue.load(kind, thing) if called else self._made(kind, thing, {})
        if isinstance(thing, Mapping) and not has(type(thing)):
            kind, key = (OWN, OWN) if OWN in thing else (kind, "type")
            if key not in thing:
                raise SigmaConfigError(f"{kind}: {dict(thing)!r} has no type. Add its 'type'.")
            return self._made(kind, str(thing[key]), {name: value for name, value in thing.items() if name != key})
        return self._new(f"{kind} {thing.__name__}", thing, {}) if isinstance(thing, type) else self._complete(thing)

    def in_full(self, kind: str, thing: str | Mapping[str, Any]) -> Any:
        """Return a name, or a table, with the full name ``distribution:name``."""
        if isinstance(thing, str):
            return self.catalogue.resolve(kind, thing).full_name
        return thing if OWN in thing else {**thing, "type": self.in_full(kind, thing["type"])}

    def _made(self, kind: str, name: str, settings: Mapping[str, Any]) -> Any:
        found: Any = self.catalogue.load(kind, name)
        if isinstance(found, type):
            parts = divided(kind, found, {"type": name}, settings, signature(found).parameters)
            more = "" if kind == OWN else f" See `sigma components {kind} {name}`."
            return self(kind, parts) if parts else self._new(f"{kind} {name!r}", found, settings, more)
        refuse_unknown(f"{kind} {name!r}", settings, ())
        return found

    def _new(self, what: str, made: type, settings: Mapping[str, Any], more: str = "") -> Any:
        every = signature(made).parameters.values()
        known = {p.name: p.default for p in every if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        refuse_unknown(what, () if any(p.kind is p.VAR_KEYWORD for p in every) else settings, known)
        for name, default in known.items():
            if name not in settings and default is Argument.empty:
                wanted = words(_types(made).get(name, Any))
                raise SigmaConfigError(f"{what}: {name}: is missing. Give it {wanted}.{more}")
        try:
            return construct(made, {**settings, **self._within(f"{what}: ", made, settings)})
        except Wrong as wrong:
            path, error = wrong.found[0]
            kind = type(error) if isinstance(error, SigmaError) else SigmaConfigError
            raise kind(f"{made.__name__}.{dotted(path)}: {phrase(error)}") from error
        except (TypeError, ValueError) as error:
            raise SigmaConfigError(f"{what}: {error}. Check its settings.") from error

    # -- components among settings -------------------------------------------------------------------------------------
    def _complete(self, thing: Any) -> Any:
        """Return an object, or a copy of it with names and tables in its settings resolved."""
        if not has(type(thing)):
            return thing
        settings = {f.alias: getattr(thing, f.name) for f in fields(type(thing)) if f.init}
        made = self._within(f"{type(thing).__name__}.", type(thing), settings)
        return evolve(thing, **made) if made else thing

    def _within(self, what: str, owner: type, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings that contain names or tables of components, with these resolved."""
        types = _types(owner)
        made = {name: self._read(f"{what}{name}", value, types.get(name)) for name, value in settings.items()}
        return {name: value for name, value in made.items() if value is not settings[name]}

    def _read(self, where: str, value: Any, type_: Any) -> Any:
        """Resolve a value by the type of its setting; the same object is returned if nothing in it is resolved."""
        inner = get_args(type_)
        if type_ in PARSED and isinstance(value, str):
            value = PARSED[type_](value)
        if isinstance(value, Criterion):
            return value.bound(self)
        if (kind := kind_of(type_)) is not None:
            return resolve_component(self, where, kind, (type_, Mapping) if kind == "dataset" else type_, value)
        if isinstance(value, Mapping) and value.keys() == {OWN}:
            return self(OWN, value[OWN])
        if get_origin(type_) in (Union, UnionType):
            wanted = [t for t in inner if (isinstance(value, (t, str, Mapping)) if kind_of(t) else t in PARSED)]
            plain = not wanted or (isinstance(value, str) and str in inner)
            return value if plain else self._read(where, value, wanted[0])
        if has(type_) and isinstance(value, Mapping):
            return self._new(where, type_, value)
        if get_origin(type_) is Mapping and (kind := kind_of(inner[-1])) is not None:
            named = resolve_components(self, where, kind, inner[-1], value)
            return value if isinstance(value, Mapping) and all(named.get(k) is x for k, x in value.items()) else named
        if isinstance(value, Mapping) and inner:
            table = {key: self._read(f"{where}.{key}", one, inner[-1]) for key, one in value.items()}
            return table if any(table[key] is not value[key] for key in table) else value
        if isinstance(value, list | tuple) and inner:
            row = [self._read(f"{where}[{i}]", one, inner[0]) for i, one in enumerate(value)]
            same = all(new is old for new, old in zip(row, value, strict=True))
            kind_ = tuple if get_origin(type_) is tuple else type(value)  # the journal and files have lists only
            return value if same and isinstance(value, kind_) else kind_(row)
        return value


@cache
def _types(owner: type) -> dict[str, Any]:
    """Return the types of settings by name; none if they are not available at run time."""
    try:
        hints = get_type_hints(owner) if has(owner) else {}
    except (NameError, AttributeError, TypeError):  # names imported for type checkers only
        return {}
    return {f.alias: hints[f.name] for f in fields(owner) if f.init} if hints else {}


def resolve_component(resolve: Resolve, where: str, kind: str, contract: type | tuple[type, ...], chosen: Any) -> Any:
    """Resolve one setting to a component; raise SigmaConfigError if it is not of this kind."""
    found = resolve(kind, chosen)
    if not isinstance(found, contract):
        wanted = f"of the kind {kind}: an object, a name, or a table with its 'type'"
        raise SigmaConfigError(f"{where}: must be {wanted} (got {type(found).__name__}).")
    return found


def resolve_components(resolve: Resolve, where: str, kind: str, contract: type, chosen: Any) -> dict[str, Any]:
    """Resolve several components by name; those of a list are named by their type, duplicates by index as well."""
    if isinstance(chosen, Mapping) and not is_table(chosen):
        return {
            name: resolve_component(resolve, f"{where}.{name}", kind, contract, thing) for name, thing in chosen.items()
        }
    every = chosen if isinstance(chosen, list | tuple) else [chosen]
    made = [resolve_component(resolve, where, kind, contract, thing) for thing in every]
    return dict(zip(component_names(every), made, strict=True))


def default_store(catalogue: Catalogue) -> Store:
    """Return the store of runs; raise SigmaPluginError if no plugin offers one."""
    return Resolver(catalogue)("store", STORE)  # type: ignore[no-any-return]
