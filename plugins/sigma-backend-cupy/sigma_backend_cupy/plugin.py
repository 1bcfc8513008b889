"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the record of the CUDA backend."""
    about = "Training steps as generated CUDA kernels, recorded once and replayed: on NVIDIA's GPUs, through CuPy."
    return [Component("backend", "cupy", "sigma_backend_cupy.backend:CupyBackend", about)]
