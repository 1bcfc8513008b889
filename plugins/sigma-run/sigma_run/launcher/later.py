"""Import functions of the kernel lazily, when a command first calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sigma_kernel.plugins.catalogue import load
from sigma_kernel.plugins.specs import Component


def lazy_function(path: str) -> Callable[..., Any]:
    """Return a function that imports the function at ``module:name`` when it is called, and calls it."""

    def call(*given: Any) -> Any:
        function: Any = load(Component("verb", path, path, path, "sigma-kernel"))
        return function(*given)

    return call
