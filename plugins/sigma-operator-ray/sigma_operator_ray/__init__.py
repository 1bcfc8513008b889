"""Operator for Sigma on a Ray cluster: workers are actors, which exchange slices of gradients."""

from sigma_kernel import lazy_exports
from sigma_operator_ray.plugin import sigma_components

__getattr__, __dir__, __all__ = lazy_exports(__name__, components=sigma_components())
