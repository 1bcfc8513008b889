"""Compiles Sigma's graphs to machine code with numba: whole steps, whole bursts."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sigma_backend_numba.backend import NumbaBackend as NumbaBackend

__all__ = ["NumbaBackend"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("sigma_backend_numba.backend"), name)
