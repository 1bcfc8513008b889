"""Steer running Sigma trainings from any shell of the same user, from the terminal or from Python."""

from sigma_kernel import lazy_exports
from sigma_monitor_control.plugin import sigma_components

__getattr__, __dir__, __all__ = lazy_exports(
    __name__, {"client": "Client", "discovery": "connect"}, components=sigma_components()
)
