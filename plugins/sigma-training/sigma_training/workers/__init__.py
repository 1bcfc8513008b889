"""Training by a group of workers: what a worker does, and the operator; imported by runs that have workers."""

from sigma_kernel.lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {"driver": "GroupDriver"})
