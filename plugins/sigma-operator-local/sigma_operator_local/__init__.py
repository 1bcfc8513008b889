"""Local operator for Sigma: training on this machine, with shards and workers."""

from sigma_kernel import lazy_exports
from sigma_operator_local.plugin import sigma_components

__getattr__, __dir__, __all__ = lazy_exports(__name__, components=sigma_components())
