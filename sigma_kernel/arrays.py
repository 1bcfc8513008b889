"""Convert arrays of other libraries, none of which is imported."""

from __future__ import annotations

from typing import Any

import numpy as np

from sigma_kernel.errors import SigmaDataError, error_text

PLAIN = (bool, int, float, str, np.integer, np.floating, np.bool_)  # the types of single values


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


def protect(values: Any) -> Any:
    """Return values with views in place of arrays, also of those in a mapping or a list, that cannot be written."""
    if isinstance(values, np.ndarray):
        return read_only(values)
    if isinstance(values, dict):
        return {name: protect(value) for name, value in values.items()}
    return [protect(value) for value in values] if isinstance(values, list) else values


def as_numpy(values: Any) -> np.ndarray:
    """Convert an array of any library, or any value that NumPy converts, without a copy if possible.

    Tensors lose their gradient and are copied from their device, floats of fewer bits than NumPy has become float32,
    and rows that are arrays or lists themselves, as in lists of Arrow, become axes.  Raises what their library does.
    """
    if hasattr(values, "detach"):  # a tensor of PyTorch
        values = values.detach().cpu()
        values = values.float() if str(values.dtype).endswith("bfloat16") else values
    if isinstance(values, list) and values and hasattr(values[0], "detach"):
        values = [as_numpy(value) for value in values]
    only_dlpack = hasattr(values, "__dlpack__") and not hasattr(values, "__array__")
    array = np.from_dlpack(values) if only_dlpack else np.asarray(values)
    if array.dtype.kind == "O" and array.ndim == 1 and {*map(type, array)} in ({np.ndarray}, {list}):
        return np.stack([as_numpy(row) for row in array])
    return array.astype(np.float32) if array.dtype.kind == "V" and "float" in array.dtype.name else array


def as_array(where: str, name: str, values: Any) -> np.ndarray:
    """Convert a section to an array with one row per sample; raise SigmaDataError if that is impossible."""
    if hasattr(values, "toarray"):
        raise SigmaDataError(f"{where}: section {name!r} is a sparse matrix. Give x.toarray(), or blocks of it.")
    if hasattr(values, "filled") and np.any(values.mask):
        raise SigmaDataError(f"{where}: section {name!r} has masked values. Give x.filled(0.0), or drop the rows.")
    try:
        array = as_numpy(values)
    except ValueError:
        raise SigmaDataError(f"{where}: section {name!r}: samples have different shapes. Cut or pad them.") from None
    except (TypeError, RuntimeError, BufferError) as error:  # such as of an array on another device
        raise SigmaDataError(
            f"{where}: section {name!r}: {error_text(error).rstrip('.')}. Give a NumPy array."
        ) from error
    if not array.ndim:
        single = "; Stream(...) joins single ones" if where == "data" else ""
        raise SigmaDataError(f"{where}: section {name!r} is a single value. Axis 0 is for the samples{single}.")
    return array
