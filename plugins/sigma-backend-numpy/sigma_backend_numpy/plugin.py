"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of the backends."""
    path, checks = "sigma_backend_numpy.backend:NumpyBackend", "Computes op by op, and finds where NaN comes from."
    return [
        Component(
            "backend",
            "numpy",
            path,
            "The reference backend: every op in NumPy, on the CPU.",
            preference=10,
            default_for="first-iterations",
        ),
        Component(
            "backend", "debug", "sigma_backend_numpy.debug:DebugBackend", checks, preference=-1, default_for="debugging"
        ),
    ]
