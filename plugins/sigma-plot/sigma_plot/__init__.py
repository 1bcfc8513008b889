"""The curves of Sigma runs: in the terminal, as SVG, PNG and CSV."""

from sigma_kernel import lazy_exports
from sigma_plot.plugin import sigma_components

__getattr__, __dir__, __all__ = lazy_exports(__name__, components=sigma_components())
