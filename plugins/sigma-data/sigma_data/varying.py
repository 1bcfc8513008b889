"""What augmentations read and return: a section of pictures or of numbers, and results in its own type."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sigma_kernel import SigmaDataError

Sections = Mapping[str, np.ndarray]


def numbers_of(name: str, sections: Sections, section: str) -> np.ndarray:
    """Return a section; raise SigmaDataError if there is none, or if it holds no numbers."""
    if section not in sections:
        raise SigmaDataError(f"{name}: the data has no section {section!r}, only {', '.join(sections)}. Name one.")
    values = sections[section]
    if values.dtype.kind not in "iuf":
        raise SigmaDataError(f"{name}: section {section!r} holds {values.dtype}. It takes numbers.")
    return values


def pictures_of(name: str, sections: Sections, section: str) -> np.ndarray:
    """Return a section of pictures, of shape (rows, ..., height, width); raise SigmaDataError for others."""
    values = numbers_of(name, sections, section)
    if values.ndim < 3:
        raise SigmaDataError(
            f"{name}: section {section!r} has samples of shape {values.shape[1:]}. It takes pictures, of shape "
            "(channels, height, width) or (height, width): reshape the data, such as x.reshape(-1, 1, 28, 28)."
        )
    return values


def as_type(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return numbers in a type; in one of integers they are rounded, and limited to its range."""
    if dtype.kind == "f":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    return np.asarray(np.clip(np.rint(values), limits.min, limits.max), dtype)


def add_axes(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return a number for each row with axes of length 1 for the axes of its sample."""
    return values.reshape(len(values), *[1] * (like.ndim - 1))
