"""Lazy exports (PEP 562): the public names of a package, each imported when it is first used.

Type checkers and editors read the same names from the package's ``__init__.pyi``, which is generated::

    python -m sigma_testing.generate
"""

from __future__ import annotations

import sys
from importlib import import_module

GENERATE = "python -m sigma_testing.generate"
HEADER = f"# Generated: {GENERATE}\n# ruff: noqa\n"  # of the stubs
TYPE_CHECKING = False  # as type checkers know it, and without typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Protocol

    class Record(Protocol):
        """A component, as far as its path."""

        @property
        def path(self) -> str:
            """Return ``package.module:Object``."""


class Exports:
    """The ``__getattr__`` of a package: where each public name is defined, and its import on first use."""

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        self.package = package
        self.places = places

    def __call__(self, name: str) -> Any:
        """Return a public name's object; raises AttributeError for any other name, with the nearest one."""
        if name not in self.places:
            errors = import_module("sigma_kernel.errors")  # takes longer to import than the names themselves
            hint = "" if name.startswith("__") else errors.suggest_name(name, self.places)
            raise AttributeError(f"module {self.package!r} has no attribute {name!r}.{hint}")
        if self.places[name] == self.package:  # a module of its own
            return import_module(f"{self.package}.{name}")
        value = getattr(__import__(self.places[name], fromlist=[name]), name)  # as ``from place import name``
        setattr(sys.modules[self.package], name, value)
        return value


def lazy_exports(
    package: str, modules: Mapping[str, str] | None = None, components: Iterable[Record] = ()
) -> tuple[Exports, Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    It exports the names listed for each of its modules, separated by blanks, and the objects of the components. Those
    listed for the module ``""`` are modules of the package itself.
    """
    rows = (modules or {}).items()
    places = {name: f"{package}.{module}".rstrip(".") for module, names in rows for name in names.split()}
    places.update({name: module for module, _, name in (component.path.partition(":") for component in components)})
    names = sorted(places)
    return Exports(package, places), lambda: names, names
