"""Read the initialisers of an ONNX model, of Sigma or of another program, as arrays by name.

A model is untrusted: its declared sizes are compared with the actual ones before memory is allocated, and besides it
only plain files in its own directory are read.
"""

from __future__ import annotations

from math import prod
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper, numpy_helper

from sigma_kernel import SigmaDataError

DAMAGED = "The file is damaged: export it again."
COPY = "Copy the file to the model's directory."
FIELDS = ("float_data", "double_data", "int32_data", "int64_data", "uint64_data")
NUMBERS = {
    TensorProto.BOOL, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE,
    TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.UINT16,
    TensorProto.UINT32, TensorProto.UINT64,
}  # fmt: skip


def initialisers(path: Path) -> dict[str, np.ndarray]:
    """Return the initialisers of a model by name, bfloat16 as float32, without strings.

    Raises SigmaDataError if the model, or its external data, cannot be read or hold less than is declared, and for
    external data that are a link or outside of the model's directory.
    """
    try:
        model = onnx.load_model_from_string(path.read_bytes())
    except OSError as error:
        raise SigmaDataError(f"{path}: cannot be read: {error.strerror}. Check the path.") from error
    except DecodeError:
        raise SigmaDataError(f"{path}: is not an ONNX model, or damaged. Export it again.") from None
    tensors = model.graph.initializer
    if not tensors:
        raise SigmaDataError(f"{path}: has no initialisers, so no parameters. Export a trained model.")
    arrays: dict[str, np.ndarray] = {}
    left: dict[Path, int] = {}  # unread bytes of external files
    for tensor in tensors:
        if tensor.name in arrays:
            raise SigmaDataError(f"{path}: has two initialisers {tensor.name!r}. {DAMAGED}")
        if tensor.data_type in NUMBERS:
            arrays[tensor.name] = _array(tensor, path, left)
    return arrays


def _array(tensor: Any, path: Path, left: dict[Path, int]) -> np.ndarray:
    where = f"{path}: initialiser {tensor.name!r}"
    dtype, shape = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type)), tuple(tensor.dims)
    if min(shape, default=0) < 0:
        raise SigmaDataError(f"{where}: declares shape {shape}. {DAMAGED}")
    external = tensor.data_location == TensorProto.EXTERNAL
    if external:
        data = _external(tensor, path, where, left)
    elif tensor.HasField("raw_data"):
        data = tensor.raw_data
    else:
        _check(where, prod(shape), sum(len(getattr(tensor, name)) for name in FIELDS), "numbers")
        return _to_numpy_dtype(numpy_helper.to_array(tensor))
    _check(where, prod(shape) * dtype.itemsize, len(data), "bytes")
    return _to_numpy_dtype(np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype).reshape(shape))


def _check(where: str, declared: int, there: int, what: str) -> None:
    if declared != there:
        raise SigmaDataError(
            f"{where}: declares {declared} {what} and has {there}. The file is damaged: export it again."
        )


def _to_numpy_dtype(array: np.ndarray) -> np.ndarray:
    """Return an array in a type of NumPy's own."""
    return array if array.dtype.kind in "biuf" else array.astype(np.float32)


def _external(tensor: Any, path: Path, where: str, left: dict[Path, int]) -> bytes:
    """Return the bytes of a tensor in an external file, and subtract them from ``left``."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    file = _locate_external(entries.get("location", ""), path, where)
    sizes = {name: entries.get(name, "0") for name in ("offset", "length")}
    if not all(value.isascii() and value.isdigit() for value in sizes.values()):
        raise SigmaDataError(f"{where}: {sizes} are not byte counts. {DAMAGED}")
    offset, whole = int(sizes["offset"]), file.stat().st_size
    length = int(sizes["length"]) if "length" in entries else whole - offset
    if offset + length > whole or length < 0:
        raise SigmaDataError(
            f"{where}: declares bytes {offset} to {offset + length} of {file.name}, which has {whole}. {DAMAGED}"
        )
    left[file] = left.get(file, whole) - length
    if left[file] < 0:
        raise SigmaDataError(f"{where}: its bytes of {file.name} overlap those of other initialisers. {DAMAGED}")
    with file.open("rb") as stream:
        stream.seek(offset)
        return stream.read(length)


def _locate_external(location: str, path: Path, where: str) -> Path:
    """Return the path of external data; raises SigmaDataError for links, and outside of the model's directory."""
    parts = PurePosixPath(location.replace("\\", "/"))
    if not parts.parts or parts.is_absolute() or ".." in parts.parts or ":" in location or "\0" in location:
        raise SigmaDataError(
            f"{where}: its data are in {location!r}, outside of the model's directory. Such models are not read."
        )
    file = path.parent.joinpath(*parts.parts)
    steps = [path.parent.joinpath(*parts.parts[: i + 1]) for i in range(len(parts.parts))]
    if any(step.is_symlink() for step in steps):
        raise SigmaDataError(
            f"{where}: its data, {location!r}, are behind a link. Copy the file to the model's directory."
        )
    if not file.is_file():
        raise SigmaDataError(f"{where}: its data, {location!r}, are missing. {COPY}")
    return file
