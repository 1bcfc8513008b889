"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of the commands."""
    return [
        Component("verb", "bench", "sigma_bench.command:bench", "Benchmark backends, and JAX, PyTorch and NumPy."),
        Component("verb", "diff", "sigma_bench.differ.command:diff", "Compare what backends compute, op by op."),
    ]
