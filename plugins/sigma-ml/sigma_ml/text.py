"""The data sets, hooks and metrics of sigma-text, each imported when it is first used."""

from sigma_text import __all__ as __all__, __dir__ as __dir__, __getattr__ as __getattr__
