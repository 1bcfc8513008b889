"""Sounds of a saved dataset of Hugging Face as a data set."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from attrs import define, field

from sigma_data.datasets.sound_set import SoundSet
from sigma_data.pictures.faults import check_faults
from sigma_data.pictures.labelled import LabelledPictures
from sigma_data.pictures.opening import OpenPicture
from sigma_data.sound.files import decode_files
from sigma_huggingface.files import SavedFiles, read_files, read_inputs
from sigma_huggingface.folder import is_saved, split_saved
from sigma_huggingface.targets import Wanted
from sigma_kernel import SigmaDataError
from sigma_kernel.settings import in_


@define(eq=False)
class HuggingFaceSounds(SoundSet):
    """The sounds in a column ``Audio`` of a dataset that ``save_to_disk`` of Hugging Face's ``datasets`` has written.

    ``inputs``, ``lengths`` and ``mask`` are those of ``sound_folder``, of WAV and FLAC files.  The datasets of a
    ``DatasetDict`` are splits, ``train`` that for training; without one for validation, ``split`` divides ``train``.

    Needs soundfile: ``python -m pip install "sigma-data[sound]"``.

    Args:
        folder: Folder of the dataset; in a configuration, a relative one starts in the directory of the configuration.
        column: Column of the sounds; by default the only one.
        target: Column to predict; or several, which hold numbers.
        targets: What the target holds: classes, numbers, or what the cost takes.
        missing_targets: What rows without a target, or of the class -1, do: raise an error, or are dropped.
        group: Column that names the group of a sound, such as a speaker; sounds of a group stay in one split.
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

    def list_sounds(self) -> SavedFiles:
        """Return the sounds with their labels."""
        wanted = Wanted(self.target, self.targets, self.missing_targets, self.group)
        self._files = read_files(self.folder, "Audio", self.column, wanted)
        return self._files

    def find_groups(self, listed: LabelledPictures, rows: np.ndarray) -> tuple[Hashable, ...] | None:
        """Return the groups of some rows."""
        return listed.select_groups(rows) if isinstance(listed, SavedFiles) else None

    def open_sounds(self) -> AbstractContextManager[OpenPicture]:
        """Return the function that opens sounds."""
        return (self._files or self.list_sounds()).open_all()

    # -- prediction ----------------------------------------------------------------------------------------------------
    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return the sounds of another saved dataset; or those of a file or folder."""
        if not is_saved(path):
            return super().samples(path, shape, white, learned)
        if tuple(shape) != self._form.shape:
            raise SigmaDataError(f"{path}: sounds have shape {self._form.shape}; the network takes {tuple(shape)}.")
        files = read_inputs(path, "Audio", self.column)
        sounds = decode_files(path, files.pictures, self._form, self.threads, files.open_all())
        check_faults(path, sounds.faults, len(files.pictures), "Replace them, or leave them out.", "sound")
        return sounds.values

    def files(self, path: Path) -> list[Path]:
        """Return the sounds in a folder, in the order of their samples; none for a saved dataset."""
        return [] if is_saved(path) else super().files(path)

    def claims(self, path: Path) -> bool:
        """Return whether a path is a saved dataset."""
        return is_saved(path)
