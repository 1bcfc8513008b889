"""Weight initialisers for Sigma."""

from sigma_initialisers.plugin import sigma_components
from sigma_kernel import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {"saved": "read_saved saved_parameters"}, sigma_components())
