"""Read NumPy .npz archives, without unpickling."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping

import numpy as np
from attrs import field, frozen

from sigma_data.readers.npy import NpyReader
from sigma_data.sources.compressed import DAMAGE, Compressed
from sigma_data.sources.unpacked import read_all
from sigma_kernel import Reader, SigmaDataError, Source
from sigma_kernel.errors import suggest_name
from sigma_kernel.settings import ge

END = ".npy"


@frozen
class NpzReader(Reader):
    """Read the arrays of an .npz archive, compressed or not.

    Nothing is ever unpickled.  Raises SigmaDataError for anything but numbers and booleans, for damaged archives, and
    for an array of more than ``limit`` bytes.

    Args:
        arrays: Name in the archive of each array, by the name that it gets, such as ``{ inputs = "x_train" }``; by
            default all arrays, with their names.
        limit: Most bytes of an array.
    """

    arrays: Mapping[str, str] = field(factory=dict)
    limit: int = field(default=1 << 32, validator=ge(1))

    def read(self, source: Source) -> dict[str, np.ndarray]:
        """Return the arrays by name, in C order and native byte order."""
        with source.open() as stream:
            seekable = stream.seekable()
        if not seekable:  # the list of members is at the end
            source = read_all(source, self.limit)
        members = _list_members(source)
        names = dict(self.arrays) or {name: name for name in members}
        return {name: self._read_array(source, held, members) for name, held in names.items()}

    def _read_array(self, source: Source, name: str, members: list[str]) -> np.ndarray:
        if name not in members:
            raise SigmaDataError(f"{source.name}: there is no array {name!r}.{suggest_name(name, members, 'It has')}")
        return NpyReader().read(Compressed(source, "zip", f"{name}{END}", self.limit))["values"]


def _list_members(source: Source) -> list[str]:
    try:
        with source.open() as stream, zipfile.ZipFile(stream) as archive:
            names = [name.removesuffix(END) for name in archive.namelist() if name.endswith(END)]
    except DAMAGE as error:
        raise SigmaDataError(f"{source.name}: is no .npz archive, or damaged: {error}. Save it again.") from None
    if not names:
        raise SigmaDataError(f"{source.name}: holds no array. Save some with numpy.savez.")
    return names
