"""What most commands do without, imported when it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sigma_kernel.plugins.catalogue import load
from sigma_kernel.plugins.specs import Component


def later(path: str) -> Callable[..., Any]:
    """Return a function of the kernel's that is imported when it is called."""

    def call(*given: Any) -> Any:
        function: Any = load(Component("command", path, path, path, "sigma-kernel"))
        return function(*given)

    return call
