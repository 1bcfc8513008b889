"""Read HDF5 files with h5py."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from math import prod
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_data.sources import stamp_of
from sigma_data.sources.file import File
from sigma_data.sources.unpacked import read_all
from sigma_kernel import Reader, SigmaDataError, SigmaPluginError, Source
from sigma_kernel.errors import suggest_name
from sigma_kernel.settings import ge

# raised by h5py for damaged files
BROKEN = (OSError, RuntimeError, ValueError, TypeError, LookupError, OverflowError, MemoryError, NotImplementedError,
          AttributeError)  # fmt: skip
PIECE = 1 << 24  # bytes that are read at once


@frozen
class Hdf5Reader(Reader):
    """Read datasets of an HDF5 file as arrays; those of texts of one length become words, for labels.

    Values in other files, by links or as virtual or external datasets, are not read.  Raises SigmaDataError, with file
    and dataset, for these, for other types than numbers, booleans and texts, for more than ``limit`` bytes, for damaged
    files, and for a file that changes while it is read; SigmaPluginError without h5py, which ``sigma-data[hdf5]``
    installs.

    Args:
        arrays: Path in the file of each dataset, by the name that its array gets, such as ``{ inputs = "train/x" }``;
            by default all datasets at the top, with their names.
        limit: Most bytes of an array, checked before it is read.
    """

    arrays: Mapping[str, str] = field(factory=dict)
    limit: int = field(default=1 << 34, validator=ge(1))

    def read(self, source: Source) -> dict[str, np.ndarray]:
        """Return the arrays by name, in C order and native byte order."""
        h5py, stamp = _h5py(), stamp_of(source)
        with _open(source, h5py, self.limit) as file:
            names = dict(self.arrays) or {name: name for name in file if _is_dataset(file, name, h5py)}
            if not names:
                raise SigmaDataError(f"{source.name}: there is no dataset at the top. Name some as `arrays`.")
            arrays = {name: self._read_array(file, path, source.name, h5py) for name, path in names.items()}
        if stamp_of(source) != stamp:
            raise SigmaDataError(f"{source.name}: has changed while it was read. Read it again when it is complete.")
        return arrays

    def _read_array(self, file: Any, path: str, name: str, h5py: Any) -> np.ndarray:
        where = f"{name}: dataset {path!r}"
        _check_links(file, path, where, h5py)
        held = file[path]
        if not isinstance(held, h5py.Dataset):
            raise SigmaDataError(f"{where}: is a group. Name one of the datasets in it.")
        if held.is_virtual or held.external:
            raise SigmaDataError(f"{where}: holds values of other files. Copy them into this file.")
        text = h5py.check_string_dtype(held.dtype)
        if text is not None and text.length is None:  # the library may never return from a damaged heap
            raise SigmaDataError(f"{where}: holds words of variable length. Save them with one length, as dtype 'S20'.")
        words = text is not None
        if not held.shape or not (words or held.dtype.kind in "biuf"):
            raise SigmaDataError(f"{where}: holds {held.dtype} of shape {held.shape}. Save arrays of numbers.")
        for what, shape in (("", held.shape), (" in a chunk", held.chunks or (1,))):
            if (size := prod(shape) * held.dtype.itemsize) > self.limit:
                raise SigmaDataError(f"{where}: has {size} bytes{what}, more than {self.limit}. Raise `limit`.")
        rows = held.asstr() if words else held
        out = np.empty(held.shape, np.dtypes.StringDType() if words else held.dtype.newbyteorder("="))
        step = max(1, PIECE // max(1, prod(held.shape[1:]) * held.dtype.itemsize))
        for start in range(0, len(out), step):
            out[start : start + step] = rows[start : start + step]
        return out


@contextmanager
def _open(source: Source, h5py: Any, limit: int) -> Iterator[Any]:
    """Open a file; whatever h5py raises for a damaged one becomes a SigmaDataError."""
    with source.open():  # raises for one that is not there
        pass
    try:
        place = source.path if isinstance(source, File) else io.BytesIO(read_all(source, limit).content)
        with h5py.File(place, "r", **({"locking": False} if isinstance(source, File) else {})) as file:
            yield file
    except SigmaDataError:
        raise
    except BROKEN as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".")
        raise SigmaDataError(f"{source.name}: is no HDF5 file, or damaged: {reason}. Save it again.") from error


def _is_dataset(file: Any, name: str, h5py: Any) -> bool:
    link = file.get(name, getlink=True)
    return isinstance(link, h5py.HardLink) and file.get(name, getclass=True) is h5py.Dataset


def _check_links(file: Any, path: str, where: str, h5py: Any) -> None:
    """Raise SigmaDataError for a path that is not there, or leads to another file."""
    group = file
    for part in path.strip("/").split("/"):
        if not isinstance(group, h5py.Group) or part not in group:
            names = [*group] if isinstance(group, h5py.Group) else []
            raise SigmaDataError(f"{where}: is not there.{suggest_name(part, names, 'There is')}")
        if isinstance(group.get(part, getlink=True), h5py.ExternalLink | h5py.SoftLink):
            raise SigmaDataError(f"{where}: {part!r} is a link. Name the dataset itself.")
        group = group[part]


def _h5py() -> Any:
    try:
        return import_module("h5py")
    except ImportError as error:
        raise SigmaPluginError('HDF5 files need h5py. Install it: python -m pip install "sigma-data[hdf5]"') from error
