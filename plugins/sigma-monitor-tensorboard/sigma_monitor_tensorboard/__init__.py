"""Monitor for TensorBoard: event files with the values of a run."""

from sigma_kernel import lazy_exports
from sigma_monitor_tensorboard.plugin import sigma_components

__getattr__, __dir__, __all__ = lazy_exports(__name__, components=sigma_components())
