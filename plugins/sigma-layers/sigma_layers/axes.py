"""The axis of features or channels of a sample, as a setting."""

from __future__ import annotations

from collections.abc import Sequence

from sigma_kernel.errors import SigmaNetworkError


def place(where: str, shape: Sequence[int], axis: int) -> int:
    """Return the axis of features, counted from the front with the batch as axis 0.

    Raises SigmaNetworkError if a sample of this shape does not have it.
    """
    rank = len(shape) + 1
    if axis % rank == 0 or not -rank < axis < rank:
        raise SigmaNetworkError(
            f"{where}({tuple(shape)}): axis {axis} is not an axis of a sample. Use 1 for the first, -1 for the last; "
            "axis 0 is the batch."
        )
    return axis % rank
