"""Decode many sound files by threads."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from attrs import frozen

from sigma_data.pictures.folder import Picture
from sigma_data.sound.decoding import SoundForm, UnreadableSoundError, soundfile
from sigma_data.threads import count_processors
from sigma_kernel import SigmaDataError

SHOWN = 10  # files named in an error


@frozen(eq=False)
class DecodedSounds:
    """The sounds of some files in one form, and the ``places`` of those that could be decoded."""

    values: np.ndarray  # (files, steps, width), float32; 0 for those that could not be decoded
    lengths: np.ndarray  # steps that hold sound, int32
    places: np.ndarray
    faults: Mapping[str, str]  # by path


def decode_files(root: Path, files: Sequence[Picture], form: SoundForm, threads: int | None = None) -> DecodedSounds:
    """Return the sounds of files in a folder; raises SigmaDataError for one that changes while it is read."""
    soundfile()
    values, lengths = np.zeros((len(files), *form.shape), np.float32), np.zeros(len(files), np.int32)
    with ThreadPoolExecutor(threads or count_processors(), "sigma-sounds") as pool:
        reasons = list(pool.map(partial(_decode, root, form, values, lengths), range(len(files)), files))
    places = np.flatnonzero([not reason for reason in reasons])
    faults = {file.path: reason for file, reason in zip(files, reasons, strict=True) if reason}
    return DecodedSounds(values, lengths, places, faults)


def _decode(root: Path, form: SoundForm, values: np.ndarray, lengths: np.ndarray, row: int, file: Picture) -> str:
    """Decode a file to a row; return what is wrong with it, if anything is."""
    fault = ""
    try:
        with open(root / file.path, "rb", opener=_open) as stream:
            try:
                values[row], lengths[row] = form.decode(stream)
            except UnreadableSoundError as error:
                fault = str(error)
            about = os.stat(root / file.path)
    except (OSError, ValueError) as error:  # ValueError for a path that holds a NUL
        return f"cannot be read: {getattr(error, 'strerror', None) or error}"
    if (about.st_size, about.st_mtime_ns) != (file.size, file.modified):
        raise SigmaDataError(
            f"{root / file.path}: has changed while the folder was read. Start again when it is complete."
        )
    return fault


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe in place of the file would block


def check_sounds(root: Path, faults: Mapping[str, str], total: int, remedy: str) -> None:
    """Raise SigmaDataError if some files cannot be decoded, with the first of them by name."""
    if faults:
        lines = [f"\n  {path}: {faults[path]}" for path in sorted(faults)[:SHOWN]]
        more = f"\n  and {len(faults) - SHOWN:,} more" if len(faults) > SHOWN else ""
        raise SigmaDataError(
            f"{root}: {len(faults):,} of {total:,} sounds cannot be used:{''.join(lines)}{more}\n{remedy}"
        )


def describe_skipped(faults: Mapping[str, str], others: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence about files that cannot be decoded, and one about files that have other names."""
    notes = []
    if faults:
        first = "; ".join(f"{path} {faults[path]}" for path in sorted(faults)[:3])
        notes.append(f"{len(faults):,} of the sounds left out: {first}{'; ...' if len(faults) > 3 else ''}.")
    if others:
        shown = ", ".join(others[:3])
        notes.append(f"{len(others):,} files left out, by the end of the name: {shown}{' ...' if others[3:] else ''}.")
    return tuple(notes)
