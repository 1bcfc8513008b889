"""Save the settings of a component as plain values, as files of runs have them, and load them again."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from attrs import frozen

from sigma_kernel.clock import TimeStep
from sigma_kernel.criteria import Criterion
from sigma_kernel.errors import SigmaConfigError, SigmaError, error_text
from sigma_kernel.network.architecture import Architecture
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.components import KINDS, kind_of
from sigma_kernel.plugins.dumping import Dumper
from sigma_kernel.plugins.loading import Loader
from sigma_kernel.plugins.paths import path_of
from sigma_kernel.settings.mistakes import Wrong

AS_TEXT = (Architecture, Criterion, TimeStep)
SAVED = {  # kinds that the configuration of a run holds; of a data set and its parts, it may hold the rows instead
    "augmentation", "encoder", "hook", "initialiser", "iterator", "merger", "metric", "modifier", "optimiser",
    "preprocessor", "rewriting", "schedule",
}  # fmt: skip
HOLDS = "A file holds numbers, texts, truth values, paths, times, criteria, components, and lists and tables of these"


class UnnamedError(Exception):
    """A class or a function of a script or a test, which no file can name: no fault of the component."""


@frozen
class NamedDumper(Dumper):
    """Dump values; raise UnnamedError for what is defined where no other process can import it."""

    def dump(self, value: Any) -> Any:
        """Return a value as tables, lists, numbers and strings."""
        if not isinstance(value, AS_TEXT):
            thing: Any = type(value) if kind_of(type(value)) else value
            if callable(thing) and self.find_record(thing) is None and path_of(thing) is None:
                raise UnnamedError(f"{thing!r}")
        return Dumper.dump(self, value)


def find_unsaved(component: Any) -> str:
    """Return why the settings of a component are not the same after they were saved and loaded; empty if they are.

    Nothing is compared if runs do not save such components in tables, or if it needs what has no name.
    """
    cls: Any = type(component)
    if kind_of(cls) not in SAVED or not attrs.has(cls):
        return ""
    dumper, given = NamedDumper(catalogue(), str), _settings(component)
    try:
        dumper.dump(component)
    except UnnamedError:
        return ""
    except SigmaConfigError as error:
        which = [f"{name} = {value!r:.60}" for name, value in given.items() if not _is_dumped(dumper, value)]
        return f"{', '.join(which) or cls.__name__} cannot be saved ({error}). {HOLDS}"
    return _compare(dumper, component, given)


def _compare(dumper: Dumper, component: Any, given: Mapping[str, Any]) -> str:
    """Return which settings are others once their table was loaded, or why it cannot be."""
    kind, table = str(kind_of(type(component))), dumper.table(component)
    contract = next(cls for cls, name in KINDS.items() if name == kind and isinstance(component, cls))
    plugins = dumper.catalogue.trusting(name.partition(".")[0] for name in [*sys.modules])
    try:
        loaded = _settings(Loader(plugins).load_component(table, kind, contract))
    except (Wrong, SigmaError, ValueError, TypeError) as error:
        return f"it cannot be loaded from {table!r:.200} ({error_text(error)}). {HOLDS}"
    other = [f"{n} = {x!r:.60} is loaded as {loaded.get(n)!r:.60}" for n, x in given.items() if not same(x, loaded[n])]
    return f"{', '.join(other)}. Convert it, as with field(converter=...)" if other else ""


def _settings(component: Any) -> dict[str, Any]:
    """Return the settings of a component."""
    return {f.name: getattr(component, f.name, None) for f in attrs.fields(type(component)) if f.init}


def _is_dumped(dumper: Dumper, value: Any) -> bool:
    try:
        dumper.dump(value)
    except SigmaConfigError:
        return False
    return True


def same(one: Any, other: Any) -> bool:
    """Return whether two values of a setting are the same; lists and tuples may take the place of each other."""
    if isinstance(one, AS_TEXT):
        return str(one) == str(other)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return type(one) is type(other) and np.array_equal(one, other)
    if isinstance(one, Mapping):
        return isinstance(other, Mapping) and one.keys() == other.keys() and all(same(one[n], other[n]) for n in one)
    if isinstance(one, list | tuple):
        alike = isinstance(other, list | tuple) and len(one) == len(other)
        return alike and all(same(*pair) for pair in zip(one, other, strict=True))
    if attrs.has(type(one)):
        return type(one) is type(other) and same(_settings(one), _settings(other))
    return bool(one == other or (one != one and other != other))  # NaN, too
