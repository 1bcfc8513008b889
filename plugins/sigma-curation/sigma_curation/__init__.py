"""Curation of data for Sigma: leave rows out while training runs, take them back, give them other labels."""

from sigma_curation.plugin import sigma_components
from sigma_kernel import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {}, sigma_components())
