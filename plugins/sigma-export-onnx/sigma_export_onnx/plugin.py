"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of all components."""
    return [
        Component(
            "exporter", "onnx", "sigma_export_onnx.exporter:Onnx",
            "The graph that predicts, with its preprocessing, for ONNX Runtime and others.",
        ),
    ]  # fmt: skip
