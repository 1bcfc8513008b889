"""The data sets, readers, extractors and preprocessors of sigma-data, each imported when it is first used."""

from sigma_data import __all__ as __all__, __dir__ as __dir__, __getattr__ as __getattr__
