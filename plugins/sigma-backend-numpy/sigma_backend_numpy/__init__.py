"""Runs Sigma's graphs with NumPy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sigma_backend_numpy.backend import NumpyBackend as NumpyBackend

__all__ = ["NumpyBackend"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("sigma_backend_numpy.backend"), name)
