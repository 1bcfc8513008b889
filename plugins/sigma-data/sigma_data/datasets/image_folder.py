"""Your own folder of pictures as a data set."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
from attrs import define, field

from sigma_data.datasets.picture_set import PictureSet
from sigma_data.datasets.picture_table import LabelTable, read_listed
from sigma_data.pictures.labelled import LabelledPictures, read_folders, split_folders
from sigma_data.profiling.pictures import inspect_pictures
from sigma_kernel import Inspection, SigmaConfigError
from sigma_kernel.settings import in_


def _expression(owner: Any, attribute: Any, value: str) -> None:
    try:
        re.compile(value)
    except re.error as error:
        raise SigmaConfigError(f"ImageFolder.group: {value!r} is no regular expression: {error}.") from None


@define(eq=False)
class ImageFolder(PictureSet):
    """Pictures in folders, one for each class, or listed with their labels in a table.

    ``inputs`` have the shape (3, height, width), in grey (1, height, width). Any PNG, JPEG, GIF, BMP, TIFF or WebP file
    is read, of animations the first frame, and brought to one size: turned as its EXIF data say, blended with the
    background where it is transparent, rounded to 8 bits, and resized without aliasing. Rows are in the order of their
    paths. Hidden files are left out. Pictures are decoded by several threads, kept as bytes, and scaled block by block.

    Folders named ``training`` (or ``train``), ``validation`` (``val``) and ``test`` above those of the classes are
    splits. ``split`` then divides the first of them.

    Sets that need more than ``memory`` are decoded once, to files in a cache from which later runs read. More than 256
    MiB of pictures, as floats, are several blocks, each with its share of every folder.

    Needs Pillow: ``python -m pip install "sigma-data[images]"``.

    Args:
        folder: Folder of the pictures, or a zip or tar archive of it, which is not extracted; in a configuration, a
            relative one starts in the directory of the configuration.
        group: Regular expression that finds the group of a picture in its path below the folder, such as a person;
            the pictures of a group stay in one split. The group is what its parentheses match, or all that matches.
        table: Table of paths and labels, a CSV file or a data frame; the folders then have no meaning.
        column: Column of the table with paths below the folder.
        target: Column to predict, or several, such as one of 0 and 1 for each label.
        targets: What the target holds: classes, which become sorted class indices, numbers, or either.
        separator: Separator of several labels in the target; the targets are then 0 or 1 for each label.
    """

    folder: Path = field(converter=Path)
    group: str = field(default="", validator=_expression, kw_only=True)
    table: Path | Any = field(default=None, kw_only=True, repr=False)
    column: str = field(default="path", kw_only=True)
    target: str | tuple[str, ...] = field(default="label", kw_only=True)
    targets: Literal["auto", "classes", "numbers"] = field(
        default="auto", validator=in_(("auto", "classes", "numbers")), kw_only=True
    )
    separator: str = field(default="", kw_only=True)

    @property
    def root(self) -> Path:
        """Return the folder or the archive."""
        return self.folder

    def list_splits(self) -> list[str]:
        """Return the splits that the folders make; only their names are read."""
        return split_folders(self.folder) if self.table is None else []

    def list_files(self) -> LabelledPictures:
        """Return the pictures in the folders of their classes, or those of the table."""
        if self.table is None:
            return read_folders(self.folder)
        target = (self.target,) if isinstance(self.target, str) else tuple(self.target)
        table = LabelTable(self.table, self.column, target, self.targets, self.separator)
        return read_listed(self.folder, table)

    def profile(self) -> Inspection:
        """Return what the folder holds, as ``sigma data show`` prints it."""
        return inspect_pictures(self.folder)

    def find_groups(self, listed: LabelledPictures, rows: np.ndarray) -> tuple[str, ...] | None:
        """Return what the expression finds in the paths of some rows."""
        return listed.find_groups(self.group, rows) if self.group else None
