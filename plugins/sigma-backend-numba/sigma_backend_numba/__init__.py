"""Compile Sigma's graphs to machine code: a training step is one function, a burst of steps one call."""

from sigma_backend_numba.plugin import sigma_components
from sigma_kernel import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, components=sigma_components())
