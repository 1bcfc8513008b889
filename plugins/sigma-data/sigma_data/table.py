"""Extract a section from a table by column name, as during training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import asdict, field, frozen

from sigma_data.categories import categories, one_hot
from sigma_data.frames import as_categories, cells, check_names, columns_of, order_of
from sigma_data.labels import Row, check_exact, list_first
from sigma_data.streaming import RowsToPredict, stream_rows
from sigma_kernel import Extractor, SigmaConfigError, SigmaDataError
from sigma_kernel.settings import SHAPE, finite, is_finite, must, optional

ALONE = (  # the remedy for a missing value where every row counts
    "There is one prediction for each row, so that none is dropped. Fill the value in, or leave such rows out, in "
    "pandas by frame.dropna(subset=...)."
)


def _are_names(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(name, str) for name in value)


def _are_categories(value: Any) -> bool:
    return isinstance(value, Mapping) and all(_are_names(names) and names for names in value.values())


def _tuples(value: Any) -> Any:
    """Return lists as tuples."""
    if isinstance(value, Mapping):
        return {key: _tuples(inner) for key, inner in value.items()}
    return tuple(value) if isinstance(value, list) else value


@frozen
class Table(Extractor):
    """The ``columns`` of a frame, or of a mapping of arrays, by name and in this order, as one ``section``.

    Args:
        columns: Names of the columns, in the order of a sample's elements.
        others: Columns that may be there as well, such as the target; any further one is an error.
        categories: Categories of the columns that are one-hot encoded, by column.
        missing: Number that replaces missing values; by default, they are an error.
        scale: Factor on the numbers.
        shape: Shape of a sample; by default a vector.
        section: Section to extract.
        kept: Columns that name a row, which are kept beside its predictions.
    """

    columns: tuple[str, ...] = field(converter=_tuples, validator=must(_are_names, "names"))
    others: tuple[str, ...] = field(default=(), converter=_tuples, validator=must(_are_names, "names"))
    categories: Mapping[str, tuple[str, ...]] = field(
        factory=dict, converter=_tuples, validator=must(_are_categories, "words by column")
    )
    missing: float | None = field(default=None, validator=optional(must(is_finite, "a finite number")))
    scale: float = field(default=1.0, validator=finite)
    shape: tuple[int, ...] | None = field(default=None, converter=_tuples, validator=optional(SHAPE))
    section: str = "inputs"
    kept: tuple[str, ...] = field(default=(), converter=_tuples, validator=must(_are_names, "names"))

    def extract(self, records: Any) -> dict[str, np.ndarray]:
        """Return the section; raises SigmaDataError for columns and values that do not fit."""
        return self.complete(records, ALONE)

    def stream(self, others: Sequence[Any], place: Any, rows: int, **how: Any) -> Iterator[RowsToPredict]:
        """Yield a table in parts, with the sections of other extractors; see :func:`stream_rows`."""
        return stream_rows([self, *others], place, rows, **how)

    def apply(self, table: Any, place: Row) -> np.ndarray:
        """Return the section of a table of Arrow; ``place`` says where a row is, for errors."""
        return self.complete(table, ALONE, place)[self.section]

    def count_replaced(self, table: Any) -> dict[str, tuple[int, int]]:
        """Return how many values of each column of numbers are missing; none of them is unseen."""
        numbers = [name for name in self.columns if name not in self.categories and self.missing is not None]
        return {name: (int(np.isnan(cells(table[name], name)).sum()), 0) for name in numbers}

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the names of the columns that are read."""
        return self.columns

    def complete(self, records: Any, remedy: str, place: Row | None = None) -> dict[str, np.ndarray]:
        """Return the section; the error for a missing value ends with a remedy."""
        there = columns_of(records)
        check_names(there, self.columns, self.others, "frame")
        values = self.read(there, place)
        if self.missing is not None:
            values = np.where(np.isnan(values), self.missing, values)
        for row, column in np.argwhere(np.isnan(values))[:1]:
            lost = int(np.isnan(values).any(axis=1).sum())
            where = f"column {self.names[column]!r}"
            where = f"{place(row)}: {where}" if place else f"frame: {where}, row {row}"
            raise SigmaDataError(f"{where}: a value is missing, in {lost} of {len(values)} rows. {remedy}")
        values = values if self.scale == 1.0 else values * self.scale
        return {self.section: values if self.shape is None else values.reshape(len(values), *self.shape)}

    @property
    def names(self) -> list[str]:
        """Return the name of the column that each number of a sample is made from."""
        return [name for name in self.columns for _ in self.categories.get(name, " ")]

    @property
    def categories_of_encoded(self) -> dict[str, tuple[str, ...]]:
        """Return the categories by the index of their column."""
        return {str(i): self.categories[name] for i, name in enumerate(self.columns) if name in self.categories}

    @property
    def elements(self) -> tuple[str, ...]:
        """Return a name for each number of a sample, ``colour = red`` for a category."""
        parts = [[f"{name} = {label}" for label in self.categories.get(name, ())] or [name] for name in self.columns]
        return tuple(title for part in parts for title in part)

    @property
    def titles(self) -> tuple[str, ...]:
        """Return the names of the elements; empty unless a sample is a vector."""
        return self.elements if self.shape is None else ()

    def check_read(self, trained: Table, where: str) -> None:
        """Raise SigmaDataError unless rows of this table can be put into the form of another, by name."""
        check_names(dict.fromkeys(self.columns), trained.columns, (), where, "Name those in `inputs`.")
        for name in self.columns:
            own, names = self.categories.get(name, ()), trained.categories.get(name, ())
            if bool(own) != bool(names):
                here, then = ("categories", "numbers") if own else ("numbers", "categories")
                remedy = "Take it out of `encode`" if own else "Name it in `encode`"
                raise SigmaDataError(f"{where}: column {name!r} holds {here}; in the training, {then}. {remedy}.")
            if new := [category for category in own if category not in names]:
                raise SigmaDataError(
                    f"{where}: column {name!r}: {new[0]!r} is not one of the {len(names)} categories of the training "
                    f"data: {list_first(names)}. Correct it, or leave such rows out."
                )
        if self.scale != trained.scale:
            raise SigmaDataError(f"{where}: scale is {self.scale:g}; in the training, {trained.scale:g}. Set that.")

    def read(self, columns: Mapping[str, Any], place: Row | None = None) -> np.ndarray:
        """Return the columns as float64, encoded, NaN for missing values."""
        parts = [self._read(name, columns[name], place or "frame: row {}".format) for name in self.columns]
        return np.column_stack(parts).astype(np.float64, copy=False)

    def _read(self, name: str, column: Any, place: Row) -> np.ndarray:
        values = cells(column, where := f"frame: column {name!r}")
        if name in self.categories:
            return one_hot(as_categories(values), self.categories[name], place, name)
        if values.dtype.kind == "T":
            raise SigmaDataError(
                f"{where}: holds words, such as {next(filter(None, values.tolist()), '')!r}. Name it in "
                f"Frame(..., encode=[{name!r}]), give it a categorical type, or leave it out."
            )
        check_exact(values, where, "row {}".format, "Give the column as floats, encode it, or leave it out.")
        return values

    def encoding(self, columns: Mapping[str, Any], encode: list[str]) -> dict[str, tuple[str, ...]]:
        """Return the categories of columns, as these rows have them."""
        for name in encode:
            if name not in self.columns:
                raise SigmaConfigError(f"Frame.encode: column {name!r} is not among the inputs. Name it there, too.")
        return {name: _categories(columns[name], f"frame: column {name!r}") for name in encode}

    def to_plain(self) -> dict[str, Any]:
        """Return the settings as a table of plain values."""
        own = asdict(self, filter=lambda one, value: value != one.default and value not in ({}, ()))
        return {"type": "sigma-data:table", **_to_lists(own)}


def _categories(column: Any, where: str) -> tuple[str, ...]:
    """Return the categories of a column, in the order of an ordered type."""
    order = order_of(column)
    texts = as_categories(cells(np.asarray(order), where)).tolist() if order else ()
    return categories(as_categories(cells(column, where)), where, order=[text.strip() for text in texts])


def read_table(learned: Mapping[str, Any], section: str, where: str) -> Table | None:
    """Return the table of a section that a run saved, None if it saved none; raise SigmaDataError if it is damaged."""
    try:
        if section not in learned.get("frames", {}):
            return None
        held = learned["frames"][section].items()
        return Table(**{name: value for name, value in held if name not in ("type", "single")})  # of earlier versions
    except (AttributeError, LookupError, TypeError, SigmaConfigError) as error:
        raise SigmaDataError(
            f"{where}: the names of its columns are damaged in the checkpoint: it holds {learned['frames']!r:.60}. Use "
            "another checkpoint, or train again."
        ) from error


def _to_lists(value: Any) -> Any:
    """Return tuples as lists."""
    if isinstance(value, Mapping):
        return {key: _to_lists(inner) for key, inner in value.items()}
    return list(value) if isinstance(value, tuple) else value
