"""Arrays in memory as a data set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from sigma_data.labels import Codes, Labels, as_words
from sigma_kernel import Dataset, SigmaDataError
from sigma_kernel.graph import DTYPES, Spec


class Arrays(Dataset):
    """Arrays by section, one row per sample, in one block, without a copy.

    ``Arrays(inputs=images, targets=labels)`` takes anything that NumPy converts to an array of numbers or booleans.  A
    section of strings holds class names, one per row, which become indices in alphabetical order.  A section may also
    be :class:`~sigma_data.labels.Labels`.  Raises SigmaDataError if there is no section or no row, if sections have
    different lengths, and for other objects and values that are not finite.
    """

    def __init__(self, **sections: npt.ArrayLike | Labels) -> None:
        found = {name: _section(name, values) for name, values in sections.items()}
        self._labels = {name: values for name, values in found.items() if isinstance(values, Labels)}
        self.arrays = {name: v.shown if isinstance(v, Labels) else v for name, v in found.items()}
        self._rows = equal_length(self.arrays, "data")

    @property
    def sections(self) -> Mapping[str, Spec]:
        """Return each section's shape and dtype for one sample."""
        return specs(self.arrays)

    @property
    def blocks(self) -> int:
        """Return 1."""
        return 1

    def rows(self, block: int) -> int:
        """Return the number of rows."""
        return self._rows

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return the arrays themselves."""
        return self.arrays

    def encode(self, section: str, classes: int | None, names: Sequence[str] = ()) -> Arrays:
        """Return a copy with a section of strings or labels as class indices, or as numbers if ``classes`` is None."""
        if section not in self._labels:
            return self
        changed = self._labels[section].encoded(section, classes, names)
        return Arrays(**{**self.arrays, **self._labels, section: changed})

    def class_names(self, section: str) -> tuple[str, ...]:
        """Return the class names of a section; empty if it does not hold classes."""
        return self._labels[section].names if section in self._labels else ()

    def __repr__(self) -> str:
        return f"Arrays({', '.join(f'{name}={values.shape}' for name, values in self.arrays.items())})"


def specs(arrays: Mapping[str, np.ndarray]) -> dict[str, Spec]:
    """Return the spec of a sample by section; integer types that graphs lack become the next larger ones."""
    return {name: Spec(values.shape[1:], _dtype(values.dtype)) for name, values in arrays.items()}


def _dtype(dtype: np.dtype) -> str:
    if dtype.name in DTYPES:
        return dtype.name
    return "int32" if dtype.itemsize < 4 else "int64"


def _section(name: str, values: npt.ArrayLike | Labels) -> np.ndarray | Labels:
    if isinstance(values, Labels):
        return values
    try:
        array = np.asarray(values)
    except ValueError:
        raise SigmaDataError(f"data: section {name!r}: the samples have different shapes. Cut or pad them.") from None
    if (words := as_words(array)) is not None:
        return Labels.settled(Codes(words, f"data: section {name!r}", "row {}".format))
    numbers(name, array)
    if array.ndim == 0:
        raise SigmaDataError(f"data: section {name!r} is a single number. Axis 0 is for the samples.")
    finite(name, array, range(len(array)))
    return array


def numbers(name: str, array: np.ndarray) -> None:
    """Raise SigmaDataError unless a section holds numbers or booleans."""
    if array.dtype.kind in "OUST":
        raise SigmaDataError(
            f"data: section {name!r} holds objects or words ({array.dtype}). Use numbers; classes are indices from 0, "
            "or words without gaps in Arrays(...)."
        )
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise SigmaDataError(
            f"data: section {name!r} holds {array.dtype}. Use floats of at most 64 bits, integers or bool."
        )


def finite(name: str, array: np.ndarray, rows: Iterable[int]) -> None:
    """Raise SigmaDataError for the first value that is not finite; ``rows`` are the row numbers to report."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        bad = ~np.isfinite(array).reshape(len(array), -1).all(axis=1)
        first = next(row for row, wrong in zip(rows, bad, strict=True) if wrong)
        raise SigmaDataError(
            f"data: section {name!r}, row {first}: a value is not finite, in {bad.sum()} of {len(array)} rows. "
            "Fill in such values, or drop the rows."
        )


def converted(values: np.ndarray, dtype: npt.DTypeLike, where: str) -> np.ndarray:
    """Return values cast to a dtype, floats rounded; SigmaDataError for values that an integer or bool cannot hold."""
    with np.errstate(invalid="ignore", over="ignore"):
        changed = values.astype(dtype)
    if changed.dtype.kind != "f" and not np.array_equal(changed, values):
        wrong = np.argwhere(changed != values)[0]
        raise SigmaDataError(
            f"{where}, row {wrong[0]}: {values[tuple(wrong)]} does not fit {changed.dtype}. Round it "
            "first, or use floats."
        )
    return changed


def equal_length(arrays: Mapping[str, np.ndarray], where: str) -> int:
    """Return the number of rows that all sections have."""
    lengths = {name: len(values) for name, values in arrays.items()}
    if not lengths:
        raise SigmaDataError(f"{where}: there is no section. Name at least one, such as Arrays(inputs=...).")
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name!r} {rows}" for name, rows in lengths.items())
        raise SigmaDataError(f"{where}: the sections have different numbers of rows: {told}. Each row is one sample.")
    if not (rows := next(iter(lengths.values()))):
        raise SigmaDataError(f"{where}: there is no row. Check the path and the filters.")
    return rows
