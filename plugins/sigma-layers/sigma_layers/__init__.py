"""Layers, activations and costs for Sigma."""

from sigma_kernel import lazy_exports
from sigma_layers.plugin import sigma_components

__getattr__, __dir__, __all__ = lazy_exports(__name__, components=sigma_components())
