"""The paths of one's own code, by which a file names classes, functions and objects of modules."""

from __future__ import annotations

import sys
from operator import attrgetter
from types import FunctionType
from typing import Any

from sigma_kernel.plugins.own import FORM, HARMLESS, home


def path_of(thing: Any) -> str | None:
    """Return the path by which a class, a function, or an object of its class's module can be imported, else None."""
    paths = []
    for module in (*HARMLESS, home(thing)):
        there = vars(sys.modules[module]) if module in sys.modules else {}
        paths += [f"{module}:{name}" for name, value in there.items() if value is thing]
    paths += [f"{thing.__module__}:{thing.__qualname__}"] if isinstance(thing, type | FunctionType) else []
    return next((path for path in paths if _leads(path, thing)), None)


def _leads(path: str, thing: Any) -> bool:
    """Return whether another process finds an object by its path."""
    module, _, name = path.partition(":")
    try:
        return bool(FORM.fullmatch(path)) and module != "__main__" and attrgetter(name)(sys.modules[module]) is thing
    except (AttributeError, KeyError):  # defined in a function, or of a module that was removed
        return False
