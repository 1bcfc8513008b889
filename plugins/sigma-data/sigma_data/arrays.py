"""Arrays in memory as a data set."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from sigma_data.encoded import EncodedColumns
from sigma_data.examination import examine_classes, examine_columns
from sigma_data.frames import cells, check_names, columns_of, is_categorical, is_frame, order_of, tight
from sigma_data.labels import Codes, Labels, as_words
from sigma_data.table import Table
from sigma_kernel import Dataset, Label, SigmaDataError, as_array
from sigma_kernel.graph import DTYPES, Spec

GAPS = "Fill it in, or train with Frame(..., missing='drop') or a number such as missing=0.0."  # the remedy


class Arrays(Dataset):
    """Arrays by section, one row per sample, in one block, without a copy.

    ``Arrays(inputs=images, targets=labels)`` takes anything that NumPy converts to an array of numbers or booleans.  A
    section of strings holds class names, one per row, which become indices in alphabetical order; booleans are the
    classes False and True for a classification cost.  A section may be a data frame of numbers, whose column names are
    kept, with the columns of a categorical type one-hot encoded.  It may also be
    :class:`~sigma_data.labels.Labels`, :class:`Titled` or :class:`NamedTargets`.  Raises SigmaDataError if there is no
    section or no row, if sections have different lengths, and for other objects and values that are not finite.
    """

    def __init__(self, **sections: npt.ArrayLike | Labels | Framed | Titled | NamedTargets) -> None:
        given = {name: x.values if isinstance(x, NamedTargets) else x for name, x in sections.items()}
        columns = [name for values in given.values() for name in frame_columns(values)]
        parts = {name: _section(name, values, columns) for name, values in given.items()}
        self._named = {name: NamedTargets.from_values(values) for name, values in sections.items() if name != "inputs"}
        self._labels = {name: values for name, values in parts.items() if isinstance(values, Labels)}
        self._framed = {name: values for name, values in parts.items() if isinstance(values, Framed)}
        self._titled = {name: values for name, values in parts.items() if isinstance(values, Titled)}
        self.arrays = {name: v if isinstance(v, np.ndarray) else v.array for name, v in parts.items()}
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
        """Return views of the arrays that cannot be written to."""
        return read_only(self.arrays)

    def encode(self, section: str, classes: int | None, names: Sequence[Label] = ()) -> Arrays:
        """Return a copy with a section of strings or labels as class indices, or as numbers if ``classes`` is None."""
        if section not in self._labels:
            values = self.arrays.get(section, np.empty(0))
            labels = all(type(name) is int for name in names) and [*names] != [*range(len(names))]
            if classes is None or values.ndim != 1 or values.dtype.kind not in "iu" or not labels:
                return self
            codes = Codes(values, f"data: section {section!r}")  # of numbers that were the labels of the training
            return self._but({section: Labels(codes, values).encode(section, classes, names)})
        changed = self._labels[section].encode(section, classes, names)
        return self._but({section: changed})

    def align(self, training: Dataset) -> Arrays:
        """Return a copy with the named columns in the order of the training split, and with its categories."""
        tables = getattr(training, "tables", {})
        parts = {
            name: x.align(tables.get(name), training.column_names(name)) for name, x in self.column_sections.items()
        }
        return self._but({name: part for name, part in parts.items() if part is not self.column_sections[name]})

    def section(self, name: str) -> Any:
        """Return a section with its labels or names, as other arrays take it."""
        return {**self.arrays, **self._labels, **self.column_sections, **self._named}[name]

    @property
    def column_sections(self) -> dict[str, Framed | Titled]:
        """Return the sections with named columns."""
        return {**self._framed, **self._titled}

    def _but(self, changed: Mapping[str, Any]) -> Arrays:
        held = {**self.arrays, **self._labels, **self._framed, **self._titled, **changed}
        kept = {name: evolve(target, values=held[name]) for name, target in self._named.items()}
        return Arrays(**{**held, **kept}) if changed else self

    @property
    def tables(self) -> dict[str, Table | EncodedColumns]:
        """Return what extracts the sections that were frames, or tables in files."""
        return {name: section.table for name, section in self.column_sections.items() if section.table is not None}

    @property
    def learned(self) -> dict[str, Any]:
        """Return the columns of frames, in plain values, to predict from frames with, and the names of targets."""
        frames = {name: table.to_plain() for name, table in self.tables.items()}
        targets = {name: [*target.names] for name, target in self._named.items() if target.names}
        return {name: held for name, held in (("frames", frames), ("targets", targets)) if held}

    def class_names(self, section: str) -> tuple[Label, ...]:
        """Return the labels of the classes of a section; empty if it does not hold classes."""
        return self._labels[section].names if section in self._labels else ()

    def column_names(self, section: str) -> Sequence[str]:
        """Return the names of the columns of a section that was a frame, or that has titles; empty for others."""
        framed = self._framed[section].table.titles if section in self._framed else ()
        return self._titled[section].names if section in self._titled else framed

    def findings(self, classes: Collection[str], others: Mapping[str, Dataset]) -> tuple[str, ...]:
        """Return what is odd about columns with names, and about classes that a split lacks."""
        columns = tuple(text for section in self.column_sections.values() for text in section.findings)
        return columns + classes_lacking({"training": self, **others}, classes)

    def column(self, section: str) -> np.ndarray | None:
        """Return all rows of a section; None if there is no such section."""
        return self.arrays.get(section)

    def __repr__(self) -> str:
        return f"Arrays({', '.join(f'{name}={values.shape}' for name, values in self.arrays.items())})"


def classes_lacking(splits: Mapping[str, Dataset], sections: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence for each split without rows of some class, as far as its rows are in memory."""
    return tuple(text for section in sections for text in _lacking(splits, section))


