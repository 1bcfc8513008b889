"""The values that parameters start from, for Sigma."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sigma_initialisers.plugin import sigma_components

if TYPE_CHECKING:  # the same table again, for type checkers; a test compares the two
    from sigma_initialisers.constant import Constant as Constant
    from sigma_initialisers.gaussian import Gaussian as Gaussian
    from sigma_initialisers.glorot_normal import GlorotNormal as GlorotNormal
    from sigma_initialisers.glorot_uniform import GlorotUniform as GlorotUniform
    from sigma_initialisers.he_normal import HeNormal as HeNormal
    from sigma_initialisers.he_uniform import HeUniform as HeUniform
    from sigma_initialisers.orthogonal import Orthogonal as Orthogonal
    from sigma_initialisers.truncated_normal import TruncatedNormal as TruncatedNormal
    from sigma_initialisers.uniform import Uniform as Uniform
    from sigma_initialisers.warm_start import WarmStart as WarmStart

_PLACES = (component.path.partition(":") for component in sigma_components())
_EXPORTS = {name: module for module, _, name in _PLACES}
__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return __all__
