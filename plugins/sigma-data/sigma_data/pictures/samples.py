"""Read pictures to predict from, in the form of those of the training."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from attrs import asdict, frozen

from sigma_data.pictures.archive import is_archive
from sigma_data.pictures.blocks import Decoding
from sigma_data.pictures.decoding import ENDS, PictureForm
from sigma_data.pictures.faults import check_faults
from sigma_data.pictures.folder import list_pictures, picture_at
from sigma_data.pictures.rows import scale_bytes
from sigma_data.readers.samples import SamplesReader
from sigma_data.sources import local
from sigma_kernel import SigmaDataError


@frozen
class PictureSamples:
    """Pictures to predict from: brought to a form, and multiplied by a scale."""

    form: PictureForm
    scale: float
    threads: int | None = None

    @classmethod
    def from_plain(cls, saved: Any, where: str) -> PictureSamples:
        """Return what a run has saved; raises SigmaDataError for values that are damaged."""
        with suppress(TypeError, LookupError, ValueError):
            form = PictureForm(**saved["form"])
            numbers = [form.height, form.width, form.background, form.largest]
            words = form.colours in ("rgb", "grey") and form.fit in ("crop", "pad", "stretch")
            if words and all(type(number) is int and 0 <= number < 1 << 40 for number in numbers):
                return cls(form, float(saved["scale"]))
        raise SigmaDataError(
            f"{where}: the form of the pictures is damaged in the checkpoint: {saved!r:.60}. Use another one, or train "
            "again."
        )

    def to_plain(self) -> dict[str, Any]:
        """Return the form and the scale as plain values."""
        return {"form": asdict(self.form), "scale": self.scale}

    def read(self, path: Path, shape: tuple[int, ...], white: float | None = None) -> np.ndarray:
        """Return the pictures of a file, folder or archive in the order of paths; of an ``.npy`` file, its samples.

        Raises SigmaDataError for pictures that cannot be decoded, and for samples of another shape.
        """
        several = path.is_dir() or (is_archive(path) and bool(list_pictures(path).pictures))
        if not several and not path.name.lower().endswith(ENDS):
            return SamplesReader(shape, white, self.scale).read(local(path))["values"]
        if tuple(shape) != self.form.shape:
            raise SigmaDataError(f"{path}: pictures have shape {self.form.shape}; the network takes {tuple(shape)}.")
        folder = path if several else path.resolve().parent
        pictures = list_pictures(path).pictures if several else (picture_at(folder, path.resolve().name),)
        if not pictures:
            raise SigmaDataError(f"{path}: has no pictures. Their names must end in {', '.join(ENDS)}.")
        (block,) = Decoding(folder, self.form, sys.maxsize, None, self.threads).decode_all([pictures])
        check_faults(path, block.faults, len(pictures), "Replace them, or leave them out.")
        return scale_bytes(block.pixels, self.scale if white is None else white / 255)


def saved_samples(learned: Mapping[str, Any] | None, where: str) -> PictureSamples | None:
    """Return how a run that was trained on pictures reads others; None for other runs."""
    saved = (learned or {}).get("pictures")
    return None if saved is None else PictureSamples.from_plain(saved, where)
