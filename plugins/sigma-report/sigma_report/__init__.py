"""How well a trained network predicts: reports, importance of columns, gradients by input, calibration."""

from sigma_kernel import lazy_exports
from sigma_report.plugin import sigma_components

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "explaining": "Calibration Importance calibrate importance saliency",
        "findings": "describe",
        "measures": "scale_probabilities",
        "page": "render_page",
    },
    components=sigma_components(),
)
