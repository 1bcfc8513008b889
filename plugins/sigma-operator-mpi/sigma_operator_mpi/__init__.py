"""Operator for Sigma on MPI: rank 0 runs the command, and the other ranks compute."""

from sigma_kernel import lazy_exports
from sigma_operator_mpi.plugin import sigma_components

__getattr__, __dir__, __all__ = lazy_exports(__name__, components=sigma_components())
