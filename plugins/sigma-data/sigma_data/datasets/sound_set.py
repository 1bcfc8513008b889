"""Base class of data sets of sounds, which are decoded to sequences of one length."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from attrs import define, field

from sigma_data.arrays import Arrays
from sigma_data.datasets.dividing import divide_training, list_parts
from sigma_data.datasets.file_set import FileSet
from sigma_data.datasets.splits import Loaded
from sigma_data.pictures.archive import is_archive
from sigma_data.pictures.faults import check_faults, describe_left_out
from sigma_data.pictures.folder import list_pictures, picture_at
from sigma_data.pictures.labelled import LabelledPictures
from sigma_data.pictures.opening import OpenPicture, open_place
from sigma_data.sound.decoding import ENDS, SoundForm
from sigma_data.sound.files import decode_files
from sigma_data.splitting import fold_names
from sigma_data.subset import NotedRows
from sigma_kernel import Dataset, Label, SigmaConfigError, SigmaDataError
from sigma_kernel.settings import ge, gt, in_, le, optional

REMEDY = "Replace or delete them, or set broken = 'skip' to leave them out."
MOST = 1 << 24  # samples of a sound


@define(eq=False, kw_only=True)
class SoundSet(FileSet):
    """Sounds of one folder, with their labels.

    Args:
        seconds: Length to which sounds are brought.
        rate: Samples a second to which sounds are resampled.
        features: What a sound becomes: its ``wave``, a ``spectrogram``, or a ``mel`` spectrogram.
        window: Samples of a window of a spectrogram.
        hop: Samples between the beginnings of two windows.
        mels: Number of filters on the mel scale.
        broken: What files that cannot be decoded do: raise an error that lists them, or are left out with a warning.
        threads: Number of threads that decode; by default one for each processor.
    """

    seconds: float = field(validator=gt(0))
    rate: int = field(default=16_000, validator=[ge(1), le(384_000)])
    features: Literal["wave", "spectrogram", "mel"] = field(
        default="mel", validator=in_(("wave", "spectrogram", "mel"))
    )
    window: int = field(default=400, validator=[ge(2), le(1 << 16)])
    hop: int = field(default=160, validator=ge(1))
    mels: int = field(default=40, validator=[ge(1), le(1 << 12)])
    broken: Literal["refuse", "skip"] = field(default="refuse", validator=in_(("refuse", "skip")))
    threads: int | None = field(default=None, validator=optional(ge(1)))

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError for a length that holds no window."""
        samples = round(self.seconds * self.rate)
        least = 1 if self.features == "wave" else self.window
        if not least <= samples <= MOST:
            name = type(self).__name__
            raise SigmaConfigError(
                f"{name}.seconds: {self.seconds:g} s at {self.rate} samples a second are {samples:,} samples. "
                f"They must be {least:,} to {MOST:,}."
            )

    def open_files(self) -> AbstractContextManager[OpenPicture]:
        """Return the function that opens sounds while the place is open."""
        return open_place(self.root, ENDS)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the splits; no sound is read."""
        if parts := list_parts(self.list_splits(), self.split):
            return tuple(parts)
        return tuple(self.split) if self.fold is None else fold_names(self.split)

    def load(self) -> Loaded:
        """Return the splits, and the names of the classes."""
        listed = self.list_files()
        if not listed.parts:
            return super().load()
        if self.fold is not None:
            raise SigmaConfigError(
                f"{self.root}: its folders are splits already: {', '.join(listed.parts)}. Move them."
            )
        whole, kept, notes = self._decode(listed)
        divided = divide_training(listed.parts, listed.labels, self, lambda rows: self.find_groups(listed, rows))
        parts = {name: np.intersect1d(rows, kept) for name, rows in divided.items()}
        if empty := [name for name, rows in parts.items() if not len(rows)]:
            raise SigmaDataError(f"{self.root}: the split {empty[0]!r} has no sound that can be used. Add some.")
        splits = {name: NotedRows(whole, rows, notes) for name, rows in parts.items()}
        return splits, whole.class_names("targets")

    def all_rows(self) -> tuple[Dataset, tuple[Label, ...]]:
        """Return all rows."""
        listed = self.list_files()
        whole, kept, notes = self._decode(listed)
        self._groups = self.find_groups(listed, kept)
        return NotedRows(whole, kept, notes), whole.class_names("targets")

    @property
    def _form(self) -> SoundForm:
        return SoundForm(self.rate, round(self.seconds * self.rate), self.features, self.window, self.hop, self.mels)

    def _decode(self, listed: LabelledPictures) -> tuple[Arrays, np.ndarray, tuple[str, ...]]:
        """Return a row for each file, the rows that could be decoded, and sentences about the others."""
        sounds = decode_files(self.root, listed.pictures, self._form, self.threads, self.open_files())
        if self.broken == "refuse":
            check_faults(self.root, sounds.faults, len(listed.pictures), REMEDY, "sound")
        if not len(sounds.places):
            raise SigmaDataError(f"{self.root}: no sound can be used. Add some.")
        mask = (np.arange(sounds.values.shape[1]) < sounds.lengths[:, None]).astype(np.int32)
        whole = Arrays(
            inputs=sounds.values, lengths=sounds.lengths, mask=mask, targets=listed.labels.section("targets")
        )
        return whole, sounds.places, describe_left_out(sounds.faults, listed.others, "sound")

    # -- prediction ----------------------------------------------------------------------------------------------------
    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return the sounds of a file, folder or archive, in the order of their paths, in the form of the training."""
        several = path.is_dir() or is_archive(path)
        if not several and not path.name.lower().endswith(ENDS):
            return super().samples(path, shape, white, learned)
        if tuple(shape) != self._form.shape:
            raise SigmaDataError(f"{path}: sounds have shape {self._form.shape}; the network takes {tuple(shape)}.")
        folder = path if several else path.resolve().parent
        files = list_pictures(path, ENDS).pictures if several else (picture_at(folder, path.resolve().name),)
        if not files:
            raise SigmaDataError(f"{path}: has no sounds. Their names must end in {', '.join(ENDS)}.")
        sounds = decode_files(folder, files, self._form, self.threads, open_place(folder, ENDS))
        check_faults(path, sounds.faults, len(files), "Replace them, or leave them out.", "sound")
        return sounds.values

    def files(self, path: Path) -> list[Path]:
        """Return the sounds in a folder, in the order of their samples."""
        return [path / file.path for file in list_pictures(path, ENDS).pictures]
