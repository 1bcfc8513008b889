"""Your own series as a data set: windows of the past, and the steps that follow them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from attrs import define, field

from sigma_data.datasets.in_blocks import InBlocks
from sigma_data.datasets.splits import Loaded, Splits, read_fold, shares
from sigma_data.extractors.columns import as_tuple
from sigma_data.prepared.opening import open_prepared
from sigma_data.readers.csv import place as find_column
from sigma_data.sources import stamp_of
from sigma_data.sources.file import File
from sigma_data.splitting import FOLDED, Folding
from sigma_data.tables import open_alike, open_table
from sigma_kernel import Encoder, SigmaConfigError
from sigma_kernel.settings import ge, in_

Gaps = Literal["cut", "hold"]


@define(eq=False)
class Series(Splits, InBlocks):
    """A table with a row per time: a sample has ``past`` rows as inputs, (past, columns), and predicts the next ones.

    Inputs are the targets so far, other columns, and the calendar of the steps to predict, each by its encoder, fitted
    on the training rows.  Targets are (ahead * targets,), in the units of their columns.  Windows never cross a gap or
    the border of a group, and are views of the rows.  Rows are sorted by time; times that occur twice are an error.

    A table of more than 1 GiB of numbers is encoded once, and windows are read in blocks.

    Splits follow each other in time, the same in all groups. The steps to predict of a window are within one split; the
    past of later splits may begin in the one before, as it does when predicting.

    Args:
        path: Path of a table of any format; in a configuration, a relative one starts in its directory.
        target: Column to predict; or several. All hold numbers.
        time: Column of dates, times or whole numbers.
        past: Number of rows that a window reads.
        ahead: Number of steps to predict.
        group: Column that names the series of a row, if the table holds several.
        known: Columns of which the values are known in advance, such as holidays; a row has those of ``ahead`` steps
            later.  A file to predict from continues them for so many rows, without a target.
        columns: Encoder by column, or ``"exclude"``; other columns get one that suits their kind.
        exclude: Columns to leave out.
        step: The distance of two rows that follow each other: the most frequent one (``auto``), or any (``row``), for
            series such as those of trading days.
        gaps: What missing steps and targets do: no window covers them (``cut``), or the row before stands for them in
            the past of a window (``hold``); they are never predicted.
        split: Share of the times of each split, the oldest first.
        fold: Which of several folds this is, such as ``{ number = 0, of = 5 }``: the times of training and validation
            are divided into one part more than that, validation is the part after ``number``, training all before.
        format: Settings of the file's format, such as ``{ delimiter = ";", decimal = "," }``; see ``open_table``.
    """

    path: Path = field(converter=Path)
    target: str | int | tuple[str | int, ...]
    time: str | int
    past: int = field(validator=ge(1))
    ahead: int = field(default=1, validator=ge(1))
    group: str | int | None = field(default=None, kw_only=True)
    known: str | int | tuple[str | int, ...] = field(default=(), kw_only=True)
    columns: Mapping[str, Encoder | Literal["exclude"]] = field(factory=dict, kw_only=True)
    exclude: str | int | tuple[str | int, ...] = field(default=(), kw_only=True)
    step: Literal["auto", "row"] = field(default="auto", validator=in_(("auto", "row")), kw_only=True)
    gaps: Gaps = field(default="cut", validator=in_(("cut", "hold")), kw_only=True)
    split: Mapping[str, float] = field(
        factory=lambda: {"training": 0.7, "validation": 0.15, "test": 0.15}, validator=shares, kw_only=True
    )
    fold: Folding | None = field(default=None, converter=read_fold, kw_only=True)
    format: Mapping[str, Any] = field(factory=dict, kw_only=True)
    _held: dict[str, Any] = field(factory=dict, init=False, repr=False)
    _opened: tuple[Any, Any] = field(default=(None, None), init=False, repr=False)  # the last table to predict from

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError without a target, and unless training comes first."""
        if not as_tuple(self.target):
            raise SigmaConfigError("Series.target: there is none. Name the column to predict.")
        if next(iter(self.split)) != "training":
            raise SigmaConfigError("Series.split: 'training' must come first, as splits are in the order of time.")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the splits, in the order of time."""
        names = tuple(self.split)
        return names if self.fold is None else (*FOLDED, *(name for name in names if name not in FOLDED))

    @property
    def learned(self) -> dict[str, Any]:
        """Return the columns with what their encoders learned, and the form of windows, to predict with."""
        self._load_once()
        return self._held

    def load(self) -> Loaded:
        """Return the splits; there are no classes."""
        if files := self.find_files():
            blocks, prepared = import_module("sigma_data.series.in_blocks"), open_prepared(self, files)
            roles = self._roles(prepared.names, prepared.name)
            parts, learned = blocks.read_blocks(self, prepared, roles, self.layout)
        else:
            series, source = import_module("sigma_data.series.training"), open_table(self.path, **self.format)
            parts, learned = series.read_splits(self, source, self._roles(source.schema.names, source.name))
        self._held.update(learned)
        return parts, ()

    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return all windows of another table with the same columns, by group and time."""
        held = self.learned if learned is None else learned
        values: np.ndarray = self._open_new(path, held).samples()
        return values

    def identify(self, path: Path, learned: Mapping[str, Any] | None = None) -> dict[str, list[str]]:
        """Return what identifies the windows of another table: the group, and the last time of the past of each."""
        held = self.learned if learned is None else learned
        columns: dict[str, list[str]] = self._open_new(path, held).identify()
        return columns

    def _open_new(self, path: Path, learned: Mapping[str, Any]) -> Any:
        """Return the rows of another table; those of a file that is the same as before are kept."""
        key = (path, stamp_of(File(path)), learned)
        if not Path(path).is_file() or key != self._opened[0]:
            rows = import_module("sigma_data.series.prediction").NewRows.open(open_alike(path, self.format), learned)
            self._opened = (key, rows)
        return self._opened[1]

    def _roles(self, names: Sequence[str], where: str) -> dict[str, Any]:
        """Return the names of the columns by what they are for; raise SigmaDataError for those that are not there."""

        def name_all(given: Any) -> tuple[str, ...]:
            return tuple(names[find_column(c, names, where)] for c in as_tuple(() if given is None else given))

        targets, advance, gone = name_all(self.target), name_all(self.known), name_all(self.exclude)
        (time,), group = name_all(self.time), (name_all(self.group) or (None,))[0]
        for column in self.columns:
            find_column(column, names, where)
        gone = (*gone, *(name for name, encoder in self.columns.items() if encoder == "exclude"))
        if wrong := {time, group} & {*targets, *advance} or {*targets} & {*advance}:
            raise SigmaConfigError(f"Series: column {min(map(str, wrong))!r} cannot have two roles. Name it once.")
        others = tuple(name for name in names if name not in {*targets, *advance, *gone, time, group})
        return {"targets": targets, "known": advance, "others": others, "time": time, "group": group, "gone": gone}
