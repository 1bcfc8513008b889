"""Import optional libraries, which a feature needs and the kernel does not."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sigma_kernel.errors import SigmaPluginError


def optional(what: str, *modules: str) -> Any:
    """Import and return the first of these modules that is installed; ``what`` needs it.

    Raises SigmaPluginError, naming their distributions, if none is.
    """
    for module in modules:
        try:
            return import_module(module)
        except ImportError as error:
            reason = error
    names = " or ".join(module.partition(".")[0] for module in modules)
    raise SigmaPluginError(f"{what}: needs {names} ({reason}). Install it: pip install {names.partition(' ')[0]}.")
