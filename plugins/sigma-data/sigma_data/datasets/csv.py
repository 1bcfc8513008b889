"""Your own CSV table as a data set."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np
from attrs import define, field

from sigma_data.arrays import Arrays, NamedTargets, Titled, scale_numbers
from sigma_data.categories import categories, one_hot, parse_categories
from sigma_data.datasets.csv_target import CsvTarget, missing_values
from sigma_data.datasets.splits import Divided
from sigma_data.examination import examine_columns
from sigma_data.extractors.columns import as_tuple, cut
from sigma_data.readers.csv import DELIMITER, REST, CsvReader, place
from sigma_data.readers.figures import DECIMAL, THOUSANDS, Figures, differ
from sigma_data.readers.samples import SamplesReader
from sigma_data.sources import local
from sigma_data.table import Table, read_table
from sigma_kernel import Label, SigmaConfigError, SigmaDataError, Source
from sigma_kernel.settings import SHAPE, finite, in_, is_finite, min_len, must, optional


class _Table(CsvReader):
    """Read a table; remedies in its errors name settings of the data set."""

    gap_advice = "set missing = 'drop' to leave such rows out, or to the number to put in its place"
    words_advice = "name the column in `encode` if it holds words, or the other columns in `inputs`"


MISSING = must(lambda value: value in ("refuse", "drop") or is_finite(value), "'refuse', 'drop' or a number")


@define(eq=False)
class Csv(Divided):
    """A CSV file, compressed or not, with one row per sample.

    With ``targets = "auto"``, a column of words holds classes, and a column of integers what the cost takes: classes
    for a classification cost such as ``softmax_cross_entropy``, else numbers. A column of ``true`` and ``false``, in
    any case, holds booleans: 1 and 0, and the classes False and True of a target.  A value is missing if its cell is
    blank, ``?``, ``NA``, ``NaN``, ``None`` or ``null``.

    Columns in ``encode`` are one-hot encoded.  Their categories are the words of all rows, in alphabetical order, or
    integers, in numerical order; they are saved with a run and used for samples to predict from.  Only a blank is
    missing among them; a number for ``missing`` goes to all columns of the categories.

    Args:
        path: Path of the file; in a configuration, a relative one starts in the directory of the configuration.
        target: Column to predict, by its name in the header or by its number from 0; or several.
        inputs: Columns to predict it from, which hold numbers unless they are encoded; ``"*"`` is all others.
        exclude: Columns to leave out of those of ``"*"``, such as an index or identifiers.
        weights: Column of sample weights; none by default.
        group: Column that names the group of a row, such as a person; rows of a group stay in one split.
        group_before: Separator after the name of a group; the last one in the cell counts. With ``_``, the rows
            ``S01_1`` and ``S01_2`` belong to one group. By default, the whole cell is the name.
        origin: Where to download the file; the error for a missing file says so.
        targets: What the target holds: classes, which become sorted class indices, numbers, or either.
        encode: Columns to one-hot encode.
        shape: Shape of a sample; by default a vector.
        scale: Factor on the inputs.
        header: Whether the first line holds the names of columns; otherwise they have numbers from 0.
        delimiter: Character between two values.
        missing: What missing values do: raise an error, drop the row, or become this number (in inputs only).
        encoding: Encoding of the file.
        decimal: Decimal mark.
        thousands: Separator of groups of three digits; none by default.
    """

    path: Path = field(converter=Path)
    target: str | int | tuple[str | int, ...]
    inputs: tuple[str | int, ...] = field(default=(REST,), validator=min_len(1), kw_only=True)
    exclude: str | int | tuple[str | int, ...] = field(default=(), kw_only=True)
    targets: Literal["auto", "classes", "numbers"] = field(
        default="auto", validator=in_(("auto", "classes", "numbers")), kw_only=True
    )
    weights: str | int | None = field(default=None, kw_only=True)
    group: str | int | None = field(default=None, kw_only=True)
    group_before: str = field(default="", kw_only=True)
    origin: str = field(default="", kw_only=True)
    encode: str | int | tuple[str | int, ...] = field(default=(), kw_only=True)
    shape: tuple[int, ...] | None = field(default=None, validator=optional(SHAPE), kw_only=True)
    scale: float = field(default=1.0, validator=finite, kw_only=True)
    header: bool = field(default=True, kw_only=True)
    delimiter: str = field(default=",", validator=DELIMITER, kw_only=True)
    missing: Literal["refuse", "drop"] | float = field(default="refuse", validator=MISSING, kw_only=True)
    encoding: str = field(default="utf-8-sig", kw_only=True)
    decimal: str = field(default=".", validator=DECIMAL, kw_only=True)
    thousands: str | None = field(default=None, validator=[THOUSANDS, differ], kw_only=True)
    _categories: dict[str, tuple[str, ...]] = field(factory=dict, init=False, repr=False)  # by index among the inputs
    _found: tuple[tuple[str, ...], tuple[str, ...]] = field(default=((), ()), init=False, repr=False)  # inputs, others
    _groups: tuple[str, ...] | None = field(default=None, init=False, repr=False)  # of the rows
    _predicted: tuple[str, ...] = field(default=(), init=False, repr=False)  # names of the target

    def __attrs_post_init__(self) -> None:
        """Raise a SigmaError for a column to encode that is no input, and for settings that need others, or none."""
        if self.group_before and self.group is None:
            raise SigmaConfigError(
                "Csv.group_before: there is no `group`. Set `group` to the column with the groups, too."
            )
        if as_tuple(self.exclude) and REST not in self.inputs:
            raise SigmaConfigError("Csv.exclude: `inputs` names the columns already. Leave one of both out.")
        for column in as_tuple(self.encode):
            if column in (*self._columns_aside, *as_tuple(self.exclude)) or not {column, REST} & {*self.inputs}:
                raise _no_input(column)

    @property
    def learned(self) -> dict[str, Any]:
        """Return the names of columns, and the categories of encoded ones, by index, for samples to predict from."""
        if not as_tuple(self.encode) and (self._loaded is None or not self.header):
            return {}
        self._load_once()
        kept = {"categories": {place: list(names) for place, names in self._categories.items()}}
        frames = {"frames": {"inputs": self._table().to_plain()}} if self.header else {}
        return {**(kept if self._categories else {}), **frames}

    def _table(self) -> Table:
        """Return the table that extracts the inputs from a frame."""
        inputs, others = self._found
        fill = None if isinstance(self.missing, str) else float(self.missing)
        encoded = {inputs[int(i)]: names for i, names in self._categories.items()}
        aside = (*as_tuple(self.exclude), *(() if self.group is None else (self.group,)))
        names = self._header() if aside else []
        kept = dict.fromkeys(names[place(column, names, str(self.path))] for column in aside)
        return Table(inputs, others, encoded, fill, self.scale, self.shape, kept=(*kept,))

    def all_rows(self) -> tuple[Arrays, tuple[Label, ...]]:
        """Return all rows that are not dropped."""
        lines, chosen, words = self._columns()
        groups = {} if self.group is None else self._group_names(words.pop(), lines)
        names = [*as_tuple(self.target), self.weights]  # weights are numbers already
        target = CsvTarget(self.path, as_tuple(self.target), self.targets, Figures(self.decimal, self.thousands))
        targets = [
            target.parse(column, lines, f"column {name!r}: the target") if column.dtype.kind == "T" else column
            for name, column in zip(names, words, strict=False)
        ]
        inputs, targets, lines = self._present(self._encode_inputs(chosen, lines), targets, lines)
        shaped = cut(scale_numbers(inputs, self.scale), self.shape, str(self.path))
        weights = {} if self.weights is None else {"weights": targets.pop()}  # the last
        self._groups = tuple(groups[line] for line in lines.tolist()) if groups else None
        table = self._table() if self.header else None
        titled = Titled(shaped, table.titles if table else (), table, str(self.path), self._examine_inputs(chosen))
        rows = Arrays(inputs=titled, targets=NamedTargets(target.labels(targets, lines), self._predicted), **weights)
        return rows, rows.class_names("targets")

    def groups(self) -> Sequence[Hashable] | None:
        """Return the name of the group of each row, if there are groups."""
        return self._groups

    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return the samples of another file, with the same columns; its target may be left out.

        Named columns may be in any order.  Their names and categories are those ``learned`` by a run, else those of
        this file.
        """
        missing = None if isinstance(self.missing, str) else self.missing
        if learned is None:
            learned = self.learned if as_tuple(self.encode) else {}
        table = read_table(learned, "inputs", str(self.path))
        saved = learned.get("categories", {}) if table is None else table.categories_of_encoded
        names = self._names() if table is None else table.columns
        by_column = parse_categories(saved, len(as_tuple(self.encode)), prod(shape), str(self.path))
        reader = SamplesReader(
            shape, white, self.scale, names, (*self._columns_aside, *as_tuple(self.exclude)), missing, self.delimiter,
            categories=by_column, header=self.header, **self._form,
        )  # fmt: skip
        return reader.read(local(path))["values"]

    def _names(self) -> tuple[str | int, ...]:
        """Return the columns of the inputs, by name if this file has a header."""
        if REST not in self.inputs or not self.header or not self.path.is_file():
            return self.inputs
        return self._remaining_columns()

    def _remaining_columns(self) -> tuple[str, ...]:
        """Return the columns of this file that no setting takes out of the inputs."""
        names = [cell.strip() if self.header else str(i) for i, cell in enumerate(self._top())]
        others = [place(other, names, str(self.path)) for other in (*self._columns_aside, *as_tuple(self.exclude))]
        return tuple(name for i, name in enumerate(names) if i not in others)

    @property
    def _columns_aside(self) -> tuple[str | int, ...]:
        """Return the columns that are no inputs: the target, the weights, and the groups."""
        return (*as_tuple(self.target), *(column for column in (self.weights, self.group) if column is not None))

    def _source(self) -> Source:
        """Return the file; SigmaDataError, with its origin, if it is missing."""
        try:
            return local(self.path)
        except SigmaDataError as error:
            if not self.origin or self.path.exists():
                raise
            raise SigmaDataError(f"{error} It can be had from {self.origin}; set `path` to your copy.") from None

    def _header(self) -> list[str]:
        """Return the names in the first line; none without a header."""
        return [cell.strip() for cell in self._top()] if self.header else []

    def _top(self) -> list[str]:
        return CsvReader(delimiter=self.delimiter, **self._form).top(self._source())

    def _columns(self) -> tuple[np.ndarray, dict[str, np.ndarray], list[np.ndarray]]:
        """Return the line number of each row, the columns of the inputs, and those of the target as words."""
        targets, rest = self._columns_aside, tuple(self.inputs) == (REST,) and not as_tuple(self.exclude)
        if not as_tuple(self.target):
            raise SigmaDataError(f"{self.path}: there is no target. Name a column as `target`.")
        wanted = None if rest else (*(self._remaining_columns() if as_tuple(self.exclude) else self.inputs), *targets)
        gaps: Literal["refuse", "nan"] = "refuse" if self.missing == "refuse" else "nan"
        text = (*as_tuple(self.target), *as_tuple(self.encode), *(() if self.group is None else (self.group,)))
        reader = _Table(wanted, text, self.header, self.delimiter, gaps, **self._form)
        lines, columns = reader.table(self._source())
        names = list(columns)
        if rest:
            outputs = [names[place(target, names, str(self.path))] for target in targets]
            if both := [column for column in as_tuple(self.encode) if names[place(column, names, "")] in outputs]:
                raise _no_input(both[0])
        else:
            outputs = names[len(names) - len(targets) :]
        if len(outputs) == len(names):
            raise SigmaDataError(f"{self.path}: there is no column except the target. Add some to predict it from.")
        inputs = {name: values for name, values in columns.items() if name not in outputs}
        self._found = tuple(inputs), tuple(name for name in self._header() if name not in inputs)
        self._predicted = tuple(outputs[: len(as_tuple(self.target))]) if self.header else ()
        return lines, inputs, [columns[name] for name in outputs]

    def _group_names(self, cells: np.ndarray, lines: np.ndarray) -> dict[int, str]:
        """Return the name of the group of each line; SigmaDataError if there is none."""
        names = [cell.strip() for cell in cells.tolist()]
        if self.group_before:
            names = [cell.rpartition(self.group_before)[0] for cell in names]
        if "" in names:
            what = f" before a {self.group_before!r}" if self.group_before else ""
            raise SigmaDataError(
                f"{self.path}:{lines[names.index('')]}: column {self.group!r}: names no group{what}. Fill it "
                "in, or leave the row out."
            )
        return dict(zip(lines.tolist(), names, strict=True))

    def _encode_inputs(self, columns: Mapping[str, np.ndarray], lines: np.ndarray) -> np.ndarray:
        """Return the input columns as one array, categorical ones one-hot encoded; remember their categories."""
        parts, self._categories = [], {}
        for i, (name, values) in enumerate(columns.items()):
            if values.dtype.kind == "T":
                where = f"{self.path}: column {name!r}"
                self._categories[str(i)] = names = categories(values, where, lambda row: f"line {lines[row]}")
                values = one_hot(values, names, lambda row: f"{self.path}:{lines[row]}", name)
            parts.append(values)
        if len(self._categories) < len(as_tuple(self.encode)):
            raise SigmaConfigError(f"Csv.encode: names a column twice (got {as_tuple(self.encode)}). Name each once.")
        return np.column_stack(parts)

    def _examine_inputs(self, columns: Mapping[str, np.ndarray]) -> tuple[str, ...]:
        """Return what is odd about the columns of the inputs."""
        numbers = {name: values for name, values in columns.items() if values.dtype.kind == "f"}
        counts = {name: len(self._categories[str(i)]) for i, name in enumerate(columns) if name not in numbers}
        rows = len(next(iter(columns.values())))
        remedy = "Set exclude = [{!r}]." if self.header else "Set exclude = [{}]."
        return examine_columns(numbers, counts, rows, remedy.format, self.split_by == "block")

    def _present(
        self, inputs: np.ndarray, targets: list[np.ndarray], lines: np.ndarray
    ) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
        """Return inputs, targets and lines, with missing values handled."""
        lost = np.any([missing_values(values) for values in targets], axis=0)
        if self.missing == "drop":
            kept = ~(lost | np.isnan(inputs).any(axis=1))
            if not kept.any():
                raise SigmaDataError(f"{self.path}: a value is missing in every row. Name fewer columns as `inputs`.")
            return inputs[kept], [values[kept] for values in targets], lines[kept]
        if lost.any():
            first = f"{self.path}:{lines[int(lost.argmax())]}"
            what = "target" if self.weights is None else "target or the weight"
            raise SigmaDataError(f"{first}: the {what}: a value is missing. Fill it in, or set missing = 'drop'.")
        filled = inputs if isinstance(self.missing, str) else np.where(np.isnan(inputs), self.missing, inputs)
        return filled, targets, lines

    @property
    def _form(self) -> dict[str, Any]:
        """Return the settings of the file's format."""
        return {"encoding": self.encoding, "decimal": self.decimal, "thousands": self.thousands}

    @property
    def format(self) -> dict[str, Any]:
        """Return the settings with which other tables like this file are opened."""
        return {"delimiter": self.delimiter, "header": self.header, **self._form}


def _no_input(column: str | int) -> SigmaConfigError:
    return SigmaConfigError(
        f"Csv.encode: column {column!r} is not among the inputs. Write it as in `inputs`, or leave it out."
    )
