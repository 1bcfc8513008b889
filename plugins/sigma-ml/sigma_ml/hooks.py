"""The hooks, metrics and criteria of sigma-hooks, each imported when it is first used."""

from sigma_hooks import __all__ as __all__, __dir__ as __dir__, __getattr__ as __getattr__
