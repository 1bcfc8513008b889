"""Convert arrays of other libraries, none of which is imported."""

from __future__ import annotations

from typing import Any

import numpy as np


def readable(values: Any) -> np.ndarray:
    """Convert what :func:`as_numpy` does; return an array of None for anything else, such as lists of two lengths."""
    try:
        return as_numpy(values)
    except (ValueError, TypeError, RuntimeError):  # RuntimeError: a tensor that cannot be read
        return np.asarray(None)


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view of an array that cannot be written."""
    view = array.view()
    view.setflags(write=False)
    return view


def protected(values: Any) -> Any:
    """Return values with views in place of arrays, also of those in a mapping or a list, that cannot be written."""
    if isinstance(values, np.ndarray):
        return read_only(values)
    if isinstance(values, dict):
        return {name: protected(one) for name, one in values.items()}
    return [protected(one) for one in values] if isinstance(values, list) else values


def as_numpy(values: Any) -> np.ndarray:
    """Convert an array of any library, or what NumPy converts, without a copy where that is possible.

    Tensors lose their gradient and are copied from their device, floats of fewer bits than NumPy has become float32,
    and rows that are arrays or lists themselves, as in lists of Arrow, become axes.  Raises what their library does.
    """
    if hasattr(values, "detach"):  # a tensor of PyTorch
        values = values.detach().cpu()
        values = values.float() if str(values.dtype).endswith("bfloat16") else values
    if isinstance(values, list) and values and hasattr(values[0], "detach"):
        values = [as_numpy(one) for one in values]
    only_dlpack = hasattr(values, "__dlpack__") and not hasattr(values, "__array__")
    array = np.from_dlpack(values) if only_dlpack else np.asarray(values)
    if array.dtype.kind == "O" and array.ndim == 1 and {*map(type, array)} in ({np.ndarray}, {list}):
        return np.stack([as_numpy(row) for row in array])
    return array.astype(np.float32) if array.dtype.kind == "V" and "float" in array.dtype.name else array
