"""Your own data frame as a data set."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from numbers import Integral
from typing import Any, Literal

import numpy as np
from attrs import define, evolve, field

from sigma_data.arrays import Arrays, Framed, NamedTargets
from sigma_data.datasets.csv import MISSING
from sigma_data.datasets.splits import Divided
from sigma_data.frames import cells, check_names, columns_of, is_categorical, named_columns, order_of, tight
from sigma_data.labels import Codes, Labels, check_exact
from sigma_data.readers.csv import REST
from sigma_data.table import Table
from sigma_kernel import Label, SigmaConfigError, SigmaDataError
from sigma_kernel.settings import SHAPE, finite, in_, optional


@define(eq=False)
class Frame(Divided):
    """A data frame (pandas, polars, pyarrow and others), with one row per sample; its index is not used.

    It is read like the same table in a file, see :class:`sigma_data.Csv`.  Columns of a categorical type are one-hot
    encoded as well, and booleans count as 0 and 1.  Categories of an ordered type keep their order, also as classes.
    Frames to predict from may have their columns in any order.

    A column is given by its name, or by its number: the name of a numbered column, else counted from 0.

    Args:
        frame: The frame.
        target: Column to predict, or several.
        inputs: Columns to predict it from; ``"*"`` is all others.
        exclude: Columns to leave out of those of ``"*"``, such as identifiers.
        weights: Column of sample weights.
        group: Column that names the group of a row, such as a person; rows of a group stay in one split.
        targets: What the target holds: classes, which become sorted class indices, numbers, or either.
        encode: Columns of words or integers to one-hot encode.
        shape: Shape of a sample; by default a vector.
        scale: Factor on the inputs.
        missing: What missing values do: raise an error, drop the row, or become this number (in inputs only).
        split: Share of the rows of each split, by its name; by default, all are for training.
    """

    frame: Any = field(repr=False)
    target: str | int | Sequence[str | int]
    inputs: str | int | Sequence[str | int] = field(default=(REST,), kw_only=True)
    exclude: str | int | Sequence[str | int] = field(default=(), kw_only=True)
    weights: str | int | None = field(default=None, kw_only=True)
    group: str | int | None = field(default=None, kw_only=True)
    targets: Literal["auto", "classes", "numbers"] = field(
        default="auto", validator=in_(("auto", "classes", "numbers")), kw_only=True
    )
    encode: str | int | Sequence[str | int] = field(default=(), kw_only=True)
    shape: Sequence[int] | None = field(default=None, validator=optional(SHAPE), kw_only=True)
    scale: float = field(default=1.0, validator=finite, kw_only=True)
    missing: Literal["refuse", "drop"] | float = field(default="refuse", validator=MISSING, kw_only=True)
    split: Mapping[str, float] = field(factory=lambda: {"training": 1.0}, kw_only=True)
    _groups: tuple[Hashable, ...] | None = field(default=None, init=False, repr=False)  # of the rows

    def all_rows(self) -> tuple[Arrays, tuple[Label, ...]]:
        """Return all rows that are not dropped."""
        there = columns_of(self.frame)
        targets, weights, group = (self._column_setting(setting, there) for setting in ("target", "weights", "group"))
        others = (*targets, *weights, *group)
        check_names(there, others, tuple(there), "frame")
        if not targets:
            raise SigmaDataError("frame: there is no target. Name a column as `target`.")
        table = self._table(there, others)
        gone = _missing([cells(there[name], f"frame: column {name!r}") for name in others])
        if self.missing == "drop":
            gone |= np.isnan(table.read(there)).any(axis=1)
        elif gone.any():
            raise SigmaDataError(
                f"frame: row {int(gone.argmax())}: the target, the weight or the group is missing. Fill it in, or set "
                "missing = 'drop'."
            )
        if gone.all():
            raise SigmaDataError("frame: there is no row without missing values. Name fewer columns as `inputs`.")
        kept = {name: np.asarray(column)[~gone] if gone.any() else column for name, column in there.items()}
        order = order_of(there[targets[0]])
        values = self._targets({name: kept[name] for name in targets}, order, np.flatnonzero(~gone))
        framed = Framed(kept, table, "Set exclude=[{!r}].", self.split_by == "block")
        sections: dict[str, Any] = {"inputs": framed, "targets": NamedTargets(values, targets)}
        for name in weights:
            sections["weights"] = cells(kept[name], f"frame: column {name!r}")
        for name in group:
            self._groups = tuple(cells(kept[name], f"frame: column {name!r}").tolist())
        rows = Arrays(**sections)
        return rows, rows.class_names("targets")

    def groups(self) -> Sequence[Hashable] | None:
        """Return the name of the group of each row, if there are groups."""
        return self._groups

    def _table(self, there: Mapping[str, Any], others: Sequence[str]) -> Table:
        named, encoded = self._column_setting("inputs", there), self._column_setting("encode", there)
        gone = {*others, *named, *self._column_setting("exclude", there)}
        rest = [name for name in there if name not in gone]
        columns = tuple(name for column in named for name in (rest if column == REST else [column]))
        if not columns:
            raise SigmaDataError("frame: there is no column except the target. Add some to predict it from.")
        check_names(there, columns, tuple(there), "frame")
        fill = None if isinstance(self.missing, str) else float(self.missing)
        unread = tuple(name for name in there if name not in columns)
        aside = (*self._column_setting("exclude", there), *self._column_setting("group", there))
        table = Table(columns, unread, missing=fill, scale=self.scale, shape=self.shape, kept=aside)
        categorical = [name for name in columns if is_categorical(there[name])]
        return evolve(table, categories=table.encoding(there, [*dict.fromkeys([*encoded, *categorical])]))

    def _column_setting(self, setting: str, there: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the columns of a setting."""
        given = getattr(self, setting)
        if given is None and setting != "target":
            return ()
        if setting in ("weights", "group") and not isinstance(given, str | Integral):
            raise SigmaConfigError(f"Frame.{setting}: must be the name of one column (got {given!r}).")
        return named_columns(given, there, f"Frame.{setting}")

    def _targets(self, columns: Mapping[str, Any], order: Sequence[Any], rows: np.ndarray) -> np.ndarray | Labels:
        """Return the targets as rows of numbers, or as labels for words and integers in one column."""
        where = "frame: the target"
        arrays = [cells(column, where) for column in columns.values()]
        first, codes = arrays[0], Codes(arrays[0], where, lambda row: f"row {rows[row]}", order)
        if len(arrays) == 1 and self.targets != "numbers":
            if first.dtype.kind == "T" or self.targets == "classes":
                return Labels.from_codes(codes, first.dtype.kind != "T")
            if tight(np.asarray(next(iter(columns.values())))).dtype.kind == "b":
                return Labels(Codes(first.astype(bool), codes.where), first[:, None])
            if np.array_equal(first, np.rint(first)):
                return Labels(codes, first[:, None])
        for name, values in zip(columns, arrays, strict=True):
            _check_number(values, f"frame: column {name!r}, row {rows[0]}", len(arrays) > 1)
            check_exact(values, f"frame: column {name!r}", codes.row, "Give such numbers as floats.")
        return np.stack(arrays, axis=1)


def _check_number(values: np.ndarray, where: str, several: bool) -> None:
    """Raise SigmaDataError for a target of words."""
    if values.dtype.kind == "T":
        advice = "make it the only `target`, whose words are classes" if several else "set targets='classes'"
        raise SigmaDataError(f"{where}: the target {str(values[0])!r} is not a number. Correct it, or {advice}.")


def _missing(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return which rows have no value in some column."""
    masks = [values == "" if values.dtype.kind == "T" else np.isnan(values) for values in columns]
    return np.asarray(np.any(masks, axis=0))
