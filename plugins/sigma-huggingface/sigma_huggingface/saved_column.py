"""Base classes of data sets of a column of a saved dataset: of what is predicted, and of files in the column."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from attrs import define, field

from sigma_data.datasets.splits import Divided
from sigma_data.pictures.labelled import LabelledPictures
from sigma_data.pictures.opening import OpenPicture
from sigma_huggingface.files import SavedFiles, read_files
from sigma_huggingface.folder import holds_datasets, split_saved
from sigma_huggingface.targets import Wanted
from sigma_kernel.settings import in_


@define(eq=False, slots=False)
class SavedColumn(Divided):
    """A column of a dataset that ``save_to_disk`` of Hugging Face's library ``datasets`` has written.

    Args:
        folder: Folder of the dataset; in a configuration, a relative one starts in the directory of the configuration.
        target: Column to predict; or several, which hold numbers.
        targets: What the target holds: classes, numbers, or what the cost takes.
        missing_targets: What rows without a target, or of the class -1, do: raise an error, or are dropped.
        group: Column that names the group of a row, such as a person; rows of a group stay in one split.
    """

    folder: Path = field(converter=Path)
    target: str | tuple[str, ...] = field(default="label", kw_only=True)
    targets: Literal["auto", "classes", "numbers"] = field(
        default="auto", validator=in_(("auto", "classes", "numbers")), kw_only=True
    )
    missing_targets: Literal["refuse", "drop"] = field(
        default="refuse", validator=in_(("refuse", "drop")), kw_only=True
    )
    group: str = field(default="", kw_only=True)

    @property
    def target_settings(self) -> Wanted:
        """Return what is to be predicted."""
        return Wanted(self.target, self.targets, self.missing_targets, self.group)

    def claims(self, path: Path) -> bool:
        """Return whether a path is a saved dataset, or several."""
        return holds_datasets(path)


@define(eq=False, slots=False)
class SavedFilesColumn(SavedColumn):
    """A column of files, such as pictures or sounds.

    Args:
        column: Column of the files; by default the only one.
    """

    feature: ClassVar[str]  # of the column, as ``datasets`` calls it

    column: str = field(default="", kw_only=True)
    _files: SavedFiles | None = field(default=None, init=False, repr=False)

    @property
    def root(self) -> Path:
        """Return the folder."""
        return self.folder

    def list_splits(self) -> list[str]:
        """Return the splits of a dictionary; only descriptions are read."""
        return [*split_saved(self.folder)]

    def list_files(self) -> SavedFiles:
        """Return the files with their labels."""
        self._files = read_files(self.folder, self.feature, self.column, self.target_settings)
        return self._files

    def open_files(self) -> AbstractContextManager[OpenPicture]:
        """Return the function that opens files while the dataset is open."""
        return (self._files or self.list_files()).open_all()

    def find_groups(self, listed: LabelledPictures, rows: np.ndarray) -> tuple[Hashable, ...] | None:
        """Return the groups of some rows."""
        return listed.select_groups(rows) if isinstance(listed, SavedFiles) else None

    def files(self, path: Path) -> list[Path]:
        """Return the files in a folder, in the order of their samples; none for a saved dataset."""
        return [] if holds_datasets(path) else super().files(path)
