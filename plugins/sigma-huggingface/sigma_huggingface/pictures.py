"""Pictures of a saved dataset of Hugging Face as a data set."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from attrs import define, field

from sigma_data.datasets.picture_set import DEFAULT, PictureSet
from sigma_data.pictures.blocks import Decoding
from sigma_data.pictures.faults import check_faults
from sigma_data.pictures.labelled import LabelledPictures
from sigma_data.pictures.opening import OpenPicture
from sigma_data.pictures.rows import scale_bytes
from sigma_huggingface.files import SavedFiles, read_files, read_inputs
from sigma_huggingface.folder import is_saved, split_saved
from sigma_huggingface.targets import Wanted
from sigma_kernel import SigmaDataError
from sigma_kernel.settings import in_


@define(eq=False)
class HuggingFacePictures(PictureSet):
    """The pictures in a column ``Image`` of a dataset that ``save_to_disk`` of Hugging Face's ``datasets`` has written.

    ``inputs`` have the shape (3, height, width), in grey (1, height, width); they are decoded as those of
    ``image_folder``.  The datasets of a ``DatasetDict`` are splits, ``train`` that for training; without
    one for validation, ``split`` divides ``train``.

    Needs Pillow: ``python -m pip install "sigma-data[images]"``.

    Args:
        folder: Folder of the dataset; in a configuration, a relative one starts in the directory of the configuration.
        column: Column of the pictures; by default the only one.
        target: Column to predict; or several, which hold numbers.
        targets: What the target holds: classes, numbers, or what the cost takes.
        missing_targets: What rows without a target, or of the class -1, do: raise an error, or are dropped.
        group: Column that names the group of a picture, such as a person; pictures of a group stay in one split.
    """

    folder: Path = field(converter=Path)
    column: str = field(default="", kw_only=True)
    target: str | tuple[str, ...] = field(default="label", kw_only=True)
    targets: Literal["auto", "classes", "numbers"] = field(
        default="auto", validator=in_(("auto", "classes", "numbers")), kw_only=True
    )
    missing_targets: Literal["refuse", "drop"] = field(
        default="refuse", validator=in_(("refuse", "drop")), kw_only=True
    )
    group: str = field(default="", kw_only=True)
    _files: SavedFiles | None = field(default=None, init=False, repr=False)

    @property
    def root(self) -> Path:
        """Return the folder."""
        return self.folder

    def list_splits(self) -> list[str]:
        """Return the splits of a dictionary; only descriptions are read."""
        return [*split_saved(self.folder)]

    @property
    def shares(self) -> Mapping[str, float]:
        """Return the shares of what is divided: of the split for training, if there is none for validation."""
        parts = self.list_splits()
        return self.split or (DEFAULT if parts and "validation" not in parts else {})

    def list_pictures(self) -> SavedFiles:
        """Return the pictures with their labels."""
        wanted = Wanted(self.target, self.targets, self.missing_targets, self.group)
        self._files = read_files(self.folder, "Image", self.column, wanted)
        return self._files

    def find_groups(self, listed: LabelledPictures, rows: np.ndarray) -> tuple[Hashable, ...] | None:
        """Return the groups of some rows."""
        return listed.select_groups(rows) if isinstance(listed, SavedFiles) else None

    def open_pictures(self) -> AbstractContextManager[OpenPicture]:
        """Return the function that opens pictures."""
        return (self._files or self.list_pictures()).open_all()

    # -- prediction ----------------------------------------------------------------------------------------------------
    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return the pictures of another saved dataset; or those of a file, folder or archive."""
        if not is_saved(path):
            return super().samples(path, shape, white, learned)
        if tuple(shape) != self._form.shape:
            raise SigmaDataError(f"{path}: pictures have shape {self._form.shape}; the network takes {tuple(shape)}.")
        files = read_inputs(path, "Image", self.column)
        decoding = Decoding(path, self._form, 1 << 62, None, self.threads, files.open_all)
        (block,) = decoding.decode_all([files.pictures])
        check_faults(path, block.faults, len(files.pictures), "Replace them, or leave them out.")
        return scale_bytes(block.pixels, self.scale if white is None else white / 255)

    def files(self, path: Path) -> list[Path]:
        """Return the pictures in a folder, in the order of their samples; none for a saved dataset."""
        return [] if is_saved(path) else super().files(path)

    def claims(self, path: Path) -> bool:
        """Return whether a path is a saved dataset."""
        return is_saved(path)
