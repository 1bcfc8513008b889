"""Look up the components of plugins by kind and name, and import them.

A component may be missing because its plugin is not installed, disabled or broken; the error says which.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, NoReturn

from sigma_kernel import __version__
from sigma_kernel.errors import (
    SigmaConfigError,
    SigmaPluginError,
    introduce_errors,
    name_components,
    suggest_name,
    warn,
)
from sigma_kernel.plugins import rooms
from sigma_kernel.plugins.discovery import Plugin, find, list_installed, normal, reason, requires
from sigma_kernel.plugins.own import TRUST, import_object
from sigma_kernel.plugins.specs import Component
from sigma_kernel.scanning import OWN

DISABLE = "SIGMA_DISABLE_PLUGINS"  # names of distributions, separated by commas
BACKEND = "SIGMA_BACKEND"  # name of the default backend
TIERS = {"type": "tiers", "first": "first-iterations"}  # the roles of backends that begin before another is compiled
_RELEASE = re.compile(r"[a-z0-9][a-z0-9-]*+==\w[\w.!+-]{0,50}")
DEFAULT = "default"  # in place of a distribution: the name after it is a role


# -- looking up --------------------------------------------------------------------------------------------------------
class Catalogue:
    """The plugins of a process, and the components of ready ones.

    If several offer a name, it means the component of the first in ``prefer``, names of distributions, or else, with a
    warning, that of the default set.
    """

    def __init__(
        self,
        plugins: tuple[Plugin, ...],
        prefer: Iterable[str] = (),
        trusted: Iterable[str] = (),
        recorded: Mapping[str, str] | None = None,
    ) -> None:
        self.plugins = plugins
        self.prefer = tuple(map(normal, prefer))
        self.trusted = frozenset(trusted)  # packages and modules of people's own code
        self.recorded = dict(recorded or {})  # versions of the plugins that a run has used

    def trusting(self, names: Iterable[str]) -> Catalogue:
        """Return the catalogue that also imports own code of these packages or modules, named in full; or of one."""
        every = {*self.trusted, *([names] if isinstance(names, str) else names)}
        return type(self)(self.plugins, self.prefer, every, self.recorded)

    def recalling(self, versions: Mapping[str, str]) -> Catalogue:
        """Return the catalogue whose errors name the versions of plugins that a run has used and that are gone.

        Names and versions that are none, as in a run folder of somebody else, are left out.
        """
        used = {name: version for name, version in versions.items() if _RELEASE.fullmatch(f"{name}=={version}")}
        return type(self)(self.plugins, self.prefer, self.trusted, {**self.recorded, **used})

    def preferring(self, distributions: Iterable[str]) -> Catalogue:
        """Return the catalogue that prefers these distributions, then their requirements.

        Raises SigmaConfigError for an unknown one.
        """
        names, chosen = rooms.offers().keys() | {plugin.name for plugin in self.plugins}, [*map(normal, distributions)]
        for name in chosen:
            if name not in names:
                hint = self._remedy(name) or suggest_name(name, names) or " See `sigma plugins`."
                raise SigmaConfigError(f"no plugin is called {name!r}.{hint}")
        first = chosen + [dist for name in chosen for dist in requires(name)]
        return type(self)(self.plugins, first, self.trusted, self.recorded)

    def __repr__(self) -> str:
        return f"Catalogue({len(self.plugins)} plugins, {len(list(self.components()))} components)"

    def components(self, kind: str | None = None) -> Iterator[Component]:
        """Return the components that are ready to use, of one kind or of all."""
        return (c for plugin in self.plugins for c in plugin.components if kind in (None, c.kind))

    def plugin(self, name: str) -> Plugin:
        """Return a plugin by the name of its distribution; raises SigmaPluginError if it is not installed."""
        by_name = {normal(plugin.name): plugin for plugin in self.plugins}
        if normal(name) not in by_name:
            hint = suggest_name(name, [plugin.name for plugin in self.plugins])
            raise SigmaPluginError(f"plugin {name!r}: not installed.{hint} `sigma plugins` lists them.")
        return by_name[normal(name)]

    def call(self, name: str, spec: str, **given: Any) -> list[Any]:
        """Return what the implementations of a hookspec in a plugin return, those of its module.

        Raises SigmaPluginError if the plugin is not ready, and SigmaComponentError for an exception of its code.
        """
        plugin = self.plugin(name)
        if plugin.state != "ready":
            raise SigmaPluginError(f"plugin {name!r}: {_absence(plugin, 'takes part in this run')}")
        if plugin.hooks is None:  # it was added by hand
            return []
        caller = getattr(plugin.hooks, spec)
        for implementation in caller.get_hookimpls():
            with introduce_errors(f"plugin {plugin.name}", implementation.function):
                return list(caller(**given))
        return []

    def resolve(self, kind: str, name: str, what: str = "") -> Component:
        """Return the component called ``name`` or ``distribution:name``; ``what`` it is, by default its kind.

        ``default:role`` is the component that is the default for a role: of a preferred distribution, or else of the
        project's own rooms, or else of the only one that offers it.
        A short name that a plugin of the default set and another one offer is that of the default set, with a warning.
        Raises SigmaConfigError for an unknown or ambiguous name, and SigmaPluginError if the plugin that offers it is
        missing, disabled or quarantined.
        """
        distribution, _, short = name.rpartition(":")
        wanted = normal(distribution)
        candidates = [*_find(self, kind, name)]
        if len(candidates) > 1:
            own = wanted == DEFAULT or kind == "command"  # short names in journals are the project's
            prefer = (*self.prefer, *rooms.offers()) if own else self.prefer
            candidates = [c for wanted in prefer for c in candidates if c.distribution == wanted][:1] or candidates
        if not candidates:
            self._refuse(kind, short, wanted, what or kind)
        return candidates[0] if len(candidates) == 1 else _settle(f"{what or kind} {name!r}", candidates)

    def offers(self, kind: str, name: str) -> bool:
        """Return whether a plugin that is ready offers a component of this name, or for this ``default:role``."""
        return bool(_find(self, kind, name))

    def default_backend(self) -> str:
        """Return the name of the backend that is used if none is named.

        It is the value of SIGMA_BACKEND, or else the backend of the highest preference that can be imported, or
        the reference. A warning says why another cannot be imported.
        """
        if chosen := os.environ.get(BACKEND):
            return self.resolve("backend", chosen, f"{BACKEND}: backend").full_name
        wanted = [component for component in self.components("backend") if component.preference > 0]
        for component in sorted(wanted, key=lambda component: (-component.preference, component.full_name)):
            try:
                load(component)
                return component.full_name
            except SigmaPluginError as error:
                warnings.warn(str(error), stacklevel=2)
        return rooms.reference()

    def default_computation(self) -> str | dict[str, str]:
        """Return the default backend as a setting: tiered, where it compiles and another one can compute meanwhile.

        One that SIGMA_BACKEND names computes alone.
        """
        name, roles = self.default_backend(), {key: f"{DEFAULT}:{role}" for key, role in TIERS.items()}
        compiles = self.resolve("backend", name).default_for == "compilation"
        if os.environ.get(BACKEND) or not compiles or not all(self.offers("backend", role) for role in roles.values()):
            return name
        return {**roles, "then": name}

    def load(self, kind: str, name: str) -> object:
        """Import a component and return its object; raises SigmaPluginError if that fails.

        The kind ``python`` is for own code: its name is a path ``package.module:Object``, of a trusted package.
        """
        if kind == OWN:
            return import_object(name, self.trusted)
        component = self.resolve(kind, name)
        if warning := self.plugin(component.distribution).warning:
            warnings.warn(f"{component.distribution}: {warning}", stacklevel=2)
        return load(component)

    def versions(self) -> dict[str, str]:
        """Return the versions of the kernel, and of the plugins of which this process has imported a component."""
        used = (p for p in self.plugins if any(c.path.partition(":")[0] in sys.modules for c in p.components))
        return {"sigma-kernel": __version__} | {plugin.name: plugin.version for plugin in used}

    def _install(self, distribution: str) -> str:
        return rooms.install(distribution, version=self.recorded.get(distribution, ""))

    def _remedy(self, distribution: str) -> str:
        """Return how to install a plugin that the run has used; empty if it has used none of this name."""
        used = distribution in self.recorded
        return f" The run used it. If you trust it: {self._install(distribution)}" if used else ""

    def _refuse(self, kind: str, name: str, distribution: str, what: str) -> NoReturn:
        here = {plugin.name: plugin for plugin in self.plugins}
        if distribution == DEFAULT:
            distribution, name = rooms.default(kind, name)
        distribution, name = rooms.current_name(kind, distribution, name)
        if distribution and distribution not in here and distribution not in rooms.offers():
            hint = self._remedy(distribution) or suggest_name(distribution, here, "Installed are:")
            raise SigmaPluginError(f"{what} {name!r}: no installed plugin is called {distribution!r}.{hint}")
        for offer in [distribution] if distribution else rooms.offering(kind, name):
            if offer not in here:
                but = "offers it, but is" if offer in rooms.offering(kind, name) else "is"
                raise SigmaPluginError(f"{what} {name!r}: {offer} {but} not installed. {self._install(offer)}")
            if here[offer].state != "ready":
                raise SigmaPluginError(f"{what} {name!r}: {_absence(here[offer])}")
        names = rooms.names(kind) | {component.name for component in self.components(kind)}
        hint = suggest_name(name, names) or f" `sigma components {kind}` lists them."
        broken = ", ".join(plugin.name for plugin in self.plugins if plugin.reason)
        also = f" Broken plugins that may offer it: {broken}; see `sigma plugins`." if broken else ""
        raise SigmaConfigError(f"{what} {name!r}: no plugin offers it.{hint}{also}")


@lru_cache(1024)  # a network resolves one for each layer
def _find(where: Catalogue, kind: str, name: str) -> tuple[Component, ...]:
    distribution, _, short = name.rpartition(":")
    wanted = normal(distribution)
    if wanted == DEFAULT:
        return tuple(c for c in where.components(kind) if c.default_for == short)
    candidates = (c for c in where.components(kind) if c.name == short and wanted in ("", c.distribution))
    return (*candidates,) or tuple(c for c in where.components(kind) if c.formerly == f"{wanted}:{short}")


def _settle(what: str, candidates: list[Component]) -> Component:
    """Return the component of the default set, and warn of the others; raise SigmaConfigError if there is none."""
    own = [c for c in candidates if c.distribution in rooms.default_set()]
    both = f"{what}: {' and '.join(c.distribution for c in candidates)} both offer it."
    remedy = f"Write {' or '.join(repr(c.full_name) for c in candidates)}, prefer one ([run] prefer = [...])"
    if len(own) != 1:
        raise SigmaConfigError(f"{both} {remedy}, or disable one (--no-plugin).")
    warn(f"{both} It means {own[0].full_name!r}, which is in the default set. {remedy}, or disable the other.")
    return own[0]


def load(component: Component) -> Any:
    """Import the object of a component; any exception becomes a SigmaPluginError with a remedy."""
    module, _, attribute = component.path.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except BaseException as error:  # also SystemExit: a plugin must not end the command
        if type(error) is KeyboardInterrupt:
            raise
        where = f"{component.kind} {component.full_name!r}: {component.path}"
        missing = normal(error.name or "") if isinstance(error, ModuleNotFoundError) else ""
        remedy = f"Reinstall it: {rooms.install(component.distribution, '--force-reinstall')}"
        if missing in requires(component.distribution, extras=True):
            remedy = f"It requires {missing}: {rooms.install(missing)}"
        raise SigmaPluginError(f"{where} cannot be loaded ({reason(error)}). {remedy}") from error


class Lowerings:
    """The kernels of plugins' ops for one backend, looked up by op.

    Only the distribution that defines an op can provide its kernel, so that installing a plugin does not change a run.
    """

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def get(self, op: str) -> Any:
        """Return the kernel of an op (``distribution:name``), or None."""
        offered = catalogue().components("lowering") if ":" in op else ()
        return next((load(component) for component in offered if component.full_name == f"{op}.{self.backend}"), None)

    def __contains__(self, op: object) -> bool:
        """Return whether an op has a kernel."""
        return self.get(str(op)) is not None


def _absence(plugin: Plugin, does: str = "") -> str:
    if plugin.disabled:
        return f"{plugin.name} {does or 'offers it'}, but is disabled by --no-plugin or {DISABLE}."
    remedy = f"See `sigma plugins show {plugin.name}`."
    return f"{plugin.name} {does or 'should offer it'}, but is broken ({plugin.reason}). {remedy}"


def catalogue(*only: str) -> Catalogue:
    """Return the catalogue of this process, without the plugins named in SIGMA_DISABLE_PLUGINS.

    If it is to have ``only`` some distributions, no other is imported. Own code of the packages and modules named in
    SIGMA_TRUST is trusted.
    """
    trusted = map(str.strip, os.environ.get(TRUST, "").split(","))
    return _catalogue(list_disabled(), only).trusting(filter(None, trusted))


def list_disabled() -> tuple[str, ...]:
    """Return the normalised names of the distributions in SIGMA_DISABLE_PLUGINS."""
    return tuple(normal(name.strip()) for name in os.environ.get(DISABLE, "").split(",") if name.strip())


@cache
def _catalogue(left_out: tuple[str, ...], only: tuple[str, ...]) -> Catalogue:
    result = Catalogue(find(left_out, only))
    name_components(result.components())
    names = list_installed() if left_out else ()
    for name in left_out:
        if name not in names:
            warnings.warn(
                f"{DISABLE}: no installed plugin is called {name!r}.{suggest_name(name, names)}", stacklevel=3
            )
    return result
