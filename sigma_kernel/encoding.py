"""Encode values as JSON, arrays included, so that they are restored bit for bit."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np

from sigma_kernel.errors import SigmaStateError

FORMAT = 1  # of documents


def json_document(values: Mapping[str, Any]) -> str:
    """Return a JSON document, with its format first."""
    return json.dumps({"format": FORMAT, **values}, indent=1) + "\n"


def pack(value: Any) -> Any:
    """Encode a value as strict JSON, arrays and non-finite numbers included.

    Raises SigmaStateError for anything but numbers, strings, booleans, None, arrays, and lists or mappings of these.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): pack(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [pack(inner) for inner in value]
    if isinstance(value, np.bool_ | Integral):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, Real) and isfinite(value):
        return float(value)
    if (array := np.asarray(value)).dtype.kind in "biuf" and isinstance(value, np.ndarray | Real):
        return {"array": array.tobytes().hex(), "dtype": array.dtype.str, "shape": list(array.shape)}
    raise SigmaStateError(f"{type(value).__name__}: cannot be written as JSON. Use numbers, strings, lists or arrays.")


def unpack(value: Any) -> Any:
    """Decode a packed value; raise ValueError or TypeError for anything else."""
    if isinstance(value, list):
        return [unpack(inner) for inner in value]
    if not isinstance(value, Mapping):
        return value
    if value.keys() == {"array", "dtype", "shape"}:
        if not re.fullmatch(r"[<>|][biuf][0-9]{1,2}", str(value["dtype"])):
            raise ValueError(f"no array has dtype {value['dtype']!r:.20}")
        array = np.frombuffer(bytes.fromhex(value["array"]), value["dtype"]).reshape(value["shape"]).copy()
        return array if array.ndim else array.item()
    return {name: unpack(inner) for name, inner in value.items()}
