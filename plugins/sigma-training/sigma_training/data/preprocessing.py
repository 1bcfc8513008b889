"""Preprocess blocks of data: fit preprocessors, apply them, cast to the trainer's dtypes, and check the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from sigma_kernel.arrays import protect, read_only
from sigma_kernel.contracts import Backend, Dataset, Preprocessor
from sigma_kernel.errors import SigmaDataError, expect, introduce_errors, suggest_name
from sigma_kernel.graph.node import Spec
from sigma_step.units import Units
from sigma_training.data.dataset import FITTED, Host, number_errors, read

LOOKED_AT = 1 << 20  # numbers of a section whose digits are looked at
FEW = 1 << 12  # numbers for which the call of a reduction takes longer than the rest
FINE = 2.0**-10  # share of a column's range by which rounding may move a number unmentioned


@frozen
class Preparation:
    """Prepare blocks for the step: apply fitted preprocessors, then cast to the trainer's dtypes."""

    precision: str
    preprocessors: Mapping[str, Preprocessor] = field(factory=dict)
    fitted: Mapping[str, Host] = field(factory=dict, converter=protect)  # by preprocessor
    samples: Mapping[str, tuple[tuple[int, ...], str]] = field(factory=dict)  # shapes and dtypes in the data

    def add_step(self, name: str, step: Preprocessor, dataset: Dataset, known: Any = None) -> Preparation:
        """Add one more preprocessor, fitted on the data set as the earlier ones transform it, unless that is known."""
        if step.section not in dataset.sections:
            raise SigmaDataError(f"preprocessor {name!r}: the data has no section {step.section!r}.")
        section = Section(dataset, step.section, self)
        with introduce_errors(f"preprocessor {name!r}", step):
            fitted = step.fit(section) if known is None else dict(known)
            arrays = isinstance(fitted, dict) and all(isinstance(x, np.ndarray | np.generic) for x in fitted.values())
            expect(arrays, "fit() must return arrays by name", fitted)
        if not all(map(is_finite, fitted.values())):
            for block, values in enumerate(section):  # an error naming the row in the data
                with number_errors(dataset, block):
                    check_finite({step.section: values})
        fitted = {**self.fitted, name: fitted}
        return evolve(self, preprocessors={**self.preprocessors, name: step}, fitted=fitted)

    @property
    def sections(self) -> set[str]:
        """Return the sections that preprocessors transform."""
        return {step.section for step in self.preprocessors.values()}

    def arrays(self) -> Host:
        """Return the fitted values of the preprocessors, by their addresses in the state."""
        return {f"{FITTED}{name}.{key}": np.asarray(x) for name, held in self.fitted.items() for key, x in held.items()}

    def units(self, backend: Backend) -> Units:
        """Return what brings values back to the units of the data, in the widest float type of a backend."""
        steps = {name: (step, self.fitted[name]) for name, step in self.preprocessors.items()}
        shapes = {name: tuple(shape) for name, (shape, _) in self.samples.items()}
        return Units(steps, shapes, "float64" if "float64" in backend.dtypes else self.precision)

    def __call__(self, block: Mapping[str, np.ndarray]) -> Host:
        """Return a block as the step reads it."""
        return self.cast(self.apply_all(block))

    def apply_all(self, block: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Apply all preprocessors to a block."""
        return reduce(lambda block, name: self.apply(name, block), self.preprocessors, block)

    def apply(self, name: str, block: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Apply one preprocessor to a block that the earlier ones have transformed."""
        step = self.preprocessors[name]
        if step.section not in block:
            return block
        values = read_only(np.asarray(block[step.section]))  # may be the user's own
        with introduce_errors(f"preprocessor {name!r}", step):
            try:
                array = step.apply(values, self.fitted[name])
            except (TypeError, ValueError) as error:
                if "read-only" in str(error):  # its own fault, not that of the samples
                    raise
                what = f"section {step.section!r}, {values.dtype} of shape {values.shape}"
                raise SigmaDataError(
                    f"preprocessor {name!r}: cannot take {what}: {error}. Give samples like those of the training data."
                ) from error
            right = isinstance(array, np.ndarray) and len(array) == len(values)
            expect(right, f"apply() must return an array of {len(values)} rows", array)
        return {**block, step.section: array if array.flags.writeable else array.copy()}  # a backend may share it

    def cast(self, block: Mapping[str, np.ndarray]) -> Host:
        """Cast a preprocessed block to the dtypes of the trainer."""
        return {name: self._cast(name, values) for name, values in block.items()}

    def _cast(self, name: str, values: np.ndarray) -> np.ndarray:
        if values.dtype.kind == "f":
            cast = cast_quietly(values, self.precision)
            if cast.dtype != values.dtype and not is_finite(cast) and is_finite(values):
                place, value = _locate_first(np.isinf(cast), values)
                raise SigmaDataError(
                    f"data: section {name!r}, {place}: {value:g} is too large for {self.precision}. "
                    "Scale the values, or choose another precision."
                )
            return cast
        if values.dtype.kind in "iu":
            if values.size and not -(2**31) <= values.min() <= values.max() < 2**31:
                place, value = _locate_first((values < -(2**31)) | (values >= 2**31), values)
                raise SigmaDataError(
                    f"data: section {name!r}, {place}: {value} is beyond 32 bits. Of labels, give the indices of their "
                    "classes: numpy.unique(labels, return_inverse=True)[1]. Give other numbers as floats."
                )
            return np.asarray(values, np.int32, order="C")
        if values.dtype.kind == "b":
            return np.asarray(values, order="C")
        raise SigmaDataError(f"data: section {name!r} holds {values.dtype}. Use numbers or booleans.")


@frozen
class Section(Iterable[np.ndarray]):
    """One section as preprocessors transform it: its blocks, read lazily; can be iterated repeatedly."""

    dataset: Dataset
    name: str
    before: Preparation

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield the array of each block, one row per sample."""
        for block in range(self.dataset.blocks):
            values = read(self.dataset, block)[self.name]
            yield read_only(np.asarray(self.before.apply_all({self.name: values})[self.name]))


def coarse_columns(block: Mapping[str, np.ndarray], cast: Host, training: Dataset) -> Iterator[str]:
    """Yield a sentence for each section with a column that is coarse once cast: differences between rows are lost.

    The cast changes an integer there, or any number by a thousandth of the column's range.
    """
    for section, values in block.items():
        if values.size and values.dtype.kind == "f" and values.dtype != cast[section].dtype:
            some = 1 + LOOKED_AT // values[0].size
            exact, rounded = (x[:some].reshape(len(x[:some]), -1) for x in (values, cast[section]))
            whole, span = ((exact == np.rint(exact)) & (abs(exact) < 2**53)).all(0), np.ptp(exact, 0)
            lost = (abs(exact - rounded) > np.where(whole, 0.0, FINE * span)) & (span > 0)
            for row, column in np.argwhere(lost)[:1]:
                names = dict(enumerate(training.column_names(section)))  # a preprocessor may have added others
                yield (
                    f"column {names.get(column, int(column))!r} of section {section!r} holds "
                    f"{exact[row, column]:.15g}, which {rounded.dtype} rounds to {rounded[row, column]:.15g}. Give the "
                    "section the preprocessor standardise, which computes in float64, or subtract a constant before."
                )


def check_finite(block: Host, where: str = "data") -> None:
    """Raise SigmaDataError for the first number that is not finite, naming its section, row and column."""
    for name, values in block.items():
        if not is_finite(values):
            place, value = _locate_first(~np.isfinite(values), values)
            raise SigmaDataError(
                f"{where}: section {name!r}, {place}: {value} is not finite. Fill such values in, or drop their rows."
            )


def _locate_first(wrong: np.ndarray, values: np.ndarray) -> tuple[str, Any]:
    """Return where the first wrong value of a section is, in words, and the value."""
    row, *rest = (int(number) for number in np.argwhere(wrong)[0])
    columns = f", column {rest[0]}" if len(rest) == 1 else f", at {tuple(rest)}" if rest else ""
    return f"row {row}{columns}", values[(row, *rest)]


def check_indices(block: Host, counts: Mapping[str, int], where: str = "data") -> None:
    """Raise SigmaDataError for the first number in a section that is no index below its count, naming its row."""
    for name, count in counts.items():
        values = block.get(name, np.empty(0))
        wrong = ~((values >= 0) & (values < count) & (values == np.floor(values)))
        if wrong.any():
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise SigmaDataError(
                f"{where}: section {name!r}, row {place[0]}: {values[place]} is not an index from 0 to {count - 1}. "
                f"The section holds {values.min()} to {values.max()}. Map them, or let the network choose from more."
            )


def cast_quietly(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Return floats in another type, in the order of rows; those that are too large become infinite."""
    with np.errstate(over="ignore"):  # non-finite values are reported later, with their row
        return np.asarray(values, dtype, order="C")


def is_finite(values: np.ndarray) -> bool:
    """Return whether all of an array's numbers are finite."""
    if values.dtype.kind != "f":
        return True
    finite = np.isfinite(values)
    return b"\0" not in finite.tobytes() if finite.size <= FEW else bool(finite.all())


def conform(block: Host, wanted: Mapping[str, Spec], where: str = "data") -> Host:
    """Return the wanted sections of a prepared block, converted to the types of their specs.

    Raises SigmaDataError for a section that is missing, has another shape, or holds a number that the type lacks.
    """
    arrays: Host = {}
    for name, spec in wanted.items():
        if name not in block:
            raise SigmaDataError(f"{where}: section {name!r} is missing.{suggest_name(name, block)}")
        values = block[name]
        if not values.ndim or values.shape[1:] != spec.shape:
            raise SigmaDataError(f"{where}: section {name!r} has shape {values.shape}; expected {('n', *spec.shape)}.")
        arrays[name] = values if values.dtype == spec.dtype else _convert(where, name, values, spec.dtype)
    return arrays


def _convert(where: str, name: str, values: np.ndarray, dtype: str) -> np.ndarray:
    """Return values in another type, which must hold the same numbers; booleans are no numbers."""
    if "bool" in (values.dtype.name, dtype):
        raise SigmaDataError(
            f"{where}: section {name!r} holds {values.dtype}; the network was built for {dtype}. "
            f"Write x.astype({dtype!r})."
        )
    with np.errstate(invalid="ignore", over="ignore"):
        array = values.astype(dtype)
    if (wrong := array != values).any():
        place, value = _locate_first(wrong, values)
        raise SigmaDataError(
            f"{where}: section {name!r}, {place}: {value} is no {dtype}, for which the network was built. "
            f"Round or scale the values as those of the training, or train on {values.dtype}."
        )
    return array
