"""Base class of data sets of files with labels, such as pictures and sounds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
from attrs import define, field

from sigma_data.datasets.splits import Divided
from sigma_data.pictures.labelled import LabelledPictures
from sigma_data.pictures.opening import OpenPicture


@define(eq=False, kw_only=True)
class FileSet(Divided):
    """Files of one folder, with their labels."""

    _groups: Sequence[Hashable] | None = field(default=None, init=False, repr=False)

    @property
    @abstractmethod
    def root(self) -> Path:
        """Return the folder or the archive of the files."""

    @abstractmethod
    def list_splits(self) -> list[str]:
        """Return the names of the splits that the data have, that for training first; empty if there are none."""

    @abstractmethod
    def list_files(self) -> LabelledPictures:
        """Return the files with their labels."""

    @abstractmethod
    def open_files(self) -> AbstractContextManager[OpenPicture]:
        """Return the function that opens files while the place is open."""

    @abstractmethod
    def find_groups(self, listed: LabelledPictures, rows: np.ndarray) -> Sequence[Hashable] | None:
        """Return the group of each of some rows; None if there are no groups."""

    def groups(self) -> Sequence[Hashable] | None:
        """Return the group of each row, if there are groups."""
        return self._groups
