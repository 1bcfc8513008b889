"""The optimisers, schedules and modifiers of sigma-optimisers, each imported when it is first used."""

from sigma_optimisers import __all__ as __all__, __dir__ as __dir__, __getattr__ as __getattr__
