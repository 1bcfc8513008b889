"""Optimisers, gradient transforms, parameter modifiers and schedules for Sigma."""

from sigma_kernel import lazy_exports
from sigma_optimisers.plugin import sigma_components

__getattr__, __dir__, __all__ = lazy_exports(__name__, components=sigma_components())
