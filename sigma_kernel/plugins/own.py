"""Import objects of people's own code, which no plugin offers: ``python = "package.module:Object"``.

Files and run folders of strangers name such objects, too, so that nothing is imported unless its package is trusted.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from importlib import import_module
from operator import attrgetter
from types import FunctionType
from typing import Any

from sigma_kernel.errors import SigmaConfigError, SigmaPluginError
from sigma_kernel.plugins.discovery import reason

TRUST = "SIGMA_TRUST"  # names of packages and modules, separated by commas
HARMLESS = frozenset({"sigma_kernel.functions"})  # functions of the graph
FORM = re.compile(r"[A-Za-z_]\w*+(?:\.\w++)*+:[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)*+")


def import_object(path: str, trusted: Collection[str]) -> Any:
    """Import the object of a path ``package.module:Object``.

    Raises SigmaConfigError, and imports nothing, unless its package, or exactly its module, is trusted; also for an
    object that a trusted module took from elsewhere.  Raises SigmaPluginError if the import fails.
    """
    module, _, name = path.partition(":")
    if not FORM.fullmatch(path):
        raise SigmaConfigError(f"python {path!r}: must have the form 'package.module:Object'.")
    _check_trusted(path, module, trusted)
    try:
        thing = attrgetter(name)(import_module(module))
    except BaseException as error:  # also SystemExit
        if type(error) is KeyboardInterrupt:
            raise
        remedy = "Put the directory of its package on PYTHONPATH, or install it."
        raise SigmaPluginError(f"python {path!r}: cannot be imported ({reason(error)}). {remedy}") from error
    harmless = module in HARMLESS and "." not in name and home(thing).startswith("sigma_kernel.")
    _check_trusted(path, module if harmless else home(thing), trusted)
    return thing


def _check_trusted(path: str, module: str, trusted: Collection[str]) -> None:
    package = module.partition(".")[0]
    if module not in HARMLESS and not {module, package} & {*trusted}:
        raise SigmaConfigError(
            f"python {path!r}: is code that no plugin offers, and it is not imported unless you trust its package. If "
            f"you do, pass --trust {package}, or trust=[{package!r}] to load; if it is not installed, PYTHONPATH must "
            "name its directory."
        )


def home(thing: Any) -> str:
    """Return the module that defines a class, a function, or the class of another object."""
    return str(getattr(thing if isinstance(thing, type | FunctionType) else type(thing), "__module__", ""))
