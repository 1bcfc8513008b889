"""CUDA backend for Sigma."""

from sigma_backend_cupy.plugin import sigma_components
from sigma_kernel import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, components=sigma_components())