def _lacking(splits: Mapping[str, Dataset], section: str) -> tuple[str, ...]:
    values = {name: dataset.column(section) for name, dataset in splits.items() if hasattr(dataset, "column")}
    held = {name: x for name, x in values.items() if x is not None and x.ndim == 1 and x.dtype.kind in "iu"}
    return examine_classes(held, splits["training"].class_names(section)) if len(held) == len(splits) else ()


def specs(arrays: Mapping[str, np.ndarray]) -> dict[str, Spec]:
    """Return the spec of a sample by section; integer types that graphs lack become the next larger ones."""
    return {name: Spec(values.shape[1:], _dtype(values.dtype)) for name, values in arrays.items()}


def _dtype(dtype: np.dtype) -> str:
    if dtype.name in DTYPES:
        return dtype.name
    return "int32" if dtype.itemsize < 4 else "int64"


@frozen(eq=False, slots=False)
class Framed:
    """Columns by name, and the table that makes a section of them.

    ``remedy`` leaves out a column; rows that are ``in_time`` may be counted.
    """

    columns: Mapping[str, Any]
    table: Table
    remedy: str = "Leave it out: frame.drop(columns=[{!r}])."
    in_time: bool = False

    @cached_property
    def array(self) -> np.ndarray:
        """Return the section, checked."""
        ((name, values),) = self.table.complete(self.columns, GAPS).items()
        finite(name, values, range(len(values)))
        return values

    @property
    def findings(self) -> tuple[str, ...]:
        """Return what is odd about the columns."""
        values = self.array.reshape(len(self.array), -1)
        encoded = self.table.categories
        numbers = {name: values[:, i] for i, name in enumerate(self.table.names) if name not in encoded}
        counts = {name: len(names) for name, names in encoded.items()}
        return examine_columns(numbers, counts, len(values), self.remedy.format, self.in_time)

    def align(self, table: Table | None, names: Sequence[str]) -> Framed:
        """Return the same rows as another table has them, or with columns in the order of names."""
        if table is None and names and not self.table.categories:
            check_names(self.columns, names, self.table.others, "frame")
            table = evolve(self.table, columns=tuple(names))
        return self if table in (None, self.table) else evolve(self, table=table)

    @classmethod
    def from_frame(cls, name: str, frame: Any, others: Sequence[str]) -> Framed | np.ndarray:
        """Return all columns of a frame, those of a categorical type encoded; a single column of words as such."""
        columns = columns_of(frame, f"data: section {name!r}")
        table = Table(tuple(columns), tuple(others), section=name)
        only = [*columns.values()]
        if len(only) == 1 and name != "inputs" and (words := cells(only[0], name)).dtype.kind == "T":
            return words
        categories = table.encoding(columns, [n for n, column in columns.items() if is_categorical(column)])
        return cls(columns, evolve(table, categories=categories))


