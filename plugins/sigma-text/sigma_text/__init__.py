"""Text for Sigma: data sets of characters, hooks and metrics, and the continuation of texts."""

from sigma_kernel import lazy_exports
from sigma_text.plugin import sigma_components

__getattr__, __dir__, __all__ = lazy_exports(__name__, {"continued": "Continued"}, sigma_components())
