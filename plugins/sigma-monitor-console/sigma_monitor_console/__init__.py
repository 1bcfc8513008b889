"""Console monitor for Sigma: progress on terminals, in notebooks and in log files."""

from sigma_kernel import lazy_exports
from sigma_monitor_console.plugin import sigma_components

__getattr__, __dir__, __all__ = lazy_exports(__name__, components=sigma_components())