@frozen(eq=False)
class Titled:
    """An array with names of its columns, one for each number of a sample.

    ``table`` is how it was read from the file ``where``, and ``findings`` what is odd about the columns there.
    """

    array: np.ndarray
    names: Sequence[str]
    table: Table | EncodedColumns | None = None
    where: str = "data"
    findings: tuple[str, ...] = ()

    def align(self, table: Any, names: Sequence[str]) -> Titled:
        """Return the same rows with the columns of another table, or of these names, in their order."""
        if isinstance(table, Table) and isinstance(self.table, Table):
            self.table.check_read(table, self.where)
            own, wanted, shape = self.table.elements, table.elements, table.shape
        else:
            own, wanted, shape = tuple(self.names), tuple(table.elements if table else names), None
            if own and wanted:
                check_names(dict.fromkeys(own), wanted, (), self.where, "Leave it out.")
        if not own or not wanted or own == wanted:
            return self
        places = {name: i for i, name in enumerate(own)}
        values = self.array.reshape(len(self.array), -1)[:, [places.get(name, 0) for name in wanted]]
        values[:, [name not in places for name in wanted]] = 0  # categories that no row has
        titles = table.titles if table else wanted
        return evolve(self, array=values.reshape(len(values), *(shape or (-1,))), names=titles, table=table)


@frozen(eq=False)
class NamedTargets:
    """A section to predict, with the names of its columns, which predictions then have; none if it has no names."""

    values: Any
    names: Sequence[str] = ()

    @classmethod
    def from_values(cls, values: Any) -> NamedTargets:
        """Return values with their own names, if they have any."""
        return values if isinstance(values, NamedTargets) else cls(values, frame_columns(values))


def frame_columns(values: Any) -> list[str]:
    """Return the names of the columns of a frame, or of a series; none for others."""
    if is_frame(values):
        return [*columns_of(values)]
    name = getattr(values, "name", None)
    return [str(name)] if isinstance(name, str | Integral) and name != "" else []


def _section(name: str, values: Any, known: Sequence[str]) -> np.ndarray | Labels | Framed | Titled:
    if isinstance(values, Labels | Framed | Titled):
        return values
    order = order_of(values)
    if is_frame(values):
        order = order_of(next(iter(columns_of(values).values()), None))
        values = Framed.from_frame(name, values, [column for column in known if column not in frame_columns(values)])
        if isinstance(values, Framed):
            return values
    array = _to_array(name, values)
    if (words := as_words(array)) is not None:
        return Labels.from_codes(Codes(words, f"data: section {name!r}", order=order))
    numbers(name, array)
    if array.dtype.kind == "b" and array.ndim == 1:
        return Labels(Codes(array, f"data: section {name!r}"), array)
    finite(name, array, range(len(array)))
    return array


def _to_array(name: str, values: Any) -> np.ndarray:
    array = as_array("data", name, values)
    if array.dtype.kind == "U" and not isinstance(values, np.ndarray):
        array = np.asarray(values, object)  # in which numbers and missing values among words are still such
    if array.ndim == 2 and array.shape[1] == 1 and name != "inputs" and array.dtype.kind in "OUTb":
        array = array[:, 0]  # a column of labels
    array = tight(array) if array.ndim == 1 else array
    return cells(array, f"data: section {name!r}") if array.dtype.kind == "O" and array.ndim == 1 else array


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


def cast_values(values: np.ndarray, dtype: npt.DTypeLike, where: str) -> np.ndarray:
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


def scale_numbers(values: np.ndarray, factor: float) -> np.ndarray:
    """Return numbers times a factor: float32, or float64 if that has no room for the numbers' own type."""
    dtype = np.result_type(values.dtype, np.float32)
    return values if factor == 1.0 else np.multiply(values, factor, dtype=np.float64).astype(dtype, copy=False)


def equal_length(arrays: Mapping[str, np.ndarray], where: str) -> int:
    """Return the number of rows that all sections have."""
    lengths = {name: len(values) for name, values in arrays.items()}
    if not lengths:
        raise SigmaDataError(f"{where}: there is no section. Name at least one, such as Arrays(inputs=...).")
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name!r} {rows}" for name, rows in lengths.items())
        raise SigmaDataError(f"{where}: the sections have different numbers of rows: {counts}. Each row is one sample.")
    if not (rows := next(iter(lengths.values()))):
        raise SigmaDataError(f"{where}: there is no row. Check the path and the filters.")
    return rows


def read_only(block: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return views that cannot be written to, so that no reader of a block changes it for others."""
    views = {name: values.view() for name, values in block.items()}
    for view in views.values():
        view.setflags(write=False)
    return views
