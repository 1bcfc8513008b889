"""Declare the components of this plugin."""

from __future__ import annotations

from sigma_kernel import Component, hookimpl

SIGMA_API = "1.0"


@hookimpl
def sigma_components() -> list[Component]:
    """Return the records of the command and of the charts."""
    return [
        Component("verb", "plot", "sigma_plot.command:plot", "Plot runs in the terminal, as SVG, PNG or CSV."),
        Component(
            "chart", "svg", "sigma_plot.charts:Svg", "Charts as an SVG document, light and dark.", default_for="curves"
        ),
        Component(
            "chart", "figure", "sigma_plot.charts:Figure", "Charts as a figure of matplotlib.", default_for="figure"
        ),
    ]
