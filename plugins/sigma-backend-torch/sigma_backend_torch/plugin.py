"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the record of the PyTorch backend."""
    about = "Training steps as PyTorch's tensor functions: on CPU, CUDA and Apple's GPUs."
    return [Component("backend", "torch", "sigma_backend_torch.backend:TorchBackend", about)]
