"""Register the compiled backend."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the record of the compiled backend."""
    path = "sigma_backend_numba.backend:NumbaBackend"
    about = "Whole training steps as machine code, a burst of steps per call."
    return [Component("backend", "numba", path, about, preference=20, default_for="compilation")]
