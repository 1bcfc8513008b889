"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the record of the JAX backend."""
    about = "Training steps as one jitted JAX function, bursts as one loop: on CPU, GPU and TPU."
    return [Component("backend", "jax", "sigma_backend_jax.backend:JaxBackend", about)]
