"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the record of the NumPy backend."""
    path = "sigma_backend_numpy.backend:NumpyBackend"
    return [Component("backend", "numpy", path, "The reference backend: every op in NumPy, on the CPU.", preference=10)]
