"""Datasets of Hugging Face on disk as data sets."""

from sigma_huggingface.plugin import sigma_components
from sigma_kernel import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, {}, components=sigma_components())
