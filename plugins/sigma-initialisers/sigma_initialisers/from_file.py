"""Values from a file of arrays: NPZ, safetensors, or of an exporter."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from tokenize import TokenError
from typing import Any, ClassVar
from zipfile import BadZipFile

import numpy as np
import safetensors.numpy
from attrs import define, field

from sigma_initialisers.archives import check_sizes
from sigma_initialisers.naming import fitting, translate_address
from sigma_kernel import catalogue
from sigma_kernel.contracts import Draws, Initialiser, Parameter
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, suggest_name

BROKEN = (
    ValueError, KeyError, TypeError, EOFError, SyntaxError, OverflowError, RuntimeError, BadZipFile, zlib.error,
    pickle.UnpicklingError, TokenError, safetensors.SafetensorError,
)  # fmt: skip


@define(eq=False)
class FromFile(Initialiser):
    """Read the array of the same address from a file, such as one that ``sigma export`` wrote.

    Parameters and layer state, such as running statistics, are read alike: an exported network predicts the same.
    The file is NPZ or safetensors, or of another exporter that reads its files, such as ONNX (sigma-export-onnx).
    Arrays have the layouts of Sigma's layers: weights of a dense layer are ``(inputs, outputs)``. Nothing in the file
    is executed: pickled objects are refused. Raises SigmaDataError if the file cannot be read, and SigmaConfigError if
    it lacks the array, or if the array has another shape or holds no real numbers.

    Args:
        path: Path of the file; in a configuration, a relative one starts in the directory of the configuration.
        map: Names of layers or parameters in the file, where they differ: ``{"1-dense": "encoder"}``.
    """

    outside: ClassVar[bool] = True

    path: Path = field(converter=Path)
    map: Mapping[str, str] = field(factory=dict, kw_only=True)
    _read: Mapping[str, np.ndarray] | None = field(default=None, init=False, repr=False)

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return the values in the file, in float64."""
        name, arrays = translate_address(address, self.map), self.arrays()
        if name not in arrays:
            raise SigmaConfigError(
                f"{address}: {self.path} has no array {name!r}.{suggest_name(name, arrays)} "
                "Give its name there in `map`, or match fewer parameters."
            )
        if arrays[name].dtype.kind not in "fiu":
            raise SigmaConfigError(f"{address}: {name!r} of {self.path} holds {arrays[name].dtype}. Give real numbers.")
        return fitting(address, parameter, arrays[name], f"{name!r} of {self.path}")

    def arrays(self) -> Mapping[str, np.ndarray]:
        """Return the arrays of the file by name; it is read once."""
        if self._read is None:
            self._read = read(self.path)
        return self._read


def read(path: Path) -> Mapping[str, np.ndarray]:
    """Return the arrays of a file by name; raises SigmaDataError if it cannot be read."""
    try:
        return READERS.get(path.suffix.lower(), _of_exporter)(path)
    except OSError as error:
        raise SigmaDataError(f"{path}: cannot be read: {error.strerror or error}. Check the path.") from error
    except MemoryError as error:
        raise SigmaDataError(
            f"{path}: its arrays need more memory than there is. Write fewer, or smaller ones."
        ) from error
    except BROKEN as error:
        pickled = "pickled" in str(error) or "Object arrays" in str(error)
        text = "holds pickled objects, which are not read" if pickled else f"is damaged: {error}"
        raise SigmaDataError(f"{path}: {text.rstrip('.')}. Write arrays of numbers.") from error


def _npz(path: Path) -> Mapping[str, np.ndarray]:
    check_sizes(path)
    with path.open("rb") as file:
        archive = np.load(file, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise SigmaDataError(f"{path}: holds one array without a name. Write it with numpy.savez.")
        return {name: x for name, x in archive.items() if isinstance(x, np.ndarray)}


def _safetensors(path: Path) -> Mapping[str, np.ndarray]:
    """Return the arrays of a file, bfloat16 as float32."""
    try:
        arrays = safetensors.numpy.load_file(path)
    except AttributeError:  # NumPy has no such type
        raise SigmaDataError(f"{path}: holds numbers of a type that NumPy lacks. Write them as float32.") from None
    return {name: x.astype(np.float32) if x.dtype.name == "bfloat16" else x for name, x in arrays.items()}


def _of_exporter(path: Path) -> Mapping[str, np.ndarray]:
    """Return the arrays read by the exporter of the extension."""
    try:
        exporter: Any = catalogue().load("exporter", path.suffix[1:].lower())
    except SigmaConfigError:
        readers = f"arrays are read from {' and '.join(READERS)} files, and those of exporters that read them"
        raise SigmaDataError(f"{path}: {readers}. Save them as one of these.") from None
    arrays: Mapping[str, np.ndarray] = exporter().arrays(path)
    return arrays


READERS: dict[str, Callable[[Path], Mapping[str, np.ndarray]]] = {
    ".npz": _npz,
    ".safetensors": _safetensors,
}
