"""Decode many sound files by threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import numpy as np
from attrs import frozen

from sigma_data.pictures.folder import Picture
from sigma_data.pictures.opening import OpenPicture, open_place
from sigma_data.sound.decoding import SoundForm, UnreadableSoundError, soundfile
from sigma_data.threads import count_processors


@frozen(eq=False)
class DecodedSounds:
    """The sounds of some files in one form, and the ``places`` of those that could be decoded."""

    values: np.ndarray  # (files, steps, width), float32; 0 for those that could not be decoded
    lengths: np.ndarray  # steps that hold sound, int32
    places: np.ndarray
    faults: Mapping[str, str]  # by path


def decode_files(
    root: Path,
    files: Sequence[Picture],
    form: SoundForm,
    threads: int | None = None,
    opening: AbstractContextManager[OpenPicture] | None = None,
) -> DecodedSounds:
    """Return the sounds of files in a folder; raises SigmaDataError for one that changes while it is read.

    ``opening`` opens others than files.
    """
    soundfile()
    values, lengths = np.zeros((len(files), *form.shape), np.float32), np.zeros(len(files), np.int32)
    with (
        opening or open_place(root) as place,
        ThreadPoolExecutor(threads or count_processors(), "sigma-sounds") as pool,
    ):
        reasons = list(pool.map(partial(_decode, place, form, values, lengths), range(len(files)), files))
    places = np.flatnonzero([not reason for reason in reasons])
    faults = {file.path: reason for file, reason in zip(files, reasons, strict=True) if reason}
    return DecodedSounds(values, lengths, places, faults)


def _decode(
    open_file: OpenPicture, form: SoundForm, values: np.ndarray, lengths: np.ndarray, row: int, file: Picture
) -> str:
    """Decode a file to a row; return what is wrong with it, if anything is."""
    fault = ""
    try:
        with open_file(file) as stream:
            try:
                values[row], lengths[row] = form.decode(stream)
            except UnreadableSoundError as error:
                fault = str(error)
    except (OSError, ValueError) as error:  # ValueError for a path that holds a NUL
        return f"cannot be read: {getattr(error, 'strerror', None) or error}"
    return fault
