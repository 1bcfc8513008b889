"""Names of parameters elsewhere, for initialisers that read them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sigma_kernel.contracts import Parameter
from sigma_kernel.errors import SigmaConfigError


def translate_address(address: str, names: Mapping[str, str]) -> str:
    """Return the name of an address elsewhere; the longest matching entry of ``names`` applies."""
    heads = [head for head in names if f"{address}.".startswith(f"{head}.")]
    head = max(heads, key=len, default="")
    return names[head] + address[len(head) :] if head else address


def fitting(address: str, parameter: Parameter, values: np.ndarray, where: str) -> np.ndarray:
    """Return values in float64; raise SigmaConfigError unless they have the parameter's shape."""
    if values.shape != tuple(parameter.shape):
        raise SigmaConfigError(
            f"{address}{tuple(parameter.shape)}: {where} has shape {values.shape}. "
            "Give the layers the same shape, or match fewer parameters."
        )
    return values.astype(np.float64)
