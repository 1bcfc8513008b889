"""Checkpoints: a folder that is whole and verified, or does not exist.

``<run>/checkpoints/<trainer>/<iteration>/`` holds ``state.safetensors`` (every array of the state tree by name),
``manifest.json`` (what is not an array, and the sha256 of every other file) and ``manifest.sha256``, written last.  All
is written to a temporary sibling, synced, and moved into place by one rename.  Nothing in it is ever executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from attrs import frozen
from safetensors import SafetensorError

from sigma_kernel.errors import SigmaCheckpointError

FORMAT = 1
ARRAYS, MANIFEST, SEAL = "state.safetensors", "manifest.json", "manifest.sha256"


@frozen
class Checkpoint:
    """What was saved: arrays by name, and everything else as plain JSON values."""

    arrays: Mapping[str, np.ndarray]
    values: Mapping[str, Any]


def write(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint as ``folder``; either all of it is there afterwards, or nothing is.

    Raises SigmaCheckpointError where the disk is full or the place cannot be written.
    """
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        _fill(temporary, checkpoint)
        _replace(temporary, folder)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise SigmaCheckpointError(f"{folder}: cannot be written: {error}. Earlier checkpoints are intact.") from error
    return folder


def _fill(folder: Path, checkpoint: Checkpoint) -> None:
    _put(folder / ARRAYS, safetensors.numpy.save({name: _plain(value) for name, value in checkpoint.arrays.items()}))
    files = {ARRAYS: _digest((folder / ARRAYS).read_bytes())}
    manifest = {"format": FORMAT, "files": files, "values": dict(checkpoint.values)}
    text = json.dumps(manifest, indent=1, sort_keys=True, allow_nan=True).encode()
    _put(folder / MANIFEST, text)
    _put(folder / SEAL, f"{_digest(text)}  {MANIFEST}\n".encode())
    _sync(folder)


def _replace(new: Path, folder: Path) -> None:
    """Move a finished folder into place; an older one of that name is out of the way, and gone, only then."""
    aside = new.with_suffix(".old")
    if folder.exists():
        folder.rename(aside)
    new.rename(folder)
    _sync(folder.parent)
    shutil.rmtree(aside, ignore_errors=True)


def read(folder: Path) -> Checkpoint:
    """Return a checkpoint after checking every byte of it against its seal.

    Raises SigmaCheckpointError if anything is missing, damaged or written by a newer Sigma.
    """
    seal = _get(folder / SEAL)
    text = _get(folder / MANIFEST)
    if seal != f"{_digest(text)}  {MANIFEST}\n".encode():
        raise _damaged(folder / MANIFEST)
    manifest = _parsed(folder / MANIFEST, text)
    data = _get(folder / ARRAYS)
    if manifest["files"] != {ARRAYS: _digest(data)}:
        raise _damaged(folder / ARRAYS)
    try:
        return Checkpoint(safetensors.numpy.load(data), manifest["values"])
    except (SafetensorError, ValueError, KeyError) as error:
        raise SigmaCheckpointError(f"{folder / ARRAYS}: cannot be read: {error}.") from error


def _parsed(path: Path, text: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(text)
        known = manifest["format"] == FORMAT and isinstance(manifest["files"], dict) and "values" in manifest
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SigmaCheckpointError(f"{path}: is not a manifest: {error}. Use another checkpoint.") from error
    if not known:
        raise SigmaCheckpointError(f"{path}: has a format that this version cannot read. Update sigma-kernel.")
    return dict(manifest)


def saved(run: Path, trainer: str) -> list[Path]:
    """Return the checkpoints of a trainer in a run folder, oldest first, unverified."""
    home = run / "checkpoints" / trainer
    found = [path for path in home.iterdir() if path.name.isdigit()] if home.is_dir() else []
    return sorted(found, key=lambda path: int(path.name))


def newest(run: Path, trainer: str = "trainer") -> Path:
    """Return the newest checkpoint of a trainer; SigmaCheckpointError if there is none."""
    found = saved(run, trainer)
    if not found:
        raise SigmaCheckpointError(f"{run}: holds no checkpoint of {trainer!r}. Is this a run folder?")
    return found[-1]


def _plain(value: np.ndarray) -> np.ndarray:
    return np.asarray(value, order="C")  # ascontiguousarray would make a scalar a vector


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _put(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _get(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise SigmaCheckpointError(f"{path}: cannot be read: {reason}. Use another checkpoint.") from error


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _damaged(path: Path) -> SigmaCheckpointError:
    return SigmaCheckpointError(f"{path}: is damaged: its checksum differs. Use another checkpoint.")
