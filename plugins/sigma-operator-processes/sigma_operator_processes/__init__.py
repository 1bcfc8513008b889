"""Operator for Sigma on several processes of one machine: clean interpreters, and sums in shared memory."""

from sigma_kernel import lazy_exports
from sigma_operator_processes.plugin import sigma_components

__getattr__, __dir__, __all__ = lazy_exports(__name__, components=sigma_components())
