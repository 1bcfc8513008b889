"""Pictures of a saved dataset of Hugging Face as a data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from attrs import define

from sigma_data.datasets.picture_set import DEFAULT, PictureSet
from sigma_data.pictures.blocks import Decoding
from sigma_data.pictures.faults import check_faults
from sigma_data.pictures.rows import scale_bytes
from sigma_huggingface.files import read_inputs
from sigma_huggingface.folder import is_single
from sigma_huggingface.saved_column import SavedFilesColumn
from sigma_kernel import SigmaDataError


@define(eq=False)
class HuggingFacePictures(SavedFilesColumn, PictureSet):
    """The pictures in a column ``Image`` of a dataset that ``save_to_disk`` of Hugging Face's ``datasets`` has written.

    ``inputs`` have the shape (3, height, width), in grey (1, height, width); they are decoded as those of
    ``image_folder``.  The datasets of a ``DatasetDict`` are splits, ``train`` that for training; without
    one for validation, ``split`` divides ``train``.

    Needs Pillow: ``python -m pip install "sigma-data[images]"``.
    """

    feature: ClassVar[str] = "Image"

    @property
    def shares(self) -> Mapping[str, float]:
        """Return the shares of what is divided: of the split for training, if there is none for validation."""
        parts = self.list_splits()
        return self.split or (DEFAULT if parts and "validation" not in parts else {})

    # -- prediction ----------------------------------------------------------------------------------------------------
    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return the pictures of another saved dataset; or those of a file, folder or archive."""
        if not is_single(path):
            return super().samples(path, shape, white, learned)
        if tuple(shape) != self._form.shape:
            raise SigmaDataError(f"{path}: pictures have shape {self._form.shape}; the network takes {tuple(shape)}.")
        files = read_inputs(path, "Image", self.column)
        decoding = Decoding(path, self._form, 1 << 62, None, self.threads, files.open_all)
        (block,) = decoding.decode_all([files.pictures])
        check_faults(path, block.faults, len(files.pictures), "Replace them, or leave them out.")
        return scale_bytes(block.pixels, self.scale if white is None else white / 255)
