"""Your own folder of sounds as a data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from attrs import define, field

from sigma_data.arrays import Arrays
from sigma_data.datasets.splits import Divided, Loaded
from sigma_data.pictures.faults import check_faults, describe_left_out
from sigma_data.pictures.folder import list_pictures, picture_at
from sigma_data.pictures.labelled import LabelledPictures, read_folders, split_folders
from sigma_data.sound.decoding import ENDS, SoundForm
from sigma_data.sound.files import decode_files
from sigma_data.splitting import fold_names
from sigma_data.subset import NotedRows
from sigma_kernel import Dataset, Label, SigmaConfigError, SigmaDataError
from sigma_kernel.settings import ge, gt, in_, le, optional

REMEDY = "Replace or delete them, or set broken = 'skip' to leave them out."
MOST = 1 << 24  # samples of a sound


@define(eq=False)
class SoundFolder(Divided):
    """Sounds in folders, one for each class, as waves or spectrograms.

    Files are WAV or FLAC, of any sampling rate and number of channels, which are averaged. Waves, from -1 to 1, are
    resampled by a windowed sinc, the filter of ``scipy.signal.resample_poly``. Longer sounds are cut off after
    ``seconds``, shorter ones are padded with silence at the end.

    ``inputs`` are sequences (steps, values): ``wave`` has a step for each sample, of one value; ``spectrogram`` one for
    each window, the logarithm of the power at ``window // 2 + 1`` frequencies from 0 to half the rate; ``mel`` sums
    these powers by triangular filters on the mel scale, before the logarithm. A window is a periodic Hann window.
    ``lengths`` has the number of steps that hold sound, and ``mask`` is 1 for these steps and 0 for padding: recurrent
    layers and attention read either.

    Rows are in the order of their paths. Hidden files are left out. Folders named ``training`` (or ``train``),
    ``validation`` (``val``) and ``test`` above those of the classes are splits. All sounds are kept in memory.

    Needs soundfile: ``python -m pip install "sigma-data[sound]"``.

    Args:
        folder: Folder of the sounds; in a configuration, a relative one starts in the directory of the configuration.
        seconds: Length to which sounds are brought.
        rate: Samples a second to which sounds are resampled.
        features: What a sound becomes: its ``wave``, a ``spectrogram``, or a ``mel`` spectrogram.
        window: Samples of a window of a spectrogram.
        hop: Samples between the beginnings of two windows.
        mels: Number of filters on the mel scale.
        broken: What files that cannot be decoded do: raise an error that lists them, or are left out with a warning.
        group: Regular expression that finds the group of a sound in its path below the folder, such as a speaker; the
            sounds of a group stay in one split. The group is what its parentheses match, or all that matches.
        threads: Number of threads that decode; by default one for each processor.
    """

    folder: Path = field(converter=Path)
    seconds: float = field(validator=gt(0), kw_only=True)
    rate: int = field(default=16_000, validator=[ge(1), le(384_000)], kw_only=True)
    features: Literal["wave", "spectrogram", "mel"] = field(
        default="mel", validator=in_(("wave", "spectrogram", "mel")), kw_only=True
    )
    window: int = field(default=400, validator=[ge(2), le(1 << 16)], kw_only=True)
    hop: int = field(default=160, validator=ge(1), kw_only=True)
    mels: int = field(default=40, validator=[ge(1), le(1 << 12)], kw_only=True)
    broken: Literal["refuse", "skip"] = field(default="refuse", validator=in_(("refuse", "skip")), kw_only=True)
    group: str = field(default="", kw_only=True)
    threads: int | None = field(default=None, validator=optional(ge(1)), kw_only=True)
    _groups: tuple[str, ...] | None = field(default=None, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError for a length that holds no window."""
        samples = round(self.seconds * self.rate)
        least = 1 if self.features == "wave" else self.window
        if not least <= samples <= MOST:
            raise SigmaConfigError(
                f"SoundFolder.seconds: {self.seconds:g} s at {self.rate} samples a second are {samples:,} samples. "
                f"They must be {least:,} to {MOST:,}."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the splits; only the names of folders are read."""
        parts = split_folders(self.folder)
        if parts:
            return tuple(parts)
        return tuple(self.split) if self.fold is None else fold_names(self.split)

    def load(self) -> Loaded:
        """Return the splits, and the names of the classes."""
        listed = read_folders(self.folder, ENDS, "sound")
        if not listed.parts:
            return super().load()
        if self.fold is not None:
            raise SigmaConfigError(
                f"{self.folder}: its folders are splits already: {', '.join(listed.parts)}. Move them."
            )
        whole, kept, notes = self._decode(listed)
        parts = {name: np.intersect1d(rows, kept) for name, rows in listed.parts.items()}
        if empty := [name for name, rows in parts.items() if not len(rows)]:
            raise SigmaDataError(f"{self.folder}: the split {empty[0]!r} has no sound that can be used. Add some.")
        splits = {name: NotedRows(whole, rows, notes) for name, rows in parts.items()}
        return splits, whole.class_names("targets")

    def all_rows(self) -> tuple[Dataset, tuple[Label, ...]]:
        """Return all rows."""
        listed = read_folders(self.folder, ENDS, "sound")
        whole, kept, notes = self._decode(listed)
        self._groups = listed.find_groups(self.group, kept) if self.group else None
        return NotedRows(whole, kept, notes), whole.class_names("targets")

    def groups(self) -> tuple[str, ...] | None:
        """Return the group of each row, if there are groups."""
        return self._groups

    @property
    def _form(self) -> SoundForm:
        return SoundForm(self.rate, round(self.seconds * self.rate), self.features, self.window, self.hop, self.mels)

    def _decode(self, listed: LabelledPictures) -> tuple[Arrays, np.ndarray, tuple[str, ...]]:
        """Return a row for each file, the rows that could be decoded, and sentences about the others."""
        sounds = decode_files(self.folder, listed.pictures, self._form, self.threads)
        if self.broken == "refuse":
            check_faults(self.folder, sounds.faults, len(listed.pictures), REMEDY, "sound")
        if not len(sounds.places):
            raise SigmaDataError(f"{self.folder}: no sound can be used. Add some.")
        mask = (np.arange(sounds.values.shape[1]) < sounds.lengths[:, None]).astype(np.int32)
        whole = Arrays(inputs=sounds.values, lengths=sounds.lengths, mask=mask, targets=listed.classes)
        return whole, sounds.places, describe_left_out(sounds.faults, listed.others, "sound")

    # -- prediction ----------------------------------------------------------------------------------------------------
    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return the sounds of a file or a folder, in the order of their paths, in the form of the training."""
        if not path.is_dir() and not path.name.lower().endswith(ENDS):
            return super().samples(path, shape, white, learned)
        if tuple(shape) != self._form.shape:
            raise SigmaDataError(f"{path}: sounds have shape {self._form.shape}; the network takes {tuple(shape)}.")
        folder = path if path.is_dir() else path.resolve().parent
        files = list_pictures(path, ENDS).pictures if path.is_dir() else (picture_at(folder, path.resolve().name),)
        if not files:
            raise SigmaDataError(f"{path}: has no sounds. Their names must end in {', '.join(ENDS)}.")
        sounds = decode_files(folder, files, self._form, self.threads)
        check_faults(path, sounds.faults, len(files), "Replace them, or leave them out.", "sound")
        return sounds.values

    def files(self, path: Path) -> list[Path]:
        """Return the sounds in a folder, in the order of their samples."""
        return [path / file.path for file in list_pictures(path, ENDS).pictures]
