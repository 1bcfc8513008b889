"""Classes by name or number, as the indices that a cost wants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sigma_kernel import SigmaDataError


def indices(
    values: np.ndarray, where: str, row: Callable[[int], str] = "row {}".format
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the class of each row as an int32 index, and the names of the classes in the order of the indices.

    ``values`` are names, or whole numbers; classes are in alphabetical, or in numerical order.  ``row`` says what a row
    is called in an error.
    """
    if values.ndim != 1:
        raise SigmaDataError(f"{where}: classes have shape {values.shape[1:]} a row. There must be one value.")
    words = values.dtype.kind in "TUS"
    names = [name.strip() for name in values.tolist()] if words else _whole(values, where, row)
    if "" in names:
        raise SigmaDataError(f"{where}: {row(names.index(''))} has no class. Fill it in, or drop the row.")
    order = {name: i for i, name in enumerate(sorted(set(names), key=_rank))}
    return np.array([order[name] for name in names], np.int32), tuple(order)


def _whole(values: np.ndarray, where: str, row: Callable[[int], str]) -> list[str]:
    wrong = np.flatnonzero(~np.isfinite(values) | (values != np.rint(values)))
    if len(wrong):
        raise SigmaDataError(
            f"{where}: {row(wrong[0])} holds {values[wrong[0]]}, which is no class. Use whole numbers or names."
        )
    if values.dtype.kind == "f":
        _apart(values, where, row)
    return [str(int(value)) for value in values.tolist()]


def _apart(values: np.ndarray, where: str, row: Callable[[int], str]) -> None:
    """Refuse whole numbers that floats of this type do not tell from their neighbours."""
    limit = 2.0 ** (np.finfo(values.dtype).nmant + 1)
    merged = np.flatnonzero(np.abs(values) >= limit)
    if len(merged):
        raise SigmaDataError(
            f"{where}: {row(merged[0])} holds {values[merged[0]]:.0f}, and {values.dtype} does not tell whole numbers "
            f"beyond {limit:.0f} apart: classes would merge. Read them as integers of 64 bits, or as words."
        )


def _rank(name: str) -> tuple[bool, int, str]:
    number = name.lstrip("-").isdecimal() and name.isascii()
    return (not number, int(name) if number else 0, name)
