"""The layers, activations and costs of sigma-layers, each imported when it is first used."""

from sigma_layers import __all__ as __all__, __dir__ as __dir__, __getattr__ as __getattr__
