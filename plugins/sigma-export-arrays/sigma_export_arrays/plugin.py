"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all components."""
    return [
        Component("exporter", "npz", "sigma_export_arrays.npz:Npz", "Parameters by address, for NumPy."),
        Component(
            "exporter", "safetensors", "sigma_export_arrays.tensors:SafeTensors",
            "Parameters by address, for libraries that read safetensors.",
        ),
    ]  # fmt: skip
