"""Constant arrays in a graph: arrays and nested lists of the user, in a dtype that graphs have."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.errors import SigmaGraphError

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63), "uint32": range(2**32)}
DTYPES = (*FLOATS, *INTEGERS, "bool")


@frozen(eq=False, repr=False)
class Values:
    """The entries of a constant array, which never change; its text tells it from every other one of its dtype."""

    array: np.ndarray

    def __repr__(self) -> str:
        few = self.array.size <= 8
        return f"{self.array.tolist()}" if few else f"sha256:{hashlib.sha256(self.array.tobytes()).hexdigest()}"


def array_of(given: Any) -> np.ndarray:
    """Return a copy of an array, a nested list or a number, in a dtype that graphs have.

    Raises SigmaGraphError for anything but real numbers and truth values.
    """
    try:
        array = np.array(given)
    except ValueError:
        raise SigmaGraphError("a list with rows of different lengths cannot be a constant of a graph.") from None
    if array.dtype.name in DTYPES:
        return array
    if array.dtype.kind in "iu":
        return in_dtype(array, "int32" if array.dtype.itemsize < 4 else "int64")
    what = f"an array of {array.dtype}" if array.shape else f"a {type(given).__name__}"
    raise SigmaGraphError(f"{what} cannot be a constant of a graph. Use real numbers.")


def in_dtype(array: np.ndarray, dtype: str) -> np.ndarray:
    """Return an array in another dtype; raises SigmaGraphError for one of integers, or bool, that does not hold it."""
    allowed = INTEGERS.get(dtype, range(2))
    if dtype not in FLOATS and array.size:
        wrong = [x for x in (array.min(), array.max()) if array.dtype.kind == "f" or int(x) not in allowed]
        if wrong:
            raise SigmaGraphError(
                f"{wrong[0]} is not a valid {dtype}. Cast the other operand, or write another number."
            )
    return array.astype("float32" if dtype == "bfloat16" else dtype)
