"""Configurations, trained networks, and the command ``sigma``.  Users import these names from ``sigma_ml``."""

from sigma_kernel import lazy_exports
from sigma_run.plugin import sigma_components

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "config.description": "describe",
        "config.trained": "Trained load",
        "files": "from_file",
        "moments.fork": "fork",
        "moments.recall": "RecallHandle open_recalled recall",
    },
    sigma_components(),
)
