"""The plugin acme-kinds for Sigma."""

from acme_kinds.plugin import sigma_components
from sigma_kernel import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, components=sigma_components())
