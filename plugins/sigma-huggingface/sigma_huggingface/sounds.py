"""Sounds of a saved dataset of Hugging Face as a data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from attrs import define

from sigma_data.datasets.sound_set import SoundSet
from sigma_data.pictures.faults import check_faults
from sigma_data.sound.files import decode_files
from sigma_huggingface.files import read_inputs
from sigma_huggingface.folder import is_single
from sigma_huggingface.saved_column import SavedFilesColumn
from sigma_kernel import SigmaDataError


@define(eq=False)
class HuggingFaceSounds(SavedFilesColumn, SoundSet):
    """The sounds in a column ``Audio`` of a dataset that ``save_to_disk`` of Hugging Face's ``datasets`` has written.

    ``inputs``, ``lengths`` and ``mask`` are those of ``sound_folder``, of WAV and FLAC files.  The datasets of a
    ``DatasetDict`` are splits, ``train`` that for training; without one for validation, ``split`` divides ``train``.

    Needs soundfile: ``python -m pip install "sigma-data[sound]"``.
    """

    feature: ClassVar[str] = "Audio"

    # -- prediction ----------------------------------------------------------------------------------------------------
    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return the sounds of another saved dataset; or those of a file or folder."""
        if not is_single(path):
            return super().samples(path, shape, white, learned)
        if tuple(shape) != self._form.shape:
            raise SigmaDataError(f"{path}: sounds have shape {self._form.shape}; the network takes {tuple(shape)}.")
        files = read_inputs(path, "Audio", self.column)
        sounds = decode_files(path, files.pictures, self._form, self.threads, files.open_all())
        check_faults(path, sounds.faults, len(files.pictures), "Replace them, or leave them out.", "sound")
        return sounds.values
