"""Write, read, find and remove checkpoints: directories that are complete and verified, or do not exist.

``<run>/checkpoints/<trainer>/<iteration>/`` holds ``state.safetensors`` (every array of the state by name),
``manifest.json`` (everything else, and the sha256 of the arrays) and ``manifest.sha256``, written last.  All is written
to a temporary sibling, synced, and moved into place by one rename.  Nothing in it is ever executed, and no path in it
is followed: a reader opens these three files and no others.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from sigma_kernel.contracts.storing import NAMED, Checkpoint, Log
from sigma_kernel.encoding import pack
from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_kernel.threads import in_thread
from sigma_store.checkpoints.format import ABOUT, FORMAT, MINOR, manifest_of
from sigma_store.files import LARGEST, digest, document, get_bytes, put_bytes as _put
from sigma_store.folders import WrittenFolder, open_folder, sync as _sync

ARRAYS, MANIFEST, SEAL = "state.safetensors", "manifest.json", "manifest.sha256"
SAVER = "sigma-saver"  # threads
NEEDED = ("trainer", "clock", "journal", "branch", "batch_size", "ranking", *NAMED)  # values of every manifest
SPARE = ("undo", "hooks", "sums", "published", "data", "changes", "learned", "classes")  # left out first, in this order
NUMBER = re.compile("0|[1-9][0-9]*+")
LEFT_OVER = re.compile(r"\.([0-9]++)\.(?:part|old)")


# -- writing -----------------------------------------------------------------------------------------------------------
def write(folder: Path, checkpoint: Checkpoint, log: Log = lambda text: None, run: WrittenFolder | None = None) -> Path:
    """Write a checkpoint to ``folder`` in a ``run`` atomically: all of it, or nothing.

    Values that would make the manifest too large are left out, and logged.  Raises SigmaCheckpointError if the disk is
    full, the folder cannot be written, or a value cannot be saved.
    """
    try:
        refuse_link(folder)
        with open_folder(folder.parent, run, make=True) as home:
            _write(home / folder.name, checkpoint, log)
    except (OSError, SafetensorError, SigmaStateError, TypeError, ValueError, RecursionError, MemoryError) as error:
        why = str(error).removesuffix(".")
        raise SigmaCheckpointError(f"{folder}: cannot be written: {why}. Earlier checkpoints are intact.") from error
    return folder


def _write(folder: Path, checkpoint: Checkpoint, log: Log) -> None:
    temporary = _sibling(folder, "part")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir()
        _fill(temporary, checkpoint, log)
        replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove(folder: Path, run: WrittenFolder | None = None) -> None:
    """Remove a checkpoint atomically: a crash leaves no part of it under its name."""
    refuse_link(folder)
    with open_folder(folder.parent, run) as home:
        doomed = _sibling(home / folder.name, "part")
        (home / folder.name).rename(doomed)
        shutil.rmtree(doomed)


def refuse_link(path: Path) -> None:
    """Raise OSError for a link, or one of the two folders around it: nothing is written or removed through one."""
    if link := next((part for part in (path, path.parent, path.parent.parent) if _has_link(part)), None):
        raise OSError("it is a link" if link == path else f"{link} is a link")


def _sibling(folder: Path, what: str) -> Path:
    return folder.with_name(f".{folder.name}.{what}")


def _fill(folder: Path, checkpoint: Checkpoint, log: Log) -> None:
    arrays = {name: _to_plain_array(name, value) for name, value in checkpoint.arrays.items()}
    safetensors.numpy.save_file(arrays, folder / ARRAYS)
    manifest = {
        "format": FORMAT,
        "minor": MINOR,
        "files": {ARRAYS: _sync_and_hash(folder / ARRAYS)},
        "sizes": {ARRAYS: (folder / ARRAYS).stat().st_size},
        **{name: pack(getattr(checkpoint, name)) for name in ABOUT},
    }
    text = _encode_within_limit(manifest, log)
    _put(folder / MANIFEST, text)
    (folder / ARRAYS).chmod((folder / MANIFEST).stat().st_mode)  # safetensors makes it readable by the owner only
    _put(folder / SEAL, seal(text))
    _sync(folder)


def _encode_within_limit(manifest: Mapping[str, Any], log: Log) -> bytes:
    """Encode a manifest; if too large, drop its rows of the journal, then all that the arrays do not need."""
    text, values, lacks = encode_manifest(manifest), dict(manifest["values"]), list[str]()
    if len(text) > LARGEST and manifest["chain"]:
        manifest = {**manifest, "chain": {**manifest["chain"], "rows": []}}
        text = encode_manifest(manifest)
    for name in [*SPARE, *values]:
        if len(text) > LARGEST and name not in NEEDED and values.pop(name, None):
            lacks += [name] if name != "undo" else []
            text = encode_manifest({**manifest, "values": {**values, "lacks": lacks} if lacks else values})
    if lacks:
        log(f"ALARM: a checkpoint lacks {', '.join(lacks)}: too large. It can predict, but training cannot resume.")
    if len(text) > LARGEST:
        raise ValueError(f"values other than arrays take {len(text):,} bytes; {LARGEST:,} are allowed")
    return text


def encode_manifest(manifest: Mapping[str, Any]) -> bytes:
    """Return a manifest as it is written."""
    return json.dumps(manifest, indent=1, allow_nan=False).encode()


def replace(new: Path, folder: Path) -> None:
    """Move a finished folder into place; remove an older one of that name only after that."""
    aside = new.with_suffix(".old")
    if not folder.exists():
        new.rename(folder)
    else:
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)
        try:
            new.rename(folder)
        except OSError:
            aside.rename(folder)
            raise
    _sync(folder.parent)
    shutil.rmtree(aside, ignore_errors=True)


def _to_plain_array(name: str, value: np.ndarray) -> np.ndarray:
    if value.dtype.kind not in "biufc":
        raise TypeError(f"{name} is of type {value.dtype.name}, which could not be read back")
    return np.asarray(value, order="C")  # ascontiguousarray would make a scalar a vector


# -- reading -----------------------------------------------------------------------------------------------------------
def read(folder: Path, log: Log = warnings.warn) -> Checkpoint:
    """Read a checkpoint, with every byte verified against its checksums.

    Raises SigmaCheckpointError if anything is missing, damaged, a link, or of another major format.
    """
    manifest = read_manifest(folder, log)
    path, size = folder / ARRAYS, manifest["sizes"].get(ARRAYS)
    data = get_bytes(path, size if isinstance(size, int) else 0)
    if manifest["files"].get(ARRAYS) != digest(data):
        raise _damage_error(path)
    try:
        arrays = safetensors.numpy.load(data)
    except (SafetensorError, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise SigmaCheckpointError(f"{path}: cannot be read: {error}. Use another checkpoint.") from error
    return Checkpoint(arrays, *(manifest[name] for name in ABOUT))


def read_manifest(folder: Path, log: Log = warnings.warn) -> dict[str, Any]:
    """Read the manifest of a checkpoint, verified against its checksum; fill in fields that older versions lack."""
    path = folder / MANIFEST
    if _has_link(folder) or not os.path.isdir(folder):
        raise SigmaCheckpointError(f"{folder}: not a directory. Use another checkpoint.")
    text = get_bytes(path, LARGEST)
    if get_bytes(folder / SEAL, len(seal(b""))) != seal(text):
        raise _damage_error(path)
    return manifest_of(path, document(path, text), log)


# -- finding -----------------------------------------------------------------------------------------------------------
def list_checkpoints(run: Path, trainer: str) -> list[Path]:
    """Return the checkpoints of a trainer in a run folder, oldest first, unverified; SigmaCheckpointError for links."""
    home = run / "checkpoints" / trainer
    if _has_link(home, home.parent):
        raise SigmaCheckpointError(f"{home}: is a link, or inside one. Link to the whole run folder instead.")
    return numbered_entries(home)


def _has_link(*paths: Path) -> bool:
    return any(map(os.path.islink, paths))


def numbered_entries(home: Path) -> list[Path]:
    """Return the entries of a folder whose names are numbers, in numeric order."""
    try:
        paths = [path for path in home.iterdir() if NUMBER.fullmatch(path.name)] if os.path.isdir(home) else []
    except OSError as error:
        raise SigmaCheckpointError(f"{home}: cannot be read: {error.strerror}. Make it readable.") from error
    return sorted(paths, key=lambda path: int(path.name))


def recover(run: Path, log: Log = warnings.warn, inside: WrittenFolder | None = None) -> None:
    """Recover the checkpoint directory of a run after a crash, while no other process writes to it.

    Restore a checkpoint that was moved aside for a successor that was never finished; remove unfinished ones.  Raises
    SigmaCheckpointError if the directory is not writable.
    """
    try:
        for path in [*run.glob("checkpoints/*/.*")]:
            name = LEFT_OVER.fullmatch(path.name)
            if name is not None and not _has_link(path, path.parent, path.parent.parent):
                with open_folder(path.parent, inside) as home:
                    _tidy(home / path.name, path.with_name(name[1]), log)
    except OSError as error:
        raise SigmaCheckpointError(f"{run}: cannot be cleaned up: {error}. Make its checkpoints writable.") from error


def _tidy(path: Path, place: Path, log: Log) -> None:
    if path.suffix == ".old" and not path.with_name(place.name).exists():
        path.rename(path.with_name(place.name))
        log(f"{place}: restored: its successor was never finished.")
    else:
        shutil.rmtree(path)


# -- bytes -------------------------------------------------------------------------------------------------------------
def seal(manifest: bytes) -> bytes:
    """Return the content of the file that seals a manifest."""
    return f"{digest(manifest)}  {MANIFEST}\n".encode()


def _sync_and_hash(path: Path) -> str:
    """Sync a file to the disk, and return its sha256, computed meanwhile."""
    with path.open("rb+") as file:
        digest = in_thread(lambda: hashlib.file_digest(file, "sha256").hexdigest(), SAVER, daemon=False)
        os.fsync(file.fileno())
        return digest.result()


def _damage_error(path: Path) -> SigmaCheckpointError:
    return SigmaCheckpointError(f"{path}: is damaged: its checksum differs. Use another checkpoint.")
