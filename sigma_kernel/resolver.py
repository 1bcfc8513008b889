"""From what a setting says, a name, a table or an object, to the object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import Parameter as Argument, signature
from typing import Any

from attrs import frozen

from sigma_kernel.errors import SigmaConfigError, near
from sigma_kernel.plugins import Catalogue


@frozen(eq=False, repr=False)
class Resolver:
    """Turn what a setting says into an object."""

    catalogue: Catalogue

    def __call__(self, kind: str, thing: Any) -> Any:
        """Return the object: names are looked up, tables are ``{"type": name, setting: value}``.

        The name of a layer stands for its class: layers are made where their settings are written.
        """
        if isinstance(thing, str):
            return self.catalogue.load(kind, thing) if kind == "layer" else self._made(kind, thing, {})
        if isinstance(thing, Mapping):
            if "type" not in thing:
                raise SigmaConfigError(f"{kind}: {dict(thing)!r} names none. Add its 'type'.")
            return self._made(kind, str(thing["type"]), {key: value for key, value in thing.items() if key != "type"})
        return _new(f"{kind} {thing.__name__}", thing, {}) if isinstance(thing, type) else thing

    def in_full(self, kind: str, thing: str | Mapping[str, Any]) -> Any:
        """Return a name, or a table, with the full name ``distribution:name``, which stays unambiguous."""
        if isinstance(thing, str):
            return self.catalogue.resolve(kind, thing).full_name
        return {**thing, "type": self.in_full(kind, thing["type"])}

    def _made(self, kind: str, name: str, settings: Mapping[str, Any]) -> Any:
        found: Any = self.catalogue.load(kind, name)
        if isinstance(found, type):
            return _new(f"{kind} {name!r}", found, settings)
        refuse_unknown(f"{kind} {name!r}", settings, ())
        return found


def _new(what: str, made: type, settings: Mapping[str, Any]) -> Any:
    every = signature(made).parameters.values()
    known = {p.name: p.default for p in every if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    refuse_unknown(what, () if any(p.kind is p.VAR_KEYWORD for p in every) else settings, known)
    for name, default in known.items():
        if name not in settings and default is Argument.empty:
            raise SigmaConfigError(f"{what}: needs {name!r}. Give a table: {{'type': ..., {name!r}: ...}}.")
    try:
        return made(**settings)
    except (TypeError, ValueError) as error:
        raise SigmaConfigError(f"{what}: {error}. Check its settings.") from error


def refuse_unknown(what: str, settings: Iterable[str], known: Iterable[str]) -> None:
    """Raise SigmaConfigError for a setting that is not among those known, with what is near."""
    for name in settings:
        if name not in known:
            hint = near(name, known) or f" It has {', '.join(known) or 'none'}."
            raise SigmaConfigError(f"{what}: has no setting {name!r}.{hint}")
