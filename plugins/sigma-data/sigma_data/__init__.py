"""Data for Sigma: sources, readers, extractors, encoders, preprocessors, augmentations, iterators, and data sets."""

from sigma_data.plugin import sigma_components
from sigma_kernel import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "arrays": "Arrays",
        "datasets.joined": "JoinedSource",
        "datasets.splits": "Divided Splits",
        "extractors.columns": "Column",
        "extractors.offsets": "Field",
        "splitting": "split",
        "stream": "Stream",
        "subset": "Subset",
    },
    sigma_components(),
)
